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
from pathlib import Path

import yaml

from compendium.frame.compare import Change, compare
from compendium.frame.files import sha256, write_text_atomic
from compendium.frame.params import LEDGERS_ONLY, PROFILES, is_small, profile_params, run_folder
from compendium.frame.paths import ROOT, figures_folder, from_root, shown
from compendium.reader.certificate.facts import CertificateError, facts_of, ledgers_of
from compendium.reader.certificate.page import crate, page, pdf
from compendium.reader.certificate.untrusted import NAME, WORD, opened, plain, read

LONG = 80  # characters of a value that a difference shows
MOST_NOTES = 200  # differences that are printed


def write(profile: str, out: Path, *, smoke: bool = False, checker: str = "") -> Path:
    """Write the certificate of the finished run in `out`; returns the zip.

    `checker` names who ran it ("Name <ORCID>"); left out, the certificate says that nobody has signed it.
    Raises CertificateError where there is no finished run.
    """
    if not WORD.fullmatch(out.name):
        raise CertificateError(
            f"{shown(out)}: a certified run's folder has a name of letters, digits and ._+-; rename it"
        )
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

    The run goes to build/verify-<digest of the certificate>, emptied first, or to `build`, which must not hold
    anything. No model is asked: a live run is repeated from its ledgers, with no key at hand. Raises
    CertificateError for a file that is no certificate, or a chain that stops.
    """
    with opened(file) as folder:
        facts = read(folder)
        run, fresh = facts["run"], _place(build, sha256(folder / NAME))
        _ledgers(facts, fresh)
        whole = all(count["executed"] == count["notebooks"] for count in run["coverage"].values())
        for study in ["all"] if whole else run["studies"]:
            _run(run, study, fresh, cores)
        new = facts_of(run["profile"], fresh, smoke=run["smoke"], checker="")
        changes = compare(folder, facts["manifest"], new["manifest"], lambda name: place_of(fresh, name))
        return facts, changes, _differences(facts, new)


def _place(build: str, digest: str) -> Path:
    """The empty folder of the re-run. What is removed follows from the certificate's hash, not from what it says."""
    name = f"verify-{digest[:16]}"
    fresh = from_root(build or f"build/{name}")
    if build:
        if fresh.exists() and (not fresh.is_dir() or any(fresh.iterdir())):
            raise CertificateError(f"{shown(fresh)}: should be a new or an empty folder")
        return fresh
    for path in (fresh, figures_folder(fresh)):
        if path.is_symlink():
            raise CertificateError(f"{shown(path)}: is a link; remove it")
        if path.exists():
            shutil.rmtree(path)
    return fresh


def _ledgers(facts: dict, fresh: Path) -> None:
    """A live run's replies, so that the re-run need not ask for them: those that the certificate states."""
    run = facts["run"]
    if not _is_live(run):
        return
    out = from_root("build") / run["name"]
    if not (out / "ledgers").is_dir():
        raise CertificateError(
            f"{shown(out / 'ledgers')}: a live run is verified from its ledgers, and they are not here"
        )
    shutil.copytree(out / "ledgers", fresh / "ledgers")
    if ledgers_of(fresh) != facts.get("ledgers"):
        raise CertificateError(
            f"{shown(out / 'ledgers')}: not the replies that the certificate states; a live run is verified "
            "from its own ledgers"
        )


def _is_live(run: dict) -> bool:
    return profile_params(run["profile"])["source"] == "endpoint"


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
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if _is_live(run):
        environment[LEDGERS_ONLY] = "1"
        environment.pop(profile_params(run["profile"]).get("endpoint", {}).get("key_env") or "", None)
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
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
    return "absent" if value is None else plain(value, LONG)


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
    verifying.add_argument(
        "--build", default="", help="a new folder for the re-run (default: build/verify-…)"
    )
    options = parser.parse_args(arguments)
    try:
        return _write(options) if options.command == "write" else _verify(options)
    except ValueError as error:
        print(f"error: {plain(error)}", file=sys.stderr)
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
        print(plain(f"{change.kind}: {change.file}{f': {change.detail}' if change.detail else ''}"))
    for line in differences[:MOST_NOTES]:
        print(plain(f"note: {line}"))
    if len(differences) > MOST_NOTES:
        print(f"note: and {len(differences) - MOST_NOTES} more differences")
    print(
        f"{total - sum(change.kind != 'new' for change in changed)} of {total} exhibits equal"
        + (f", {len(changed)} not" if changed else ": the run is confirmed")
    )
    return 1 if changed else 0
