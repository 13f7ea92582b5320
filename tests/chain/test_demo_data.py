"""data/demo/: what the demo's chain makes and its notebooks need, no more and no less."""

import io

import numpy as np
import pytest

from compendium.frame import demo
from compendium.frame.files import FileError, read_bytes, read_csv, read_utf8
from compendium.frame.paths import ROOT, STUDIES

WITH_DATA = [study for study in STUDIES if demo.wanted(study)]
VECTORS = ".npz"
BIT = 1e-5  # float32 vectors of a language model: their last bits are the processor's


def test_it_holds_what_is_needed_and_nothing_else():
    there = {path for path in demo.FOLDER.rglob("*") if path.is_file()}
    assert there == {demo.packed(relative) for relative in demo.wanted()}
    assert sum(path.stat().st_size for path in there) <= 8e6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of the demo, as far as its notebooks' inputs ask."""
    out = tmp_path_factory.mktemp("demo")
    demo.make(out)
    return out


@pytest.mark.parametrize("study", WITH_DATA)
def test_it_is_what_the_chain_makes(study, made):
    for relative in demo.wanted(study):
        mine, kept = (made / relative).read_bytes(), read_bytes(demo.packed(relative))
        if relative.endswith(VECTORS):
            new, old = np.load(io.BytesIO(mine)), np.load(io.BytesIO(kept))
            assert new.files == old.files
            for name in new.files:
                if name.startswith("texts"):
                    assert (new[name] == old[name]).all()
                else:
                    np.testing.assert_allclose(new[name], old[name], atol=BIT, err_msg=relative)
        else:
            assert mine == kept, f"{relative}: `make refresh` renews data/demo/"


def test_renewing_changes_what_differs_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "FOLDER", tmp_path / "kept")
    monkeypatch.setattr(demo, "wanted", lambda study="all": ["s/a.csv", "s/b.csv"])
    (tmp_path / "s").mkdir()
    for name in ("a", "b"):
        (tmp_path / "s" / f"{name}.csv").write_text("x\n1\n")
    first = demo.renew(tmp_path)
    assert [path.name for path in first] == ["a.csv.gz", "b.csv.gz"] and not demo.renew(tmp_path)
    (tmp_path / "s" / "b.csv").write_text("x\n2\n")
    (tmp_path / "kept" / "old.csv.gz").write_bytes(b"")
    assert {path.name for path in demo.renew(tmp_path)} == {"old.csv.gz", "b.csv.gz"}
    assert read_utf8(demo.packed("s/b.csv")) == "x\n2\n" and not (tmp_path / "kept" / "old.csv.gz").exists()


def test_a_packed_file_is_read_from_the_root_wherever_one_is(tmp_path, monkeypatch):
    relative = demo.packed("alienbench/labels.csv").relative_to(ROOT).as_posix()
    monkeypatch.chdir(tmp_path)
    frame = read_csv(relative, ["judge"])
    assert frame["judge"].nunique() == 3
    assert read_utf8(relative).count("\n") == len(frame) + 1


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (None, "none.csv", "none.csv: cannot be read .No such file"),
        (b"", "empty.csv", "empty.csv: cannot be read .No columns"),
        (b"a,b\n1,2\n", "short.csv", "short.csv: lacks the column 'c'; it has a, b"),
        (b"no gzip", "bad.csv.gz", "bad.csv.gz: cannot be read .Not a gzipped file"),
    ],
)
def test_a_table_that_cannot_be_used_is_named(content, name, said, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=said):
        read_csv(tmp_path / name, ["c"])
