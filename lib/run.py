"""Run the chain: `python -m lib.run --profile demo --study all`. What `make tables` calls.

Snakemake decides what is stale and runs it; this command checks the input first, keeps two runs of one profile
apart, says when there was nothing to do, and closes with one summary line a study.
"""

import argparse
import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from lib.archive import ArchiveError, mirror_folder
from lib.cells import CellsError
from lib.chain import ChainError, check_params, notebooks
from lib.params import PROFILES, ParamsError
from lib.paths import ROOT, STUDIES, from_root, shown

NOTHING = "Nothing to be done"


def main(arguments=None) -> int:
    options = _parser().parse_args(arguments)
    smoke = str(options.smoke) not in ("", "0", "false", "False")
    out = from_root(options.build or f"build/{options.profile}{'-smoke' if smoke else ''}")
    try:
        books = notebooks(options.study, options.profile)
        for study in dict.fromkeys(book.study for book in books):
            check_params(study, [book for book in books if book.study == study], options.profile, smoke)
        if options.profile == "released":
            mirror_folder()
        if options.profile == "live":
            from lib.models.live import check_live  # only live needs the client

            check_live(options.study)
    except (ParamsError, ChainError, ArchiveError, CellsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not books:
        print(f"error: no notebook runs for STUDY={options.study} PROFILE={options.profile}", file=sys.stderr)
        return 2
    with one_run(out):
        code, nothing = _snakemake(options, smoke, out)
    if code:
        print(f"error: the chain stopped; what was finished is kept, `make tables` goes on from there "
              f"(profile {options.profile})", file=sys.stderr)
        return code
    if nothing:
        print(f"Nothing to do: all {len(books)} notebooks of profile {options.profile} are up to date.")
    from lib.verify import summary_lines  # pandas is slow to import: not before an error could be said

    print("\n".join(summary_lines(out)))
    print(f"Cells: {shown(out / 'cells.csv')}   Report: {shown(out / 'verification.html')}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lib.run", description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="demo", choices=PROFILES)
    parser.add_argument("--study", default="all", choices=("all", *STUDIES))
    parser.add_argument("--smoke", default="0", help="1: the small N of the profile's smoke section")
    parser.add_argument("--cores", default="", help="how many notebooks run side by side (default: every core)")
    parser.add_argument("--build", default="", help="folder for results (default: build/<profile>)")
    parser.add_argument("snakemake", nargs="*", help="further options for Snakemake, after --")
    return parser


def _snakemake(options, smoke: bool, out: Path) -> tuple[int, bool]:
    """Run Snakemake, passing its output on as it comes; (exit code, whether there was nothing to do)."""
    command = [
        sys.executable, "-m", "snakemake", "--cores", options.cores or str(os.cpu_count()),
        "--nolock", "--rerun-incomplete", "--keep-going", "--quiet", "host", "reason", "rules",
        # plain modification times, as make would: a touched file counts, whatever its size
        "--max-checksum-file-size", "0",
        *options.snakemake,
        "--config", f"profile={options.profile}", f"study={options.study}", f"smoke={int(smoke)}", f"build={out}",
    ]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    nothing = False
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            nothing |= NOTHING in line
            if wanted(line):
                print(line, end="", file=sys.stderr, flush=True)
    return process.returncode, nothing


def wanted(line: str) -> bool:
    """Whether a line of Snakemake's says something to the person who waits."""
    noise = ("Assuming unrestricted", "Using shell", "Provided cores", "Rules claiming", "Complete log", NOTHING)
    return bool(line.strip()) and not line.startswith(noise)


@contextmanager
def one_run(out: Path):
    """Hold `out` for this run; a second run waits for the first. A killed run leaves no lock behind."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another run is at work in {shown(out)}: waiting for it.", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
