"""A certificate of a run, after CODECHECK: what was made, from what, where, and how the printed numbers came out.

    python -m compendium.reader.certificate write --profile released       build/released/certificate/ and its zip
    python -m compendium.reader.certificate verify build/released/certificate-released.zip
                                                             re-runs the chain afresh and says what changed

It covers the studies of which the run's folder holds every notebook executed, and names those it does not cover.
The folder holds codecheck.yml (CODECHECK configuration 1.0, with hashes), certificate.html, certificate.pdf
where a Chromium is at hand, and the exhibits themselves; the zip is the same as an RO-Crate. No host name
and no path of the machine is in either.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import yaml

from compendium.frame.compare import Change, compare
from compendium.frame.files import sha256, write_text_atomic
from compendium.frame.params import PROFILES, is_small, run_folder
from compendium.frame.paths import ROOT, figures_folder, from_root, shown
from compendium.reader.certificate.facts import CertificateError, facts_of
from compendium.reader.certificate.page import crate, page, pdf

NAME = "codecheck.yml"
WHOLE = ("manifest", "run", "verdicts", "code", "parameters", "environment", "machine", "archives")
LONG = 80  # characters of a value that a difference shows


def write(profile: str, out: Path, *, smoke: bool = False, checker: str = "") -> Path:
    """Write the certificate of the finished run in `out`; returns the zip.

    `checker` names who ran it ("Name <ORCID>"); left out, the certificate says that nobody has signed it.
    Raises CertificateError where there is no finished run.
    """
    facts = facts_of(profile, out, smoke=smoke, checker=checker)
    folder = out / "certificate"
    if folder.exists():
        shutil.rmtree(folder)
    for entry in facts["manifest"]:
        target = folder / entry["file"]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place_of(out, entry["file"]), target)
    write_text_atomic(folder / NAME, yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=110))
    write_text_atomic(folder / "certificate.html", page(facts))
    pdf(folder / "certificate.html", folder / "certificate.pdf")
    return crate(folder, facts, out / f"certificate-{out.name}.zip")


def place_of(out: Path, file: str) -> Path:
    """Where a run keeps an exhibit: figures lie in a folder of their own."""
    kind, _, rest = file.partition("/")
    return figures_folder(out) / rest if kind == "figures" else out / file


def verify(file: Path, *, cores: str = "", build: str = "") -> tuple[dict, list[Change], list[str]]:
    """Re-run the chain of a certificate afresh and compare: (its facts, changes of exhibits, other
    differences).

    The run goes to `build` (default: build/verify-<run>), emptied first. A live run is repeated from the
    ledgers of the run, so nothing is asked again that was answered. Raises CertificateError for a file that
    is no certificate, or a chain that stops.
    """
    with opened(file) as folder:
        facts = read(folder)
        run = facts["run"]
        fresh = from_root(build or f"build/verify-{run['name']}")
        for path in (fresh, figures_folder(fresh)):
            shutil.rmtree(path, ignore_errors=True)
        _ledgers(run, fresh)
        whole = all(count["executed"] == count["notebooks"] for count in run["coverage"].values())
        for study in ["all"] if whole else run["studies"]:
            _run(run, study, fresh, cores)
        new = facts_of(run["profile"], fresh, smoke=run["smoke"], checker="")
        changes = compare(folder, facts["manifest"], new["manifest"], lambda name: place_of(fresh, name))
        return facts, changes, _differences(facts, new)


class opened:
    """A certificate's folder, whether it is given as the zip, the folder, or codecheck.yml in it."""

    def __init__(self, file):
        self._file, self._temporary = Path(file), None

    def __enter__(self) -> Path:
        if self._file.is_dir():
            return self._file
        if self._file.name == NAME and self._file.is_file():
            return self._file.parent
        if not zipfile.is_zipfile(self._file):
            fault = "is no certificate" if self._file.exists() else "there is no such file"
            raise CertificateError(
                f"{shown(self._file)}: {fault}; give the zip that `make certificate` wrote, its "
                f"folder, or {NAME} in it"
            )
        self._temporary = tempfile.TemporaryDirectory()
        with zipfile.ZipFile(self._file) as archive:
            archive.extractall(self._temporary.name)
        return Path(self._temporary.name)

    def __exit__(self, *_):
        if self._temporary is not None:
            self._temporary.cleanup()


def read(folder: Path) -> dict:
    """The facts of a certificate, its exhibits checked against the hashes it states.

    Raises CertificateError where the file is missing or malformed, or an exhibit in the bundle was altered.
    """
    path = folder / NAME
    try:
        facts = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise CertificateError(
            f"{NAME}: cannot be read ({type(error).__name__}); the certificate should hold it"
        ) from None
    lacking = [name for name in WHOLE if name not in facts] if isinstance(facts, dict) else WHOLE
    if lacking:
        raise CertificateError(f"{NAME}: lacks {lacking[0]}; it was not written by `make certificate`")
    for entry in facts["manifest"]:
        held = folder / entry["file"]
        if not held.is_file() or sha256(held) != entry["sha256"]:
            raise CertificateError(
                f"{entry['file']}: the copy in the bundle is not the one that {NAME} lists; the "
                "certificate was altered after it was written"
            )
    return facts


def _ledgers(run: dict, fresh: Path) -> None:
    """A live run's replies, so that the re-run need not ask for them."""
    kept = from_root(f"build/{run['name']}") / "ledgers"
    if run["profile"] == "live":
        if not kept.is_dir():
            raise CertificateError(
                f"{shown(kept)}: a live run is verified from its ledgers, and they are not here"
            )
        shutil.copytree(kept, fresh / "ledgers")


def _run(run: dict, study: str, fresh: Path, cores: str) -> None:
    command = [
        sys.executable,
        "-m",
        "compendium",
        "--profile",
        run["profile"],
        "--study",
        study,
        "--smoke",
        str(int(run["smoke"])),
        "--build",
        str(fresh),
        "--cores",
        cores,
    ]
    if subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False).returncode:
        raise CertificateError(f"the chain stopped at {study}: nothing was compared (its message is above)")


def _differences(old: dict, new: dict) -> list[str]:
    """What differs in the run's surroundings: files of code, parameters, packages, archives, machine, verdicts."""
    files, said = _changed(old["code"]["files"], new["code"]["files"]), []
    for name, before, after in files:
        said.append(
            f"code: {name} {'is new' if before is None else 'is gone' if after is None else 'changed'}"
        )
    for key in ("parameters", "environment", "machine", "verdicts"):
        for name, before, after in _changed(_flat(old[key]), _flat(new[key])):
            said.append(f"{key}: {name} was {_word(before)}, is {_word(after)}")
    if old["archives"] != new["archives"]:
        said.append("archives: other commits or checksums (data/sources.csv)")
    return said


def _flat(tree, at=()) -> dict:
    """{"a.b": leaf} of nested mappings; a list is a leaf."""
    if not isinstance(tree, dict):
        return {".".join(map(str, at)): tree}
    return {name: leaf for key, inner in tree.items() for name, leaf in _flat(inner, (*at, key)).items()}


def _changed(old: dict, new: dict) -> list[tuple]:
    """(name, before, after) of what differs; None where it is absent."""
    pairs = [(name, old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])]
    return [(name, before, after) for name, before, after in pairs if before != after]


def _word(value) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= LONG else f"{text[:LONG]} …"


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m compendium.reader.certificate", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="certify a finished run")
    writing.add_argument("--profile", default="demo", choices=PROFILES)
    writing.add_argument("--smoke", default="0")
    writing.add_argument("--build", default="", help="the run's folder (default: build/<profile>)")
    writing.add_argument("--checker", default="", help='who ran it: "Name <ORCID>"')
    verifying = commands.add_parser("verify", help="re-run a certificate's chain and say what changed")
    verifying.add_argument("file")
    verifying.add_argument("--cores", default="")
    verifying.add_argument("--build", default="", help="folder of the re-run (default: build/verify-<run>)")
    options = parser.parse_args(arguments)
    try:
        return _write(options) if options.command == "write" else _verify(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _write(options) -> int:
    smoke, out = is_small(options.smoke), run_folder(options.profile, options.smoke, options.build)
    bundle = write(options.profile, out, smoke=smoke, checker=options.checker)
    print(f"Certificate: {shown(out / 'certificate' / 'certificate.html')}   Bundle: {shown(bundle)}")
    return 0


def _verify(options) -> int:
    if not options.file:
        raise CertificateError(
            "say which: make verify-certificate FILE=build/released/certificate-released.zip"
        )
    facts, changes, differences = verify(Path(options.file), cores=options.cores, build=options.build)
    total = len(facts["manifest"])
    changed = [change for change in changes if change.kind != "equal"]
    for change in changed:
        print(f"{change.kind}: {change.file}{f': {change.detail}' if change.detail else ''}")
    for line in differences:
        print(f"note: {line}")
    print(
        f"{total - sum(change.kind != 'new' for change in changed)} of {total} exhibits equal"
        + (f", {len(changed)} not" if changed else ": the run is confirmed")
    )
    return 1 if changed else 0
