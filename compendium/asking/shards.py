"""Large stages in shards: jobs that share nothing but ledger files.

    python -m compendium.asking.shards ask NOTEBOOK VALUES FOLDER 3/20     one shard asks its share, into a ledger of its own
    python -m compendium.asking.shards merge FOLDER                        all shards' replies into the study's ledger

FOLDER is <ledgers>/shards/<rule>/<stage>: stages of a notebook are taken one after the other, counted from 1.
A shard runs the notebook's own code up to its stage, finding the replies of earlier ones in the study's ledger,
asks those of the stage's missing requests that fall to it, and stops. What falls to a shard follows from a
request's hash, so shards need not know of each other. The notebook, run after the last merge, asks only what
stages beyond those need. A shard's ledger is `FOLDER/<ledger>--<label>--<shard>.sqlite`; each has one writer, on
one machine.
"""

import contextlib
import dataclasses
import io
import itertools
import json
import os
import re
import sys
from pathlib import Path

from compendium.asking.account import AccountFile, account_of
from compendium.asking.budget import Budget
from compendium.asking.ledger import Ledger
from compendium.frame.files import write_text_atomic
from compendium.frame.paths import ROOT, shown

BATCH = 500  # replies a transaction
WAIT = 600  # seconds for a ledger that another notebook of the study is writing to
NO_STAGE = "the notebook has no such stage"
NAME = re.compile(r"(?P<ledger>.+?)--(?P<stage>.+)--(?P<shard>\d+)\.sqlite")


class ShardError(ValueError):
    """A shard that cannot be; the message says what would be right."""


class Asked(BaseException):
    """Raised through the notebook's code when its shard is done; nothing that catches errors may catch it."""


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


def run_notebook(notebook: Path, values: dict, folder: Path, shard: Shard, stage: int = 1) -> bool:
    """Run a notebook's code up to its `stage`th stage and ask the shard's share; False where it has fewer.

    Earlier stages are read from the study's ledger, which must hold them whole: raises LedgerError where it does
    not. To be called in a fresh process, before anything has imported `run_stage`.
    """
    import matplotlib

    import compendium.asking.study
    import compendium.frame.page

    run_stage = compendium.asking.study.run_stage

    counted, held = itertools.count(1), contextlib.ExitStack()

    def take(requests, endpoint, ledger, **options):
        if next(counted) < stage:
            kept = held.enter_context(Ledger(ledger.path, readonly=True))
            return run_stage(requests, endpoint, kept, **{**options, "budget": None, "preflight": False})
        ask_share(requests, endpoint, ledger, folder=folder, shard=shard, **options)
        raise Asked

    compendium.asking.study.run_stage = take
    for name in (
        "close",
        "save_csv",
        "save_figure",
        "save_tables",
    ):  # a shard writes its ledger and nothing else
        setattr(compendium.frame.page.Page, name, lambda *_, **__: None)
    matplotlib.use("Agg")  # not by the environment: kernels started from here would inherit it
    os.chdir(notebook.parent)
    names = {"__name__": "__main__"}
    with held, contextlib.suppress(Asked), contextlib.redirect_stdout(io.StringIO()):
        for source in _code(notebook, values):
            exec(compile(source, notebook.name, "exec"), names)
        return False
    return True


def ask(notebook: Path, values: dict, folder: Path, shard: Shard) -> None:
    """One shard's job: ask its share and leave a mark; none of it where the stage before was not there either."""
    stage = int(folder.name)
    before = folder.parent / str(stage - 1) / "merged.done"
    ended = before.is_file() and before.read_text(encoding="utf-8") == NO_STAGE
    asked = not ended and run_notebook(notebook, values, folder, shard, stage)
    write_text_atomic(folder / f"{shard.index}-of-{shard.count}.done", "" if asked else NO_STAGE)


def _code(notebook: Path, values: dict):
    """The notebook's code cells as plain Python, the given parameters set where papermill would set them."""
    from IPython.core.inputtransformer2 import TransformerManager

    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield TransformerManager().transform_cell("".join(cell["source"]))
            if "parameters" in cell["metadata"].get("tags", []):
                yield "".join(f"{name} = {value!r}\n" for name, value in values.items())


def _word(label: str) -> str:
    return re.sub(r"[^\w.-]+|--+", "-", label)


def main(arguments) -> int:
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
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
