"""Run the chain: `python -m compendium --profile demo --study all`. What `make tables` calls.

Snakemake decides what is stale and runs it; this command checks the input first, keeps two runs of one profile
apart, stops everything it started when it is stopped itself, and closes with one summary line a study.
"""

import argparse
import json
import os
import re
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

from compendium.frame import system, unchanged, warm
from compendium.frame.archive import Archive, ArchiveError, mirror_folder, sources
from compendium.frame.chain import check_params, forget_removed, notebooks, write_stamps
from compendium.frame.files import UNVERIFIED, marks, remove_leftovers, said
from compendium.frame.own_data import with_own
from compendium.frame.params import ACCEPT_MISSING, MISSING, OWN_DATA, PROFILES, is_small, run_folder
from compendium.frame.paths import ROOT, SPARE_HOME, STUDIES, below_root, check_place, shown
from compendium.frame.processes import run_group

NOTHING = "Nothing to be done"
VERBOSE = os.environ.get("VERBOSE", "") not in ("", "0")


def main(arguments=None, *, check_live=None) -> int:
    """`check_live(study, smoke=…, out=…)` raises a ValueError where a live run may not start."""
    options = _parser().parse_args(arguments)
    smoke, out = is_small(options.smoke), run_folder(options.profile, options.smoke, options.build)
    try:
        check_place()
        books, params = _checked(options, smoke, out, check_live)
        system.use_writable_home(SPARE_HOME)
        with one_run(out) as lock:
            for path in remove_leftovers(out):
                print(f"{shown(path)}: left by a run that was killed, removed", file=sys.stderr)
            _take_up_missing(books, out)
            plain = not options.snakemake  # an option of one's own may ask for what is done already
            before = unchanged.inputs(
                books, params, f"{options.profile} {options.study} {smoke} {options.data}"
            )
            seen = before + unchanged.outputs(books, out)
            code, nothing, stop = 0, plain and unchanged.done(out, options.study, seen), None
            if not nothing:
                write_stamps(books, out)
                forget_removed(options.profile, out)
                code, nothing, stop = _snakemake(options, smoke, out, lock)
                if plain and not (stop or code or _marks(out) or marks(out, UNVERIFIED)):
                    unchanged.remember(out, options.study, before + unchanged.outputs(books, out))
    except ValueError as error:  # every error of bad input is one, and its message says what would be right
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a folder that cannot be written, a full disk
        print(f"error: {said(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before anything was started
        stop, code = signal.SIGINT, 0
    if stop or code:
        reason = f"stopped by {stop.name}" if stop else "the chain stopped"
        print(
            f"error: {reason}; what was finished is kept, and the same command goes on from there"
            f"{'' if stop or VERBOSE else ' (VERBOSE=1 shows tracebacks)'}",
            file=sys.stderr,
        )
        return 128 + stop if stop else code
    if nothing:
        print(f"Nothing to do: all {len(books)} notebooks of profile {options.profile} are up to date.")
    if _verified(out):  # targets of one's own need not include the report
        from compendium.frame.verify import (
            summary_lines,  # pandas is slow to import: not before an error could be said
        )

        print("\n".join(summary_lines(out)))
        print(f"Cells: {shown(out / 'cells.csv')}   Report: {shown(out / 'verification.html')}")
    if (out / "folded").is_dir():
        from compendium.frame import folding

        print("".join(f"{line}\n" for line in folding.summary(out, {book.study for book in books})), end="")
    unverified = marks(out, UNVERIFIED)
    for mark in unverified:
        print(f"error: {mark['study']} is not verified: {mark['problem']}", file=sys.stderr)
    for mark in _marks(out):
        print(f"Missing, as accepted: {mark['study']}, {mark['stage']}: {mark['missing']}")
    return 1 if unverified else 0


def _checked(options, smoke: bool, out: Path, check_live) -> tuple:
    """(the notebooks to run, {study: its params}), everything they are given checked. Raises a ValueError saying what
    would be right."""
    options_known = ("STUDY", options.study, ("all", *STUDIES)), ("PROFILE", options.profile, PROFILES)
    for name, value, known in options_known:
        if value not in known:
            raise ValueError(f"{name}={value} is not one of {', '.join(known)}")
    if options.cores and not re.fullmatch(r"[1-9]\d*", options.cores):
        raise ValueError(f"CORES={options.cores} should be a whole number of at least 1")
    if set("{}") & set(str(below_root(out))):
        raise ValueError(f"the folder of results, {below_root(out)}, should have no braces in its name")
    try:
        books, params = checked_books(options.study, options.profile, smoke, options.data)
    except ValueError as error:
        sound = [
            study for study in STUDIES if options.study == "all" and _sound(study, options.profile, smoke)
        ]
        alone = ", ".join(f"STUDY={study}" for study in sound)
        raise ValueError(f"{error}{f' (sound, and can be run alone: {alone})' if sound else ''}") from None
    if not books:
        raise ValueError(f"no notebook runs for STUDY={options.study} PROFILE={options.profile}")
    if options.profile == "released" and mirror_folder() is None:
        _fetch_ahead({book.study for book in books if "mirror" in book.parameters})
    if options.profile == "live":
        if check_live is None:
            raise ValueError(
                "a live run starts with `python -m compendium`, which checks its key and its price"
            )
        check_live(options.study, smoke=smoke, out=out)
    return books, params


def _fetch_ahead(studies) -> None:
    """Fetch archives before the notebooks start, where a terminal can show how it goes. What cannot be had is said
    here and stops the notebooks that read it, no others."""
    for name in sorted(studies):
        try:
            if name in sources():
                Archive(name).fetch()
        except ArchiveError as error:
            print(f"WARNING: {error}", file=sys.stderr)


def checked_books(study: str, profile: str, smoke: bool, data: str = "") -> tuple:
    """(the notebooks of a run, {study: its params}), checked against each other. Raises a ValueError."""
    books, left_out = with_own(notebooks(study, profile), data)
    if left_out:
        names = ", ".join(f"{book.study}/{book.name}" for book in left_out)
        print(f"With the data in {data}, these are left out: {names}", file=sys.stderr)
    studies = dict.fromkeys(book.study for book in books)
    return books, {
        name: check_params(name, [book for book in books if book.study == name], profile, smoke)
        for name in studies
    }


def _sound(study: str, profile: str, smoke: bool) -> bool:
    try:
        return bool(checked_books(study, profile, smoke)[0])
    except ValueError:
        return False


def _marks(out: Path) -> list[dict]:
    """What stages of the run lack and went on without (`--accept-missing`)."""
    return marks(out, MISSING)


def _take_up_missing(books, out: Path) -> None:
    """Make stale what asks models in a study that lacks replies, so that they are asked for."""
    studies = {mark["study"] for mark in _marks(out)}
    for book in books:
        if book.study in studies and "source" in book.parameters:
            (out / "cells" / book.study / f"{book.name}.csv").unlink(missing_ok=True)


def _verified(out: Path) -> bool:
    """Whether the report in `out` was made, and after the last cells."""
    report = out / "verification.csv"
    cells = [path.stat().st_mtime for path in out.glob("cells/*/*.csv")]
    return report.is_file() and report.stat().st_mtime >= max(cells, default=0)


def _every_core() -> int:
    """How many cores this process may use (a container or batch job may have fewer than the machine)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m compendium", description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="demo", help=f"{', '.join(PROFILES)} (default: demo)")
    parser.add_argument("--study", default="all", help=f"all (the default), {', '.join(STUDIES)}")
    parser.add_argument("--smoke", default="0", help="1: the small N of the profile's smoke section")
    parser.add_argument(
        "--cores", default="", help="how many notebooks run side by side (default: every core)"
    )
    parser.add_argument("--build", default="", help="folder for results (default: build/<profile>)")
    parser.add_argument(
        "--data", default="", help="folder with data of one's own in the place of what models are asked for"
    )
    parser.add_argument(
        "--accept-missing",
        action="store_true",
        help="go on where models gave no reply, and say what is missing",
    )
    parser.add_argument("snakemake", nargs="*", help="further options for Snakemake, after --")
    return parser


def _snakemake(options, smoke: bool, out: Path, lock) -> tuple:
    """Run Snakemake, passing its output on as it comes.

    Returns (exit code, whether there was nothing to do, the signal that stopped it or None). It holds `lock` to
    its end, so that another run waits until the notebooks of this one are gone, also where this process was
    killed.
    """
    command = [
        *([sys.executable, "-m", "compendium.frame.warm"] if warm.available() else []),
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        options.cores or str(_every_core()),
        "--nolock",
        "--rerun-incomplete",
        "--keep-going",
        "--quiet",
        "host",
        "reason",
        "rules",
        # plain modification times, as make would: a touched file counts, whatever its size
        "--max-checksum-file-size",
        "0",
        *options.snakemake,
        "--config",
        f"profile={options.profile}",
        f"study={options.study}",
        f"smoke={int(smoke)}",
        f"data={json.dumps(options.data, ensure_ascii=False)}",
        f"build={json.dumps(str(below_root(out)), ensure_ascii=False)}",  # quoted: it is read as YAML
    ]
    environment = dict(os.environ)
    if options.accept_missing:
        environment[ACCEPT_MISSING] = "1"
    if options.data:
        environment[OWN_DATA] = "1"
    for name, first in (("PYTHONPATH", ROOT), ("PATH", Path(sys.executable).parent)):
        environment[name] = os.pathsep.join(filter(None, [str(first), os.environ.get(name)]))
    nothing, told = False, Progress()

    def line(text, stopping):
        nonlocal nothing
        nothing |= NOTHING in text
        shown_text = text if VERBOSE else "" if stopping else told.line(text)
        if shown_text:
            print(shown_text, file=sys.stderr, flush=True)

    code, stop = run_group(command, line=line, keep=(lock.fileno(),), cwd=ROOT, env=environment)
    return code, nothing, stop


class Progress:
    """Snakemake's output, cut down to one line a finished step and whatever is an error."""

    NOISE = re.compile(
        r"\s*$|Building DAG|Job stats|job +count|-{5,}|\S+ +\d+$|Select jobs|Execute \d+ jobs|\[\w{3} \w{3} +\d"
        r"|Elapsed time|Assuming unrestricted|Using shell|Provided cores|Rules claiming|Complete log"
        r"|Nothing to be done|\[IPKernelApp\]|RuleException:|CalledProcessError in file|Command 'set "
        r"|WorkflowError:|At least one job did not|Shutting down|Exiting because|host: |Kernel died while waiting"
        r"|.*Kernel is running over TCP|Removing output|(\S+\.(png|svg|csv|html|ipynb|tex|jsonl)(, )?)+$"
    )
    DONE = re.compile(r"Finished jobid: \d+ \(Rule: (\w+)\)")
    STEP = re.compile(r"(\d+ of \d+) steps")

    def __init__(self):
        self.rule = ""

    def line(self, text: str) -> str:
        """What to show for one line of Snakemake's: "" for nothing."""
        done, step = self.DONE.match(text), self.STEP.match(text)
        if done:
            self.rule = done[1]
            return ""
        if step:
            return f"[{step[1]}] {self.rule}"
        return "" if self.NOISE.match(text) else text


@contextmanager
def one_run(out: Path):
    """Hold `out` for this run and yield the lock's file; a second run waits for the first.

    A killed run leaves no lock behind. Raises OSError where `out` cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as handle:
        try:
            system.lock(handle)
        except BlockingIOError:
            print(f"Another run is at work in {shown(out)}: waiting for it.", file=sys.stderr)
            system.lock(handle, wait=True)
        yield handle


if __name__ == "__main__":
    sys.exit(main())
