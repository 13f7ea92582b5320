import csv

import pytest

from compendium.frame import archive as module
from compendium.frame.archive import Archive, ArchiveError, sources
from compendium.frame.paths import DATA


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """An archive of one pinned file, in a mirror folder."""
    monkeypatch.delenv(module.MIRROR_VARIABLE, raising=False)
    table = tmp_path / "sources.csv"
    rows = [
        (
            "tiny",
            "a/b",
            "c" * 40,
            "data/x.txt",
            "x.txt",
            "2",
            "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
        ),
        ("tiny", "a/b", "c" * 40, "", "made.csv", "2", "0" * 64),
    ]
    with table.open("w", newline="") as handle:
        csv.writer(handle).writerows([module.COLUMNS, *rows])
    monkeypatch.setattr(module, "SOURCES", table)
    monkeypatch.setattr(module, "sources", lambda path=table: sources(table))
    (tmp_path / "mirror" / "tiny").mkdir(parents=True)
    (tmp_path / "mirror" / "tiny" / "x.txt").write_text("hi")
    return tmp_path / "mirror"


def test_a_file_with_the_pinned_hash_is_handed_out(tiny):
    assert Archive("tiny", tiny).path("x.txt").read_text() == "hi"


def test_a_changed_file_is_named_with_both_ways_to_supply_it(tiny):
    (tiny / "tiny" / "x.txt").write_text("ho")
    with pytest.raises(
        ArchiveError, match=r"tiny/x.txt: sha256 is .* COMPENDIUM_MIRROR=<folder>; or unset .* github.com/a/b"
    ):
        Archive("tiny", tiny).path("x.txt")


def test_a_missing_file_and_a_missing_folder(tiny):
    (tiny / "tiny" / "x.txt").unlink()
    with pytest.raises(ArchiveError, match="tiny/x.txt: not in the mirror folder"):
        Archive("tiny", tiny).path("x.txt")
    with pytest.raises(ArchiveError, match="no such folder"):
        Archive("tiny", tiny / "nowhere")


def test_a_file_that_is_published_nowhere_says_so(tiny):
    with pytest.raises(ArchiveError, match="there is no download"):
        Archive("tiny").path("made.csv")


def test_a_failed_download_is_one_clear_error(tiny, monkeypatch):
    import pooch

    def fail(*args, **options):
        raise OSError("no route")

    monkeypatch.setattr(pooch, "retrieve", fail)
    with pytest.raises(ArchiveError, match=r"tiny/x.txt: could not be downloaded \(OSError\)"):
        Archive("tiny").path("x.txt")


def test_a_download_asks_for_the_pinned_commit_and_hash(tiny, monkeypatch, tmp_path):
    import pooch

    asked = {}

    def retrieve(url, known_hash, fname, path):
        asked.update(url=url, hash=known_hash)
        return str(tmp_path / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    Archive("tiny").path("x.txt")
    assert asked["url"].endswith(f"/a/b/{'c' * 40}/data/x.txt")
    assert asked["hash"].startswith("sha256:8f4343")


def test_unknown_names(tiny):
    with pytest.raises(ArchiveError, match="lists no archive 'small'"):
        Archive("small")
    with pytest.raises(ArchiveError, match="pins no file 'y.txt'"):
        Archive("tiny", tiny).path("y.txt")


def test_extra_files_in_the_mirror_are_told(tiny):
    (tiny / "tiny" / "stray.txt").write_text("?")
    assert Archive("tiny", tiny).extra() == ["stray.txt"]


def test_sources_pin_every_file_once_with_a_whole_hash():
    table = sources(DATA / "sources.csv")
    assert set(table) == {"alienbench", "stories", "create", "metanym"}
    rows = [row for files in table.values() for row in files.values()]
    assert all(
        len(row["sha256"]) == 64 and len(row["commit"]) == 40 and int(row["bytes"]) >= 0 for row in rows
    )


def test_the_mirror_holds_what_is_pinned(mirror):
    for name, files in sources(DATA / "sources.csv").items():
        for path, row in files.items():
            assert (mirror / name / path).stat().st_size == int(row["bytes"])
