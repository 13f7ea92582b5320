"""What a certificate states: exhibits with hashes, code, packages, archives, verdicts, time and machine."""

import hashlib
import json
import os
import platform
import subprocess
import sys
from datetime import datetime
from importlib import metadata
from pathlib import Path

import pandas as pd

from compendium.asking.ledger import Ledger
from compendium.frame.archive import digest, pinned, sources
from compendium.frame.chain import notebooks
from compendium.frame.files import read_yaml, sha256
from compendium.frame.params import profile_params, study_params
from compendium.frame.paths import ROOT, STUDIES, figures_folder, shown
from compendium.frame.verdict import OUTCOMES

VERSION = "https://codecheck.org.uk/spec/config/1.0/"
CODE = (
    "lib",
    "compendium",
    "notebooks",
    "params",
    "data",
    "Snakefile",
    "requirements.lock",
    "pyproject.toml",
)
# the files of a run that hold all its studies
SINGLE = ("cells.csv", "derived.csv", "verification.csv", "unprinted.csv", "independent.csv")


class CertificateError(ValueError):
    """A certificate that cannot be written or read; the message says what is missing and how to get it."""


def facts_of(profile: str, out: Path, *, smoke: bool, checker: str) -> dict:
    """Everything that a certificate of the run in `out` states, ready for YAML.

    Raises CertificateError where there is no finished run.
    """
    report, coverage = _report(profile, out), _coverage(profile, out)
    studies = [study for study, count in coverage.items() if count["executed"] == count["notebooks"]]
    if not studies:
        raise CertificateError(
            f"{shown(out)}: no study is finished there; run `make tables PROFILE={profile}` first"
        )
    executed = [path for path in sorted((out / "notebooks").glob("*/*.ipynb")) if path.parent.name in studies]
    citation = read_yaml(ROOT / "CITATION.cff", CertificateError, dict)
    start, end, busy = _times(executed)
    return {
        "version": VERSION,
        "paper": {
            "title": citation["title"],
            "authors": [{"name": _name(who)} for who in citation["authors"]],
            "reference": [entry["url"] for entry in citation.get("references", []) if "url" in entry],
        },
        "manifest": manifest_of(out, studies),
        "codechecker": [_checker(checker)] if checker else [],
        "summary": _summary(report, studies, coverage),
        "check_time": end,
        "run": {
            "name": out.name,
            "profile": profile,
            "smoke": smoke,
            "studies": studies,
            "coverage": coverage,
            "started": start,
            "ended": end,
            "notebooks": len(executed),
            "notebook_seconds": round(busy, 1),
        },
        "verdicts": _verdicts(report, studies),
        "code": _code(),
        "parameters": {study: study_params(study, profile=profile, smoke=smoke) for study in studies},
        "archives": _archives(studies) if profile_params(profile)["source"] == "archive" else [],
        "ledgers": ledgers_of(out),
        "environment": {"python": platform.python_version(), "packages": _packages()},
        "machine": _machine(),
    }


def manifest_of(out: Path, studies) -> list[dict]:
    """The exhibits of a run, {file, comment, sha256, bytes}: verdicts, the cells of each notebook, tables,
    figures.
    """
    figures = figures_folder(out)
    places = [(out, path) for name in SINGLE if (path := out / name).is_file()]
    for folder, root in ((out / "cells", out), (out / "tables", out), (figures, figures)):
        places += [
            (root, path)
            for study in studies
            for path in sorted((folder / study).rglob("*"))
            if path.is_file() and not path.name.startswith(".")
        ]
    entries = []
    for root, path in places:
        inside = path.relative_to(root).as_posix()
        name = inside if root == out else f"figures/{inside}"
        entries.append(
            {"file": name, "comment": _comment(name), "sha256": sha256(path), "bytes": path.stat().st_size}
        )
    return entries


def _report(profile: str, out: Path) -> pd.DataFrame:
    path = out / "verification.csv"
    if not path.is_file():
        raise CertificateError(f"{shown(path)}: no such file; run `make tables PROFILE={profile}` first")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _coverage(profile: str, out: Path) -> dict:
    """{study: {notebooks that it has under the profile, how many of them `out` holds executed}}."""
    books = notebooks("all", profile)
    return {
        study: {
            "notebooks": len(mine),
            "executed": sum((out / "cells" / study / f"{book.name}.csv").is_file() for book in mine),
        }
        for study in STUDIES
        if (mine := [book for book in books if book.study == study])
    }


def _comment(name: str) -> str:
    kind, _, rest = name.partition("/")
    stem = Path(rest).stem
    known = {
        "cells.csv": "every computed number",
        "derived.csv": "numbers recomputed from the papers' own",
        "verification.csv": "every printed number with its verdict",
        "unprinted.csv": "what the papers' files show but the papers do not print as a number",
        "independent.csv": "how many independent equations stand behind each count",
    }
    words = {
        "cells": f"numbers made by {rest.removesuffix('.csv')}",
        "tables": f"table {stem} of {rest.split('/')[0]}",
        "figures": f"figure {stem} of {rest.split('/')[0]}",
    }
    return known.get(name) or words.get(kind, name)


def _verdicts(report: pd.DataFrame, studies) -> dict:
    """{study: {printed, each outcome}}."""
    counts = {}
    for study in studies:
        mine = report[report["study"] == study]
        counts[study] = {
            "printed": len(mine),
            **{outcome: int((mine["outcome"] == outcome).sum()) for outcome in OUTCOMES},
        }
    return counts


def _summary(report: pd.DataFrame, studies, coverage: dict) -> str:
    """What the certificate covers, what it does not, and how the printed numbers of what it covers came out."""
    mine = report[report["study"].isin(studies)]
    counts = mine["outcome"].value_counts()
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts.get(outcome))
    left = [study for study in coverage if study not in studies]
    without = f" Not covered, because not or not wholly executed: {', '.join(left)}." if left else ""
    ran = f"Covers {', '.join(studies)}, executed from first notebook to last"
    return f"{ran}; {len(mine)} printed numbers{f': {said}' if said else ''}.{without}"


def _times(executed) -> tuple[str, str, float]:
    """(first start, last end, seconds that notebooks ran) from what papermill noted."""
    noted = [
        json.loads(path.read_text(encoding="utf-8"))["metadata"].get("papermill", {}) for path in executed
    ]
    noted = [entry for entry in noted if entry.get("start_time") and entry.get("end_time")]
    if not noted:
        raise CertificateError("no executed notebook says when it ran; run `make tables` again")
    times = [datetime.fromisoformat(entry[name]) for entry in noted for name in ("start_time", "end_time")]
    return (
        min(times).isoformat(timespec="seconds"),
        max(times).isoformat(timespec="seconds"),
        sum(entry.get("duration") or 0.0 for entry in noted),
    )


def _code() -> dict:
    """The commit, whether files differ from it, a hash of each file that the chain reads, and one over all."""
    files = {}
    for name in CODE:
        place = ROOT / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & set(
                path.relative_to(ROOT).parts
            ):
                files[path.relative_to(ROOT).as_posix()] = sha256(path)
    total = hashlib.sha256("".join(f"{name}\0{digest}\n" for name, digest in files.items()).encode())
    commit, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", *CODE)
    return {
        "commit": commit or "unknown",
        "uncommitted_changes": bool(changed) if commit else None,
        "sha256": total.hexdigest(),
        "files": files,
    }


def _git(*arguments) -> str:
    try:
        found = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def _archives(studies) -> list[dict]:
    """Each archive that a study reads: repository, commit, files, and one checksum over the pinned ones."""
    used = [name for name in sources() if any(name.startswith(study) for study in studies)]
    entries = []
    for name in used:
        first, files = sources()[name][0], pinned(name).values()
        entries.append(
            {
                "archive": name,
                "repository": [first["repository"]],
                "commit": [first["commit"]],
                "files": len(files),
                "bytes": sum(file.bytes or 0 for file in files),
                "sha256": digest(name),
            }
        )
    return entries


def ledgers_of(out: Path) -> list[dict]:
    """Each ledger: how many replies, and a hash of what was asked and answered (not of when)."""
    entries = []
    for path in sorted((out / "ledgers").glob("*.sqlite")):
        copy = out / f".{path.stem}.jsonl"
        try:
            with Ledger(path, readonly=True) as ledger:
                ledger.dump(copy)
                entries.append({"ledger": path.name, "replies": len(ledger), "sha256": sha256(copy)})
        finally:
            copy.unlink(missing_ok=True)
    return entries


def _packages() -> dict:
    """{package: installed version} of what requirements.lock names, and torch."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    names = [line.split("==")[0] for line in lines if "==" in line and not line.startswith("#")] + ["torch"]
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def _machine() -> dict:
    """The kind of machine; nothing that names it."""
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "byte_order": sys.byteorder,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _checker(text: str) -> dict:
    """`Name <ORCID>` as CODECHECK writes it."""
    name, _, orcid = text.partition("<")
    entry = {"name": name.strip()}
    return {**entry, "ORCID": orcid.strip(" >")} if orcid else entry


def _name(who: dict) -> str:
    return who.get("name") or " ".join(filter(None, [who.get("given-names"), who.get("family-names")]))
