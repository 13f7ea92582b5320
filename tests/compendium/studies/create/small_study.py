"""The demo's study with its objects at hand, the models called in this process."""

from functools import cache
from types import SimpleNamespace

from compendium.frame.params import study_params
from compendium.studies.create import stages
from compendium.studies.create.simulated import respond
from tests.in_process import in_process


def ask(requests, label: str = "", **options):
    """As `asking` yields it."""
    return in_process(respond, requests, **options)


@cache
def demo() -> SimpleNamespace:
    """queries (list of Query), made_from, store, asked and paths (as `generate`), judged, judgements, traces."""
    p = SimpleNamespace(**study_params("create"))
    queries, made_from, store = stages.build_benchmark(p, ask)
    answers = stages.generate(p, queries, ask)
    judged, judgements, _ = stages.judge(p, answers.paths, ask)
    return SimpleNamespace(
        queries=queries,
        made_from=made_from,
        store=store,
        asked=answers.queries,
        paths=answers.paths,
        traces=answers.traces,
        judged=judged,
        judgements=judgements,
    )
