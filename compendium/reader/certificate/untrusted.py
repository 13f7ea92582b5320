"""A certificate that a stranger sent: opened within bounds, and nothing in it believed before it is checked.

Names are made of letters, digits and `._+-`, one path component at a time; every path is resolved and lies below
the folder that was opened; sizes and counts are bounded before anything is unpacked. Whatever a bundle holds, the
answer is its facts or one CertificateError.
"""

import io
import re
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

from compendium.frame.files import read_yaml, sha256
from compendium.frame.params import PROFILES
from compendium.frame.paths import STUDIES, shown
from compendium.reader.certificate.facts import SINGLE, CertificateError

NAME = "codecheck.yml"
WHOLE = ("manifest", "run", "verdicts", "code", "parameters", "environment", "machine", "archives")
MOST_FILES = 5_000
MOST_BYTES = 512 * 2**20  # of all files together, unpacked
MOST_FACTS = 8 * 2**20  # bytes of codecheck.yml
LONGEST_READ = 8 * 2**20  # bytes of a zip read in one go: bounds its directory before it is taken apart
CHUNK = 2**16
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")
HASH = re.compile(r"[0-9a-f]{64}")
KINDS = ("cells", "tables", "figures")


class opened:
    """A certificate's folder, whether it is given as the zip, the folder, or codecheck.yml in it.

    Raises CertificateError for anything else, and for a zip with more or larger files than a certificate has.
    """

    def __init__(self, file):
        self._file, self._temporary = Path(file), None

    def __enter__(self) -> Path:
        if self._file.is_dir():
            return self._file
        if self._file.name == NAME and self._file.is_file():
            return self._file.parent
        if not self._file.is_file() or not zipfile.is_zipfile(self._file):
            fault = "is no certificate" if self._file.exists() else "there is no such file"
            raise CertificateError(
                f"{shown(self._file)}: {fault}; give the zip that `make certificate` wrote, its "
                f"folder, or {NAME} in it"
            )
        self._temporary = tempfile.TemporaryDirectory()
        try:
            _unpack(self._file, Path(self._temporary.name))
        except BaseException:
            self._temporary.cleanup()
            raise
        return Path(self._temporary.name)

    def __exit__(self, *_):
        if self._temporary is not None:
            self._temporary.cleanup()


def read(folder: Path) -> dict:
    """The facts of a certificate, their shape checked, its exhibits checked against the hashes it states.

    Raises CertificateError where the file is missing or malformed, or an exhibit in the bundle was altered.
    """
    if (size := inside(folder, NAME).stat().st_size) > MOST_FACTS:
        raise CertificateError(f"{NAME}: {size} bytes, a certificate's has at most {MOST_FACTS}")
    facts = read_yaml(folder / NAME, CertificateError, dict)
    _check(facts)
    left = MOST_BYTES
    for entry in facts["manifest"]:
        held = inside(folder, entry["file"])
        left -= held.stat().st_size
        if left < 0:
            raise CertificateError(f"{NAME}: lists more than {MOST_BYTES} bytes of exhibits")
        if sha256(held) != entry["sha256"]:
            raise CertificateError(
                f"{entry['file']}: the copy in the bundle is not the one that {NAME} lists; the "
                "certificate was altered after it was written"
            )
    return facts


def inside(folder: Path, name: str) -> Path:
    """The regular file `name` of a bundle. Raises CertificateError where it is missing or lies elsewhere."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise CertificateError(f"{name}: is not in the bundle; the certificate should hold it")
    return path


def plain(text, longest: int = 500) -> str:
    """`text` as one line of at most `longest` characters that a terminal shows as it is: whoever wrote the bundle
    chose these letters, escape codes included."""
    text = str(text)
    cut = text if len(text) <= longest else f"{text[:longest]} …"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in cut)


def _unpack(file: Path, folder: Path) -> None:
    """Every file of a zip into `folder`, within the bounds. Links become the text that they hold."""
    try:
        with _Bounded(file) as handle, zipfile.ZipFile(handle) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) > MOST_FILES:
                raise CertificateError(f"{shown(file)}: {len(members)} files, at most {MOST_FILES}")
            total = sum(member.file_size for member in members)
            if total > MOST_BYTES:
                raise CertificateError(f"{shown(file)}: {total} bytes unpacked, at most {MOST_BYTES}")
            for member in members:
                _named(member.filename, shown(file))
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise CertificateError(f"{shown(file)}: packed in another way than deflate")
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                # zipfile stops at the size that the member states, which is in `total`
                with archive.open(member) as source, open(target, "xb") as copy:
                    while chunk := source.read(CHUNK):
                        copy.write(chunk)
    except CertificateError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
    ) as error:
        raise CertificateError(f"{shown(file)}: a damaged zip ({plain(error, 100)})") from None


class _Bounded(io.BufferedReader):
    """A file of which nobody reads more than LONGEST_READ in one go."""

    def __init__(self, path):
        super().__init__(io.FileIO(path))

    def read(self, size=-1):
        if size is None or size < 0:
            size = LONGEST_READ
        if size > LONGEST_READ:
            raise zipfile.BadZipFile("its directory is too long")
        return super().read(size)


def _named(name, where: str) -> None:
    parts = name.split("/") if isinstance(name, str) and len(name) < 300 else [""]
    if len(parts) > 4 or not all(WORD.fullmatch(part) for part in parts):
        raise CertificateError(
            f"{where}: the name {plain(repr(name), 80)} is no certificate's; names are of letters, digits and ._+-"
        )


def _check(facts: dict) -> None:
    """Raise CertificateError unless everything that a verification uses has the shape that `facts_of` gives it."""

    def need(holds, what):
        if not holds:
            raise CertificateError(f"{NAME}: {what}; it was not written by `make certificate`")

    for name in WHOLE:
        need(name in facts, f"lacks {name}")
        kind = list if name in ("manifest", "archives") else dict
        need(isinstance(facts[name], kind), f"{name} should be a {'list' if kind is list else 'mapping'}")
    run, manifest, files = facts["run"], facts["manifest"], facts["code"].get("files")
    need(
        isinstance(run.get("name"), str) and WORD.fullmatch(run["name"]),
        "run.name should be one name of letters, digits and ._+-",
    )
    need(run.get("profile") in PROFILES, f"run.profile should be one of {', '.join(PROFILES)}")
    need(isinstance(run.get("smoke"), bool), "run.smoke should be true or false")
    for name in ("studies", "coverage"):
        mine = run.get(name)
        need(isinstance(mine, list if name == "studies" else dict) and mine, f"run.{name} is missing")
        need(all(study in STUDIES for study in mine), f"run.{name} should name studies: {', '.join(STUDIES)}")
    need(len(set(run["studies"])) == len(run["studies"]), "run.studies names a study twice")
    for count in run["coverage"].values():
        need(
            isinstance(count, dict) and all(type(count.get(n)) is int for n in ("notebooks", "executed")),
            "run.coverage should count notebooks, and those executed",
        )
    need(isinstance(files, dict), "code.files should be a mapping")
    need(all(isinstance(part, str) for pair in files.items() for part in pair), "code.files should be hashes")
    need(len(manifest) <= MOST_FILES, f"manifest should have at most {MOST_FILES} entries")
    for entry in manifest:
        need(isinstance(entry, dict) and "file" in entry, "manifest should be a list of {file, sha256}")
        _named(entry["file"], NAME)
        need(
            entry["file"] in SINGLE or entry["file"].partition("/")[0] in KINDS,
            f"manifest: {entry['file']} is no exhibit of a run",
        )
        need(
            isinstance(entry.get("sha256"), str) and HASH.fullmatch(entry["sha256"]),
            f"manifest: {entry['file']} has no sha256 of 64 digits",
        )
    need(len({entry["file"] for entry in manifest}) == len(manifest), "manifest names a file twice")
