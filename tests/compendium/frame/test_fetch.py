"""Archives fetched from real git repositories on loopback, and from mirrors that are repositories."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from compendium.frame import archive as module
from compendium.frame import fetch
from compendium.frame.archive import Archive, ArchiveError
from compendium.frame.paths import ROOT
from tests.compendium.frame.served import forge, git, repository

FILES = {f"data/set/{k:02}.txt": b"row %d\r\n" % k * (k + 1) for k in range(9)}
LOOSE = {"replies/a/x y.json": b"{}", "replies/b.json": b"[]"}
OTHER = {"big/film.bin": bytes(200_000), "README.md": b"hi"}


def write_tables(folder, commit, files, monkeypatch, repo="a/b"):
    """sources.csv and blobs.csv of one archive, `tiny`."""
    sources = f"tiny,{repo},{commit}"
    (folder / "sources.csv").write_text(
        f"{','.join(module.COLUMNS)}\n{sources},data/set,set,\n{sources},replies,replies,\n"
        f"{sources},,made.csv,{'0' * 64}\n"
    )
    rows = [f"tiny,{path},{len(body)},{fetch.blob_id(body)}" for path, body in files.items()]
    (folder / "blobs.csv").write_text("\n".join([",".join(module.RECORD), *rows, ""]))
    monkeypatch.setattr(module, "SOURCES", folder / "sources.csv")
    monkeypatch.setattr(module, "BLOBS", folder / "blobs.csv")
    for made in (module.sources, module.recorded, module.pinned):
        made.cache_clear()


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A forge with the archive `tiny` at a made-up commit, and a cache of its own. No mirror."""
    (tmp_path / "a").mkdir()
    commit = repository(tmp_path / "a", {**FILES, **LOOSE, **OTHER}, "b")
    write_tables(tmp_path, commit, FILES, monkeypatch)
    monkeypatch.delenv(module.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "CHUNK", 3)
    with forge(tmp_path) as server:
        server.commit = commit
        monkeypatch.setenv(fetch.REMOTE_VARIABLE, server.url)
        yield server
    for made in (module.sources, module.recorded, module.pinned):
        made.cache_clear()


def read_all(archive=None):
    archive = archive or Archive("tiny")
    return {path: archive.path(path).read_bytes() for path in archive.files("set/")}


WANTED = {path.removeprefix("data/"): body for path, body in FILES.items()}


def test_what_is_fetched_is_what_was_published_and_nothing_else(served, tmp_path):
    assert read_all() == WANTED
    there = {p.name for p in (tmp_path / "cache").rglob("*") if p.is_file()}
    assert "film.bin" not in there and "repo.git" not in there
    assert len(served.asked) < 4 + 2 * len(FILES)  # not file by file


def test_a_second_archive_object_asks_the_server_nothing(served):
    read_all()
    served.asked.clear()
    assert read_all() == WANTED and served.asked == []


def test_a_folder_that_is_not_recorded_comes_as_git_has_it(served):
    archive = Archive("tiny")
    assert archive.files("replies/") == ["replies/a/x y.json", "replies/b.json"]
    assert archive.path("replies/a/x y.json").read_bytes() == b"{}"


def test_over_file_urls(served, tmp_path, monkeypatch):
    (tmp_path / "a" / "b").symlink_to(tmp_path / "a" / "b.git")
    monkeypatch.setenv(fetch.REMOTE_VARIABLE, tmp_path.as_uri())
    assert read_all() == WANTED and served.asked == []


def test_a_server_that_stops_half_way_loses_nothing(served):
    served.cut = lambda n: 20 if n > 7 else None
    with pytest.raises(
        ArchiveError, match="came is kept.*COMPENDIUM_MIRROR=<folder>.*unset COMPENDIUM_MIRROR"
    ):
        read_all()
    place = fetch.place("tiny", served.commit) / fetch.FILES
    kept = [p for p in place.rglob("*") if p.is_file()]
    assert 0 < len(kept) < len(FILES)
    stamps = {p: p.stat().st_mtime_ns for p in kept}
    served.cut = lambda n: None
    assert read_all() == WANTED
    assert {p: p.stat().st_mtime_ns for p in kept} == stamps


def test_a_commit_that_is_gone_is_said(served, tmp_path, monkeypatch):
    write_tables(tmp_path, "c" * 40, FILES, monkeypatch)
    with pytest.raises(ArchiveError, match=f"127.0.0.1:.*/a/b no longer holds the commit {'c' * 40}"):
        read_all()


def test_a_file_that_the_commit_holds_otherwise_is_refused_and_named(served, tmp_path, monkeypatch):
    write_tables(tmp_path, served.commit, {**FILES, "data/set/03.txt": b"other"}, monkeypatch)
    with pytest.raises(ArchiveError, match="holds another data/set/03.txt than data/blobs.csv records"):
        read_all()


def test_a_file_changed_in_the_cache_is_refused_and_named(served):
    archive = Archive("tiny")
    archive.path("set/02.txt").write_bytes(b"changed")
    with pytest.raises(ArchiveError, match="tiny/set/02.txt: git blob id is .* Remove .* to fetch it again"):
        Archive("tiny").path("set/02.txt")


def test_no_network_names_both_ways(served, monkeypatch):
    monkeypatch.setenv(fetch.REMOTE_VARIABLE, "http://user:secret@127.0.0.1:9")
    with pytest.raises(ArchiveError) as caught:
        read_all()
    said = str(caught.value)
    assert "127.0.0.1:9/a/b could not be reached" in said and "\n" not in said and "secret" not in said
    assert "set COMPENDIUM_MIRROR=<folder>" in said and "clone" in said and "unset COMPENDIUM_MIRROR" in said


@pytest.mark.parametrize("with_git", [True, False])
def test_a_full_disk_is_one_line_and_goes_on_from_there(served, tmp_path, monkeypatch, with_git):
    write_tables(tmp_path, served.commit, FILES, monkeypatch)
    if not with_git:
        drop_loose(tmp_path, monkeypatch)
    room, real = [60], fetch.atomic_write

    def small(path):
        room[0] -= FILES_BY_NAME[path.name]
        if room[0] < 0:
            raise OSError(28, "No space left on device", str(path))
        return real(path)

    monkeypatch.setattr(fetch, "atomic_write", small)
    with pytest.raises(ArchiveError, match="No space left on device.* set COMPENDIUM_CACHE to a folder"):
        read_all()
    monkeypatch.setattr(fetch, "atomic_write", real)
    assert read_all() == WANTED


FILES_BY_NAME = {
    **{path.rpartition("/")[2]: len(body) for path, body in FILES.items()},
    "x y.json": 2,
    "b.json": 2,
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_full_for_git_itself(served, tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        monkeypatch.setenv(fetch.CACHE_VARIABLE, str(disk))
        with pytest.raises(ArchiveError, match="No space left on device.* set COMPENDIUM_CACHE"):
            read_all()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_read_only_cache_serves_what_it_holds_and_says_what_it_cannot(served, tmp_path, monkeypatch):
    read_all()

    def refuse(*_, **__):
        raise PermissionError(30, "Read-only file system", str(tmp_path / "cache"))

    monkeypatch.setattr(fetch, "_locked", refuse)
    monkeypatch.setattr(fetch, "atomic_write", refuse)
    assert read_all() == WANTED
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(ArchiveError, match="Read-only file system.* set COMPENDIUM_CACHE to a folder"):
        read_all()


def test_two_runs_at_once_fetch_once(served, tmp_path):
    code = (
        "import os, pathlib; from compendium.frame import archive\n"
        f"archive.SOURCES, archive.BLOBS = (pathlib.Path({str(tmp_path)!r}) / n for n in ('sources.csv', 'blobs.csv'))\n"
        "a = archive.Archive('tiny'); print(sum(len(a.path(p).read_bytes()) for p in a.files('set/')))"
    )

    def run(_):
        return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(run, range(2)))
    assert {each.stdout.strip() for each in done} == {str(sum(map(len, FILES.values())))}
    assert {each.stderr for each in done} == {""}
    both = len(served.asked)
    shutil.rmtree(tmp_path / "cache")
    served.asked.clear()
    read_all_in_chunks_of_64 = run(0)
    assert read_all_in_chunks_of_64.returncode == 0 and both == len(served.asked)


def drop_loose(tmp_path, monkeypatch):
    """As on a machine without git: only recorded files can be had."""
    monkeypatch.setattr(fetch, "_git", lambda: None)
    table = tmp_path / "sources.csv"
    table.write_text("".join(x for x in table.read_text().splitlines(True) if ",replies," not in x))
    module.sources.cache_clear()
    module.pinned.cache_clear()


def test_without_git_recorded_files_come_singly(served, tmp_path, monkeypatch):
    drop_loose(tmp_path, monkeypatch)
    assert read_all() == WANTED
    assert len(served.asked) == len(FILES)


def test_without_git_a_file_that_is_not_the_pinned_one_is_refused(served, tmp_path, monkeypatch):
    drop_loose(tmp_path, monkeypatch)
    served.altered["data/set/04.txt"] = b"changed"
    with pytest.raises(ArchiveError, match="tiny/data/set/04.txt: git blob id is .*not the pinned file"):
        read_all()
    served.altered.clear()
    assert read_all() == WANTED


def test_without_git_a_folder_that_is_not_recorded_says_to_install_it(served, monkeypatch):
    monkeypatch.setattr(fetch, "_git", lambda: None)
    with pytest.raises(ArchiveError, match="files of replies are not recorded.*install git"):
        read_all()


@pytest.mark.parametrize("where", ["tiny", "tiny.git", "b", "a/b.git", ""])
@pytest.mark.parametrize("bare", [True, False])
def test_a_mirror_may_be_a_clone_or_a_bare_repository(served, tmp_path, where, bare):
    place = tmp_path / "mirror" / where
    git("clone", "-q", *["--bare"] * bare, tmp_path / "a" / "b.git", place)
    if not bare:  # what lies in its folder is not what the commit holds
        (place / "data/set/01.txt").write_bytes(b"edited")
    archive = Archive("tiny", tmp_path / "mirror")
    assert read_all(archive) == WANTED and served.asked == []
    assert archive.first("made.csv", "replies") == "replies"


def test_a_plain_folder_in_either_shape(served, tmp_path):
    for path, body in FILES.items():
        place = tmp_path / "one" / "tiny" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)
    assert read_all(Archive("tiny", tmp_path / "one")) == WANTED
    shutil.move(tmp_path / "one" / "tiny" / "data" / "set", tmp_path / "one" / "tiny" / "set")
    archive = Archive("tiny", tmp_path / "one")
    assert read_all(archive) == WANTED and served.asked == []
    with pytest.raises(ArchiveError, match="neither made.csv nor replies is in the mirror.*unset"):
        archive.first("made.csv", "replies")


def test_the_remote_is_github_a_variable_or_a_url_of_its_own(monkeypatch):
    monkeypatch.delenv(fetch.REMOTE_VARIABLE, raising=False)
    assert fetch.remote_url("a/b") == "https://github.com/a/b"
    monkeypatch.setenv(fetch.REMOTE_VARIABLE, "http://me:pw@host/x/")
    assert (fetch.remote_url("a/b"), fetch.shown_url("a/b")) == ("http://me:pw@host/x/a/b", "host/x/a/b")
    assert fetch.remote_url("ssh://git@there/a/b") == "ssh://git@there/a/b"
    assert fetch.blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object


@pytest.mark.parametrize("name", ["stories", "create", "alienbench"])
def test_every_file_of_the_studies_comes_as_the_mirror_has_it(name, mirror, tmp_path, monkeypatch):
    """So what is computed from a fetch is what is computed from the mirror. At a made-up commit."""
    theirs = Archive(name, mirror)
    files = {file.upstream: theirs.path(path).read_bytes() for path, file in theirs.pinned.items()}
    owner, _, repo = theirs.repository.partition("/")
    (tmp_path / owner).mkdir()
    commit = repository(tmp_path / owner, files, repo)
    (tmp_path / "sources.csv").write_text(module.SOURCES.read_text().replace(theirs.commit, commit))
    monkeypatch.setattr(module, "SOURCES", tmp_path / "sources.csv")
    monkeypatch.delenv(module.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "cache"))
    caches = (module.sources, module.pinned)
    for made in caches:
        made.cache_clear()
    try:
        with forge(tmp_path) as server:
            monkeypatch.setenv(fetch.REMOTE_VARIABLE, server.url)
            ours = Archive(name)
            assert ours.commit == commit and ours.files() == theirs.files()
            assert {
                file.upstream: ours.path(path).read_bytes() for path, file in ours.pinned.items()
            } == files
    finally:
        for made in caches:
            made.cache_clear()
