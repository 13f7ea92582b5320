"""Large stages in shards: jobs that share nothing but ledger files.

    python -m compendium.asking.shards ask NOTEBOOK VALUES FOLDER 3/20     one shard asks its share, into a ledger of its own
    python -m compendium.asking.shards merge FOLDER                        all shards' replies into the study's ledger

FOLDER is <ledgers>/shards/<rule>/<stage>: stages of a notebook are taken one after the other, counted from 1.
A shard's job runs the notebook as ever, told by COMPENDIUM_SHARD that it is one: `asking` then finds the replies of
earlier stages in the study's ledger, asks those of the stage's missing requests that fall to the shard, and stops the
notebook. What falls to a shard follows from a request's hash, so shards need not know of each other. The notebook,
run after the last merge, asks only what stages beyond those need. A shard's ledger is
`FOLDER/<ledger>--<label>--<shard>.sqlite`; each has one writer, on one machine.
"""

import dataclasses
import itertools
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from compendium.asking.account import AccountFile, account_of
from compendium.asking.budget import Budget
from compendium.asking.ledger import Ledger
from compendium.frame.files import write_text_atomic
from compendium.frame.paths import ROOT, shown

VARIABLE = "COMPENDIUM_SHARD"  # for `asking`, in the notebook's kernel
BATCH = 500  # replies a transaction
WAIT = 600  # seconds for a ledger that another notebook of the study is writing to
NO_STAGE = "the notebook has no such stage"
NAME = re.compile(r"(?P<ledger>.+?)--(?P<stage>.+)--(?P<shard>\d+)\.sqlite")


class ShardError(ValueError):
    """A shard that cannot be; the message says what would be right."""


class Asked(BaseException):
    """Ends the notebook of a shard that is done; nothing in it that catches errors may catch it."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """Number `index` of `count` shards, counted from 0."""

    index: int
    count: int

    @classmethod
    def read(cls, text: str) -> "Shard":
        """`3/20`, as the command line has it. Raises ShardError for anything else."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if not found or not int(found[1]) < int(found[2]):
            raise ShardError(f"a shard is written like 0/20 (the first of twenty), not {text!r}")
        return cls(int(found[1]), int(found[2]))

    def holds(self, request) -> bool:
        """Whether a request falls to this shard; every request falls to exactly one."""
        return int.from_bytes(request.digest[:8], "big") % self.count == self.index


def ask_share(
    requests,
    endpoint,
    ledger: Ledger,
    *,
    folder: Path,
    shard: Shard,
    budget: Budget | None = None,
    label: str = "stage",
    **options,
):
    """What `run_stage` would ask of this shard's requests, into a ledger of the shard's own; returns its
    StageResult.

    Requests that `ledger` answers already are left out. All shards draw on one account: that of `budget`, else the
    one beside `ledger`.
    """
    from compendium.asking.stage import run_stage

    mine = [request for request in requests if shard.holds(request)]
    known = ledger.have({request.digest for request in mine})
    mine = [request for request in mine if request.digest not in known]
    with Ledger(folder / f"{ledger.path.stem}--{_word(label)}--{shard.index}.sqlite") as own:
        if budget is not None:
            budget = dataclasses.replace(budget, account=account_of(budget, ledger.path))
            # before a merge adds to it what is counted already
            with AccountFile(budget.account) as account:
                account.meet(ledger)
        return run_stage(mine, endpoint, own, budget=budget, label=label, **options)


def merge(folder: Path, ledgers: Path) -> int:
    """Copy every reply of the shards in `folder` into the ledgers of the same name in `ledgers`; how many
    were new.

    May be broken off and repeated at any point. A shard's file is removed once its replies are in the ledger.
    """
    new = 0
    for path in sorted(folder.glob("*.sqlite")):
        found = NAME.fullmatch(path.name)
        if not found:
            raise ShardError(
                f"{shown(path)}: is no shard's ledger; those are named <ledger>--<stage>--<number>.sqlite"
            )
        study = Ledger(ledgers / f"{found['ledger']}.sqlite", wait=WAIT)
        with Ledger(path) as shard, study as whole, whole.writing():
            new += _copy(shard, whole)
        for ending in ("", "-wal", "-shm", ".lock"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    return new


def _copy(shard: Ledger, whole: Ledger) -> int:
    """The shard's replies that `whole` lacks, a batch a transaction; then what all its calls cost and may cost."""
    new, batch = 0, []
    for row in shard.rows():
        batch.append(row)
        if len(batch) == BATCH:
            new += _copy_batch(shard, whole, batch)
            batch = []
    new += _copy_batch(shard, whole, batch)
    whole.take_costs(shard)
    return new


def _copy_batch(shard: Ledger, whole: Ledger, rows) -> int:
    stored = whole.lookup({row["request"] for row in rows})
    held = {(request, row["attempt"]) for request, found in stored.items() for row in found}
    fresh = [row for row in rows if (row["request"], row["attempt"]) not in held]
    operations = [("reply", row, shard.content(row["request"])) for row in fresh]
    if operations:
        whole.commit(operations)
    return len(fresh)


class Task(NamedTuple):
    """What COMPENDIUM_SHARD says: `3/20:FOLDER`."""

    shard: Shard
    folder: Path

    @property
    def stage(self) -> int:
        """Which of the notebook's stages, counted from 1."""
        return int(self.folder.name)

    @property
    def ledgers(self) -> Path:
        """The folder of the study's own ledgers."""
        return self.folder.parents[2]

    def run_stage(self, requests, endpoint, ledger, **options):
        """In place of `run_stage`: earlier stages from the ledger, which must hold them whole (LedgerError where it
        does not); then the shard's share of its own stage, and `Asked`."""
        from compendium.asking.stage import run_stage

        if next(_stages) < self.stage:
            kept = Ledger(ledger.path, readonly=True)
            return run_stage(requests, endpoint, kept, **{**options, "budget": None, "preflight": False})
        ask_share(requests, endpoint, ledger, folder=self.folder, shard=self.shard, **options)
        raise Asked


_stages = itertools.count(1)  # of this process, which runs one notebook


def task() -> Task | None:
    """The shard that this process is, or None. Raises ShardError for a malformed COMPENDIUM_SHARD."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    shard, _, folder = text.partition(":")
    return Task(Shard.read(shard), Path(folder))


def run_notebook(notebook: Path, values: dict, folder: Path, shard: Shard) -> bool:
    """Run a notebook up to the stage that `folder` names and ask the shard's share; False where it has fewer.

    What the notebook itself writes goes to a folder that is thrown away: a shard leaves its ledger and nothing else.
    Raises NotebookError where a cell fails.
    """
    from compendium.frame.execute import NotebookError, execute

    with tempfile.TemporaryDirectory() as away:
        os.environ[VARIABLE] = f"{shard.index}/{shard.count}:{folder.resolve()}"
        try:
            execute(notebook, Path(away) / notebook.name, {**values, "out": away})
        except NotebookError as error:
            if error.name == Asked.__name__:
                return True
            raise
        finally:
            del os.environ[VARIABLE]
    return False


def ask(notebook: Path, values: dict, folder: Path, shard: Shard) -> None:
    """One shard's job: ask its share and leave a mark; none of it where the stage before was not there either."""
    stage = int(folder.name)
    before = folder.parent / str(stage - 1) / "merged.done"
    ended = before.is_file() and before.read_text(encoding="utf-8") == NO_STAGE
    asked = not ended and run_notebook(notebook, values, folder, shard)
    write_text_atomic(folder / f"{shard.index}-of-{shard.count}.done", "" if asked else NO_STAGE)


def _word(label: str) -> str:
    return re.sub(r"[^\w.-]+|--+", "-", label)


def main(arguments) -> int:
    from compendium.frame.execute import NotebookError

    try:
        match arguments:
            case ["ask", notebook, values, folder, text]:
                ask(ROOT / notebook, json.loads(values), Path(folder), Shard.read(text))
            case ["merge", folder]:
                folder = Path(folder)
                marks = {path.read_text(encoding="utf-8") for path in folder.glob("*-of-*.done")}
                new = merge(folder, folder.parents[2])
                print(f"{folder.parent.name}, stage {folder.name}: {new} replies merged")
                write_text_atomic(folder / "merged.done", NO_STAGE if marks == {NO_STAGE} else "")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (ValueError, NotebookError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
