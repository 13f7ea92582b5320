"""Asking a study's models: endpoint, budget and ledger put together, or its simulated people.

The one door to models and simulators: a run from archives never comes here.
"""

import importlib
from contextlib import contextmanager

from compendium.asking import shards
from compendium.asking.directory import directory_of
from compendium.asking.ledger import Ledger
from compendium.asking.missing import check_complete
from compendium.asking.sources import budget_for, endpoint_for, ledgers_only
from compendium.asking.stage import run_stage
from compendium.frame.params import check_source
from compendium.frame.paths import from_root

# seconds to wait for a ledger that is held: the kernel of a run that was just killed lives on for a moment
WAIT = 60


@contextmanager
def asking(study: str, models, *, source: str, profile: str, out, ledger: str | None = None):
    """Yield ask(requests, label, **options) -> StageResult: stages against one endpoint.

    Every reply goes to `out`/ledgers/<ledger>.sqlite (default: the study's name), within the profile's budget for
    `models`. Replies are read from the ledger, so read them inside the block. Notebooks that may run side by side
    need ledgers of their own. `options` are those of `compendium.asking.run_stage`. Of an endpoint a stage that lacks
    replies is a MissingReplies (`compendium.asking.missing`). Where COMPENDIUM_LEDGERS_ONLY is
    set, an endpoint is not asked: a reply that the ledger lacks is a LedgerError. Where COMPENDIUM_SHARD is set, the
    process is a shard's (`compendium.asking.shards`): its own stage ends with `Asked`.
    """
    shard = shards.task()
    ledgers = from_root(out) / "ledgers" if shard is None else shard.ledgers
    run = run_stage if shard is None else shard.run_stage
    frozen = source == "endpoint" and ledgers_only()
    with endpoint_for(check_source(source), study, profile) as endpoint:
        budget = budget_for(profile, models)
        with Ledger(ledgers / f"{ledger or study}.sqlite", readonly=frozen, wait=WAIT) as kept:

            def ask(requests, label, **options):
                where = directory_of(endpoint)
                result = run(where.shaped(requests), where, kept, budget=budget, label=label, **options)
                if source == "endpoint":
                    check_complete(result, study, ledger or study, from_root(out))
                return result

            yield ask


def ask_all(study: str, requests, label: str, *, source: str, profile: str, out, **options) -> tuple:
    """One stage of a study, its replies read: (list of replies, report)."""
    models = {request.model for request in requests}
    with asking(study, models, source=source, profile=profile, out=out) as ask:
        result = ask(requests, label, **options)
        return list(result.replies), result.report


def simulator(study: str):
    """The study's simulated people and world, where a stage of the demo asks them without a server."""
    return importlib.import_module(f"compendium.studies.{study}.simulated")
