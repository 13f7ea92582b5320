"""Run the chain: `python -m lib.run --profile demo --study all`. What `make tables` calls.

Snakemake decides what is stale and runs it; this command checks the input first, keeps two runs of one profile
apart, says when there was nothing to do, and closes with one summary line a study.
"""

import argparse
import fcntl
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from lib.archive import mirror_folder
from lib.chain import check_params, notebooks
from lib.params import PROFILES, is_small, run_folder
from lib.paths import ROOT, STUDIES, shown

NOTHING = "Nothing to be done"
VERBOSE = os.environ.get("VERBOSE", "") not in ("", "0")


def main(arguments=None) -> int:
    options = _parser().parse_args(arguments)
    smoke, out = is_small(options.smoke), run_folder(options.profile, options.smoke, options.build)
    try:
        books = notebooks(options.study, options.profile)
        for study in dict.fromkeys(book.study for book in books):
            check_params(study, [book for book in books if book.study == study], options.profile, smoke)
        if options.profile == "released":
            mirror_folder()
        if options.profile == "live":
            from lib.live import check_live  # only live needs the client

            check_live(options.study, smoke=smoke, out=out)
    except ValueError as error:  # every error of bad input is one, and its message says what would be right
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not books:
        print(f"error: no notebook runs for STUDY={options.study} PROFILE={options.profile}", file=sys.stderr)
        return 2
    with one_run(out):
        code, nothing = _snakemake(options, smoke, out)
    if code:
        print("error: the chain stopped; what was finished is kept, and the same command goes on from there "
              "(VERBOSE=1 shows tracebacks)", file=sys.stderr)
        return code
    if nothing:
        print(f"Nothing to do: all {len(books)} notebooks of profile {options.profile} are up to date.")
    if options.snakemake:  # targets of one's own need not include the report
        return 0
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
    nothing, told = False, Progress()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            nothing |= NOTHING in line
            said = line.rstrip("\n") if VERBOSE else told.line(line.rstrip("\n"))
            if said:
                print(said, file=sys.stderr, flush=True)
    return process.returncode, nothing


class Progress:
    """Snakemake's output, cut down to one line a finished step and whatever is an error."""

    NOISE = re.compile(
        r"\s*$|Building DAG|Job stats|job +count|-{5,}|\S+ +\d+$|Select jobs|Execute \d+ jobs|\[\w{3} \w{3} +\d|Elapsed time"
        r"|Assuming unrestricted|Using shell|Provided cores|Rules claiming|Complete log|Nothing to be done|\[IPKernelApp\]"
        r"|RuleException:|CalledProcessError in file|Command 'set |WorkflowError:|At least one job did not"
        r"|Shutting down|Exiting because|host: |.*Kernel is running over TCP|Removing output|(\S+\.(png|svg|csv|html|ipynb|tex|jsonl)(, )?)+$")
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
