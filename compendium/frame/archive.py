"""The authors' released archives: found in a mirror or fetched at the pinned commit, and checked.

An archive is a repository, a commit and folders (`data/sources.csv`). `data/blobs.csv` records the git blob id and
size of each file that the studies read, so that a file is known for the pinned one wherever it comes from: a
mirror folder, a clone, a bare repository or a download (`compendium.frame.fetch`). The few files that a mirror
holds in another shape than the repository are pinned by sha256 in sources.csv itself.
"""

import csv
import hashlib
import io
import os
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from compendium.frame import fetch
from compendium.frame.fetch import ArchiveError, blob_id
from compendium.frame.files import read_utf8, sha256
from compendium.frame.paths import DATA, ROOT

SOURCES, BLOBS = DATA / "sources.csv", DATA / "blobs.csv"
MIRROR_VARIABLE = "COMPENDIUM_MIRROR"
COLUMNS = ("archive", "repository", "commit", "folder", "path", "sha256")
RECORD = ("archive", "path", "bytes", "blob")


@dataclass(frozen=True)
class Pinned:
    """One file: `path` in a mirror, `upstream` in the repository ("": not there in this shape), and what it is
    known by: `blob` (git's id) or `sha256`. `bytes` is None where the size is not recorded."""

    path: str
    upstream: str
    blob: str = ""
    sha256: str = ""
    bytes: int | None = None

    def problem(self, local: Path) -> str:
        """What is wrong with the copy `local`: "" where it is the pinned file."""
        kind, wanted = ("sha256", self.sha256) if self.sha256 else ("git blob id", self.blob)
        found = sha256(local) if self.sha256 else blob_id(local.read_bytes())
        if found == wanted:
            return ""
        return f"{kind} is {found[:12]}…, pinned is {wanted[:12]}…: the file was changed or is of another release"


def mirror_folder(mirror=None) -> Path | None:
    """The mirror: `mirror` if given, else the folder that COMPENDIUM_MIRROR names, else None.

    A relative path counts from the current folder, then from the project's root.
    Raises ArchiveError when a mirror is named and is no folder.
    """
    name = mirror or os.environ.get(MIRROR_VARIABLE)
    if not name:
        return None
    for candidate in (Path(name), ROOT / name):
        if candidate.is_dir():
            return candidate.resolve()
    raise ArchiveError(
        f"{MIRROR_VARIABLE}={name}: no such folder; name the folder that holds alienbench/, "
        "stories/, …, a clone or a bare repository, or leave it unset to download"
    )


def _rows(path: Path, columns, check) -> list[tuple[int, dict]]:
    reader = csv.DictReader(io.StringIO(read_utf8(path, ArchiveError, "a CSV file")))
    missing = [name for name in columns if name not in (reader.fieldnames or [])]
    if missing:
        raise ArchiveError(f"{path.name}: lacks the column {missing[0]!r}; needed: {', '.join(columns)}")
    rows = list(enumerate(reader, 2))
    for line, row in rows:
        problem = "it lacks an entry" if any(row[name] is None for name in columns) else check(row)
        if problem:
            raise ArchiveError(f"{path.name}, line {line}: {problem}; a line holds {', '.join(columns)}")
    return rows


def _wrong_source(row) -> str:
    if not re.fullmatch("[0-9a-f]{40}", row["commit"]):
        return "the commit should be 40 hexadecimal digits"
    if bool(row["folder"]) == bool(row["sha256"]):
        return "it should name a folder (or file) of the repository, or a sha256, not both"
    if row["sha256"] and not re.fullmatch("[0-9a-f]{64}", row["sha256"]):
        return "the sha256 should be 64 hexadecimal digits"
    places = [Path(row["path"]), Path(row["folder"] or row["path"])]
    inside = all(place.parts and not place.is_absolute() and ".." not in place.parts for place in places)
    return "" if inside else "folder and path should lie below the archive: not empty, not absolute, no `..`"


def _wrong_record(row) -> str:
    sound = row["bytes"].isdecimal() and re.fullmatch("[0-9a-f]{40}", row["blob"])
    return "" if sound else "bytes should be a number, blob 40 hexadecimal digits"


@cache
def sources(path: Path | None = None) -> dict:
    """{archive: its rows of data/sources.csv}, each row a dict with `COLUMNS`.

    Raises ArchiveError, naming the line, where the table cannot be read, lacks a column or an entry, pins one
    path twice, or gives an archive two repositories or commits.
    """
    path = Path(path or SOURCES)
    table = {}
    for line, row in _rows(path, COLUMNS, _wrong_source):
        rows = table.setdefault(row["archive"], [])
        if any(row["path"] == other["path"] for other in rows):
            raise ArchiveError(f"{path.name}, line {line}: {row['path']} is pinned twice")
        if rows and any(row[name] != rows[0][name] for name in ("repository", "commit")):
            raise ArchiveError(
                f"{path.name}, line {line}: {row['archive']} has one repository and one commit"
            )
        rows.append(row)
    return table


@cache
def recorded(path: Path | None = None) -> dict:
    """{archive: {path in the repository: (bytes, git blob id)}} of data/blobs.csv. Raises ArchiveError as `sources`."""
    table = {}
    for _, row in _rows(Path(path or BLOBS), RECORD, _wrong_record):
        table.setdefault(row["archive"], {})[row["path"]] = int(row["bytes"]), row["blob"]
    return table


def _within(upstream: str, folder: str) -> bool:
    return upstream == folder or upstream.startswith(f"{folder}/")


@cache
def pinned(name: str) -> dict:
    """{path in a mirror: Pinned} of the files of an archive that are pinned one by one. Raises ArchiveError for an
    archive that data/sources.csv does not list."""
    table = sources()
    if name not in table:
        raise ArchiveError(f"data/sources.csv lists no archive {name!r}; it has {', '.join(sorted(table))}")
    record, files = recorded().get(name, {}), {}
    for row in table[name]:
        if row["sha256"]:
            files[row["path"]] = Pinned(row["path"], "", sha256=row["sha256"])
        for upstream, (size, blob) in record.items():
            if row["folder"] and _within(upstream, row["folder"]):
                path = row["path"] + upstream[len(row["folder"]) :]
                files[path] = Pinned(path, upstream, blob, bytes=size)
    return files


def digest(name: str) -> str:
    """One SHA-256 over what is pinned of an archive: another commit, folder or file gives another."""
    files = sorted(pinned(name).items())
    lines = [f"{row[column]}\0" for row in sources()[name] for column in COLUMNS]
    lines += [f"{path}\0{file.blob}{file.sha256}\n" for path, file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


class Archive:
    """One study's released files.

    Parameters
    ----------
    name : the archive's name in data/sources.csv, e.g. "alienbench".
    mirror : a folder that holds `<name>/<path>`, a clone or bare repository of the archive, or a folder of such;
        default: the variable COMPENDIUM_MIRROR; neither: the pinned commit is fetched.

    Raises ArchiveError for an archive that data/sources.csv does not list.
    """

    def __init__(self, name: str, mirror=None):
        self.pinned = pinned(name)
        self.name, self.mirror, self._sources = name, mirror_folder(mirror), sources()[name]
        self.repository, self.commit = self._sources[0]["repository"], self._sources[0]["commit"]

    def files(self, prefix: str = "") -> list[str]:
        """The paths that start with `prefix`, sorted: the pinned ones, and of a folder whose files are not recorded
        one by one those that the commit holds (git knows them), where it is at hand."""
        return sorted(path for path in self._known(prefix) if path.startswith(prefix))

    def first(self, *shapes: str) -> str:
        """The first of some shapes of the same data (files or folders of the mirror) that can be had here.

        Raises ArchiveError naming both ways to supply it where none can.
        """
        for shape in shapes:
            known = self._known(shape)
            if any(_within(path, shape) and self._at_hand(file) for path, file in known.items()):
                return shape
        published = next((shape for shape in shapes if shape not in self.pinned), shapes[0])
        raise ArchiveError(
            f"{self.name}: neither {' nor '.join(shapes)} is in the mirror. {self._ways(published)}"
        )

    def path(self, path: str) -> Path:
        """The local copy of a pinned file, checked (shape: one file, bytes as published).

        Raises ArchiveError naming the file and both ways to supply it when it is missing or altered.
        """
        file = self._known(path).get(path)
        if file is None:
            raise ArchiveError(f"data/sources.csv pins no file {path!r} in archive {self.name!r}")
        local = self._local(file)
        if local is None:
            where = "not in the mirror" if self.mirror else "its repository holds it in another shape"
            raise ArchiveError(f"{self.name}/{path}: {where}. {self._ways(path)}")
        problem = file.problem(local)
        if problem and self._from_git(file):
            place = fetch.place(self.name, self.commit)
            raise ArchiveError(f"{self.name}/{path}: {problem}. Remove {place} to fetch it again.")
        if problem:
            raise ArchiveError(f"{self.name}/{path}: {problem}. {self._ways(path)}")
        return local

    def fetch(self) -> Path:
        """Fetch, where it is not there yet, what the studies read of the pinned commit; the folder it lies in.

        Raises ArchiveError where it cannot be had.
        """
        remote = self._clone or fetch.remote_url(self.repository)
        folders = [row["folder"] for row in self._sources if row["folder"]]
        try:
            return fetch.fetched(
                self.name, str(remote), self.commit, folders, recorded().get(self.name, {}), self.repository
            )
        except ArchiveError as error:
            raise ArchiveError(f"{error} {self._ways()}") from None

    def ready(self) -> Path:
        """Have everything at hand ahead of a run; the folder it is in. Raises ArchiveError as `path` and `fetch`."""
        if self.mirror is None or self._clone:
            return self.fetch()
        for path in self.pinned:
            self.path(path)
        return self.mirror

    def extra(self) -> list[str]:
        """Files that lie in the mirror's folder and that data/sources.csv does not pin (never read)."""
        folder = None if self.mirror is None or self._clone else self.mirror / self.name
        if folder is None or not folder.is_dir():
            return []
        here = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        return sorted(path for path in here if path not in self.pinned)

    @cached_property
    def _places(self) -> list[Path]:
        """Where in the mirror the archive may lie: under its name, under the repository's, or the mirror itself."""
        names = (self.name, self.repository, self.repository.rpartition("/")[2])
        places = [self.mirror / f"{name}{git}" for name in names if "://" not in name for git in ("", ".git")]
        return [place for place in (*places, self.mirror) if place.is_dir()]

    @cached_property
    def _clone(self) -> Path | None:
        """The repository in the mirror that holds the commit, None where there is none (or no git)."""
        if self.mirror is None:
            return None
        return next((place for place in self._places if fetch.holds(place, self.commit)), None)

    @cached_property
    def _fetched(self) -> dict:
        """{path in a mirror: Pinned} of all that the commit's folders hold, as git has it."""
        files, folder = {}, self.fetch()
        for upstream, blob in fetch.manifest(folder).items():
            for row in self._sources:
                if row["folder"] and _within(upstream, row["folder"]):
                    path = row["path"] + upstream[len(row["folder"]) :]
                    files[path] = Pinned(path, upstream, blob)
        return files

    def _known(self, prefix: str) -> dict:
        """The pinned files, and those that only the commit lists, if `prefix` leads to a folder of such."""
        loose = [
            row["path"]
            for row in self._sources
            if row["folder"] and not any(_within(path, row["path"]) for path in self.pinned)
        ]
        asked = [path for path in loose if path.startswith(prefix) or _within(prefix, path)]
        usable = self._clone if self.mirror else True
        return {**self._fetched, **self.pinned} if asked and usable else self.pinned

    def _from_git(self, file: Pinned) -> bool:
        return bool(file.upstream) and (self.mirror is None or self._clone is not None)

    def _at_hand(self, file: Pinned) -> bool:
        return self._from_git(file) or self._in_mirror(file) is not None

    def _in_mirror(self, file: Pinned) -> Path | None:
        shapes = [shape for shape in (file.path, file.upstream) if shape]
        if self.mirror is None:
            return None
        found = (place / shape for place in self._places for shape in shapes)
        return next((local for local in found if local.is_file()), None)

    def _local(self, file: Pinned) -> Path | None:
        if not self._from_git(file):
            return self._in_mirror(file)
        local = self.fetch() / fetch.FILES / file.upstream
        return local if local.is_file() else None

    def _ways(self, path: str = "…") -> str:
        """Both ways to supply the archive, in a sentence."""
        file = self.pinned.get(path)
        ways = (
            f"Put it at <folder>/{self.name}/{path} and set {MIRROR_VARIABLE}=<folder> (a clone of "
            f"{self.repository} at commit {self.commit[:12]} serves as well)"
        )
        if file is not None and not file.upstream:
            return f"{ways.partition(' (')[0]} (it is not published as one file, so there is no download)."
        return f"{ways}; or unset {MIRROR_VARIABLE} to download it from {fetch.shown_url(self.repository)}."
