"""The authors' released archives: found in a mirror folder or downloaded at the pinned commit, and checked.

`data/sources.csv` pins every file: archive, repository, commit, path in the repository, path in a mirror,
size and sha256. A file is handed out only when its sha256 is the pinned one.
"""

import csv
import io
import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

from compendium.frame.files import read_utf8, sha256
from compendium.frame.paths import DATA, ROOT

SOURCES = DATA / "sources.csv"
MIRROR_VARIABLE = "COMPENDIUM_MIRROR"
COLUMNS = ("archive", "repository", "commit", "upstream_path", "path", "bytes", "sha256")


class ArchiveError(ValueError):
    """An archive file that is missing or not the pinned one; the message says how to supply it."""


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
        "stories/, … or leave it unset to download"
    )


@cache
def sources(path: Path | None = None) -> dict:
    """The pinned files: {archive: {path in the mirror: row}}, each row a dict with `COLUMNS`.

    Raises ArchiveError where the table cannot be read, lacks a column or an entry, or pins one path twice.
    """
    path = Path(path or SOURCES)
    reader = csv.DictReader(io.StringIO(read_utf8(path, ArchiveError, "a CSV file")))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        raise ArchiveError(f"{path.name}: lacks the column {missing[0]!r}; needed: {', '.join(COLUMNS)}")
    table = {}
    for line, row in enumerate(reader, 2):
        if any(row[name] is None for name in COLUMNS) or not re.fullmatch("[0-9a-f]{64}", row["sha256"]):
            raise ArchiveError(
                f"{path.name}, line {line}: should hold {', '.join(COLUMNS)}, the last of 64 "
                "hexadecimal digits"
            )
        files = table.setdefault(row["archive"], {})
        if row["path"] in files:
            raise ArchiveError(f"{path.name}, line {line}: {row['path']} is pinned twice")
        files[row["path"]] = row
    return table


class Archive:
    """One study's released files.

    Parameters
    ----------
    name : the archive's name in data/sources.csv, e.g. "alienbench".
    mirror : folder that holds `<name>/<path>`; default: the variable COMPENDIUM_MIRROR; neither: download.

    Raises ArchiveError for an archive that data/sources.csv does not list.
    """

    def __init__(self, name: str, mirror=None):
        table = sources()
        if name not in table:
            raise ArchiveError(
                f"data/sources.csv lists no archive {name!r}; it has {', '.join(sorted(table))}"
            )
        self.name, self.mirror, self._rows = name, mirror_folder(mirror), table[name]

    def files(self, prefix: str = "") -> list[str]:
        """The pinned paths that start with `prefix`, sorted."""
        return sorted(path for path in self._rows if path.startswith(prefix))

    def path(self, path: str) -> Path:
        """The local copy of a pinned file, its sha256 checked (shape: one file, bytes as published).

        Raises ArchiveError naming the file and both ways to supply it when it is missing or altered.
        """
        if path not in self._rows:
            raise ArchiveError(f"data/sources.csv pins no file {path!r} in archive {self.name!r}")
        row = self._rows[path]
        if self.mirror is None:
            return self._download(row)
        local = self.mirror / self.name / path
        if not local.is_file():
            raise ArchiveError(f"{self.name}/{path}: not in the mirror folder. {self._ways(row)}")
        found = sha256(local)
        if found != row["sha256"]:
            raise ArchiveError(
                f"{self.name}/{path}: sha256 is {found[:12]}…, pinned is {row['sha256'][:12]}…: the file was "
                f"changed or is of another release. {self._ways(row)}"
            )
        return local

    def extra(self) -> list[str]:
        """Files that lie in the mirror's folder and that data/sources.csv does not pin (never read)."""
        if self.mirror is None:
            return []
        folder = self.mirror / self.name
        here = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        return sorted(path for path in here if path not in self._rows)

    def _ways(self, row: dict) -> str:
        ways = f"Put the file at <folder>/{self.name}/{row['path']} and set {MIRROR_VARIABLE}=<folder>"
        if row["upstream_path"]:
            return (
                f"{ways}; or unset {MIRROR_VARIABLE} to download it from github.com/{row['repository']} "
                f"at commit {row['commit'][:12]}."
            )
        return f"{ways} (it is not published as one file, so there is no download)."

    def _download(self, row: dict) -> Path:
        if not row["upstream_path"]:
            raise ArchiveError(f"{self.name}/{row['path']}: {self._ways(row)}")
        import pooch  # only a download needs it

        place = f"{row['repository']}/{row['commit']}/{row['upstream_path']}"
        url = f"https://raw.githubusercontent.com/{quote(place)}"
        folder = Path(pooch.os_cache("compendium")) / row["commit"] / self.name / Path(row["path"]).parent
        try:
            pooch.get_logger().setLevel("ERROR")
            return Path(
                pooch.retrieve(
                    url, known_hash=f"sha256:{row['sha256']}", fname=Path(row["path"]).name, path=folder
                )
            )
        except Exception as error:  # requests, urllib3 and pooch raise many kinds; all mean "not supplied"
            kind = type(error).__name__
            raise ArchiveError(
                f"{self.name}/{row['path']}: could not be downloaded ({kind}). {self._ways(row)}"
            ) from None
