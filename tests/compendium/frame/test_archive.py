import csv
import hashlib

import pytest

from compendium.frame import archive as module
from compendium.frame.archive import Archive, ArchiveError, recorded, sources
from compendium.frame.fetch import blob_id


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """An archive of one recorded file and one that is pinned by its sha256, in a mirror folder."""
    monkeypatch.delenv(module.MIRROR_VARIABLE, raising=False)
    write(tmp_path / "sources.csv", module.COLUMNS, SOURCES)
    write(tmp_path / "blobs.csv", module.RECORD, [("tiny", "data/x.txt", 2, blob_id(b"hi"))])
    monkeypatch.setattr(module, "SOURCES", tmp_path / "sources.csv")
    monkeypatch.setattr(module, "BLOBS", tmp_path / "blobs.csv")
    forget()
    (tmp_path / "mirror" / "tiny").mkdir(parents=True)
    (tmp_path / "mirror" / "tiny" / "x.txt").write_text("hi")
    yield tmp_path / "mirror"
    forget()


SOURCES = [
    ("tiny", "a/b", "c" * 40, "data/x.txt", "x.txt", ""),
    ("tiny", "a/b", "c" * 40, "", "made.csv", hashlib.sha256(b"1").hexdigest()),
]


def write(path, columns, rows):
    with path.open("w", newline="") as handle:
        csv.writer(handle).writerows([columns, *rows])


def forget():
    for made in (module.sources, module.recorded, module.pinned):
        made.cache_clear()


def test_a_file_with_the_pinned_hash_is_handed_out(tiny):
    assert Archive("tiny", tiny).path("x.txt").read_text() == "hi"


def test_a_changed_file_is_named_with_both_ways_to_supply_it(tiny):
    (tiny / "tiny" / "x.txt").write_text("ho")
    with pytest.raises(
        ArchiveError,
        match=r"tiny/x.txt: git blob id is .* COMPENDIUM_MIRROR=<folder> .a clone.*; or unset .* github.com/a/b",
    ):
        Archive("tiny", tiny).path("x.txt")


def test_a_missing_file_and_a_missing_folder(tiny):
    (tiny / "tiny" / "x.txt").unlink()
    with pytest.raises(ArchiveError, match="tiny/x.txt: not in the mirror"):
        Archive("tiny", tiny).path("x.txt")
    with pytest.raises(ArchiveError, match="no such folder"):
        Archive("tiny", tiny / "nowhere")


def test_a_file_that_is_published_nowhere_says_so(tiny):
    with pytest.raises(ArchiveError, match="there is no download"):
        Archive("tiny").path("made.csv")


def test_unknown_names(tiny):
    with pytest.raises(ArchiveError, match="lists no archive 'small'"):
        Archive("small")
    with pytest.raises(ArchiveError, match="pins no file 'y.txt'"):
        Archive("tiny", tiny).path("y.txt")


def test_extra_files_in_the_mirror_are_told(tiny):
    (tiny / "tiny" / "stray.txt").write_text("?")
    assert Archive("tiny", tiny).extra() == ["stray.txt"]


def test_a_file_of_another_shape_is_known_by_its_sha256(tiny):
    (tiny / "tiny" / "made.csv").write_text("1")
    assert Archive("tiny", tiny).path("made.csv").read_text() == "1"
    (tiny / "tiny" / "made.csv").write_text("2")
    with pytest.raises(ArchiveError, match="tiny/made.csv: sha256 is .*, pinned is"):
        Archive("tiny", tiny).path("made.csv")


def test_another_commit_is_another_digest(tiny):
    before = module.digest("tiny")
    write(tiny.parent / "sources.csv", module.COLUMNS, [(*row[:2], "d" * 40, *row[3:]) for row in SOURCES])
    forget()
    assert module.digest("tiny") != before


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("tiny", "a/b", "main", "x", "x", ""), "commit should be 40"),
        (("tiny", "a/b", "c" * 40, "", "y", ""), "folder .* or a sha256, not both"),
        (("tiny", "a/b", "c" * 40, "x", "y", "0" * 64), "folder .* or a sha256, not both"),
        (("tiny", "a/b", "c" * 40, "", "y", "xyz"), "sha256 should be 64"),
        (("tiny", "a/b", "c" * 40, "../x", "y", ""), "should lie below the archive"),
        (("tiny", "a/b", "c" * 40, "x", "x.txt", ""), "x.txt is pinned twice"),
        (("tiny", "a/b", "d" * 40, "x", "y", ""), "tiny has one repository and one commit"),
        (("tiny", "a/b"), "lacks an entry"),
    ],
)
def test_a_line_of_sources_that_cannot_be_is_named(tiny, row, says):
    write(tiny.parent / "sources.csv", module.COLUMNS, [*SOURCES, row])
    with pytest.raises(ArchiveError, match=f"sources.csv, line 4: .*{says}"):
        sources(tiny.parent / "sources.csv")


def test_every_archive_has_a_commit_and_its_files_a_record():
    assert set(sources()) == set(recorded()) | {"metanym"} == {"alienbench", "stories", "create", "metanym"}
    for name, files in recorded().items():
        assert {file.upstream for file in module.pinned(name).values() if file.blob} == set(files)


def test_the_mirror_holds_what_is_pinned(mirror):
    for name in sources():
        for path, file in module.pinned(name).items():
            local = Archive(name, mirror).path(path)
            assert local == mirror / name / path and file.bytes in (None, local.stat().st_size)
