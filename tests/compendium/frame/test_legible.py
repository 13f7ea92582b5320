"""Words of a picture that cannot be read are found; turned ones and words on dark ground are judged as they are seen."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from compendium.frame import legible, style
from compendium.frame.page import Page


@pytest.fixture
def picture():
    """(figure, axis) of an empty picture."""
    figure, axis = plt.subplots(figsize=(4, 3))
    axis.set_axis_off()
    yield figure, axis
    plt.close(figure)


def test_words_that_lie_on_others_are_found(picture):
    figure, axis = picture
    axis.text(0.5, 0.5, "one")
    axis.text(0.52, 0.51, "two")
    axis.text(0.8, 0.8, "three")
    assert legible.faults(figure) == ["'one' lies on 'two'"]


def test_turned_words_side_by_side_do_not_touch(picture):
    figure, axis = picture
    for place in (0.2, 0.3):  # their upright boxes do
        axis.text(place, 0.2, "a long word at a slant", rotation=45, rotation_mode="anchor")
    first, second = legible.words(figure)
    assert first.get_window_extent().overlaps(second.get_window_extent())
    assert legible.faults(figure) == []
    axis.text(0.3, 0.32, "across", rotation=0)
    assert any("lies on 'across'" in each for each in legible.faults(figure))


def test_contrast_is_with_what_is_behind(picture):
    figure, axis = picture
    axis.add_patch(plt.Rectangle((0, 0), 1, 0.4, color="black"))
    axis.text(0.1, 0.2, "white on black", color="white")
    axis.text(0.1, 0.1, "black on black", color="black")
    axis.text(0.5, 0.1, "in a box", color="black", bbox={"facecolor": "white", "edgecolor": "none"})
    axis.text(0.1, 0.6, "grey", color="#8A8F98")
    axis.text(0.1, 0.8, "half there", color="black", alpha=0.4)
    assert [each.split("'")[1] for each in legible.faults(figure)] == ["black on black", "grey", "half there"]


def test_words_that_are_cut_off_are_found(picture):
    figure, axis = picture
    axis.set_xlim(0, 1)
    axis.text(0.9, 0.5, "a long name at the edge", clip_on=True)
    axis.text(0.9, 0.2, "a name that the picture grows for")
    assert legible.faults(figure) == ["'a long name at the edge' is cut off"]


def test_every_number_of_a_heat_map_can_be_read():
    values = np.linspace(-1, 1, 60).reshape(6, 10)
    values[0, 0] = np.nan
    figure = style.heat(values, list("abcdef"), list("abcdefghij"), size=(8, 4))
    assert legible.faults(figure) == []
    plt.close(figure)


def test_a_page_refuses_an_illegible_figure_where_it_is_asked_to(picture, tmp_path, monkeypatch):
    figure, axis = picture
    axis.text(0.1, 0.6, "grey", color="#8A8F98")
    page = Page("create", "08_figures", out=str(tmp_path))
    monkeypatch.delenv(legible.SWITCH, raising=False)
    page.save_figure(figure, "pale")
    monkeypatch.setenv(legible.SWITCH, legible.__name__)
    monkeypatch.delenv(legible.LISTED, raising=False)
    with pytest.raises(legible.Illegible, match="create/pale: 'grey' has contrast 3.2, at least 4.5"):
        page.save_figure(figure, "pale")
    listed = tmp_path / "illegible.txt"
    listed.write_text("create/pale\n")
    monkeypatch.setenv(legible.LISTED, str(listed))
    page.save_figure(figure, "pale")
    axis.texts[0].set_color("black")
    with pytest.raises(legible.Illegible, match="create/pale can be read: take it from illegible.txt"):
        page.save_figure(figure, "pale")
    listed.write_text("create/\n")
    axis.texts[0].set_color("#8A8F98")
    page.save_figure(figure, "pale")
