"""Before a live run: what it would ask and cost, and whether it may start. `python -m lib.live --study alienbench`.

A study takes part with `planned(p, out) -> {stage: requests}` in lib/studies/<study>_stages.py: every request its
stages would make, with stand-ins of typical length for texts that are not written yet.
"""

import argparse
import importlib
import importlib.util
import sys
from types import SimpleNamespace

import pandas as pd

from lib.chain import notebooks
from lib.models import BudgetError, Ledger, check_estimate, estimate, spent_in
from lib.params import ParamsError, is_small, profile_params, run_folder, study_params
from lib.paths import STUDIES, from_root
from lib.sources import budget_for, live_endpoint

PROFILE = "live"


def estimate_study(study: str, *, smoke: bool = False, out="build/live") -> pd.DataFrame:
    """Calls, tokens and dollars of a study's stages that its ledger does not hold yet (see `lib.models.estimate`).

    Raises ParamsError for malformed params or a study without live stages.
    """
    params = SimpleNamespace(**study_params(study, PROFILE, smoke))
    stages = _planner(study)(params, from_root(out))
    models = {request.model for requests in stages.values() for request in requests}
    ledger = from_root(out) / "ledgers" / f"{study}.sqlite"
    budget = budget_for(PROFILE, models, out)
    expected = (profile_params(PROFILE).get("expected_tokens") or {})
    tokens = {model: expected.get(model, expected.get("default")) for model in models}
    if not ledger.is_file():
        return estimate(stages, budget.prices, expected_tokens=tokens)
    with Ledger(ledger, readonly=True) as known:
        return estimate(stages, budget.prices, expected_tokens=tokens, ledger=known)


def check_live(study: str, *, smoke: bool = False, out="build/live") -> None:
    """Refuse a live run that cannot end well: no key, or an estimate above the ceiling on top of what is spent.

    Raises EndpointError or BudgetError (both ValueError), or ParamsError.
    """
    live_endpoint(PROFILE).key()
    total = None
    for name in live_studies(study):
        frame = estimate_study(name, smoke=smoke, out=out)
        total = frame.loc[[("total", "")]] if total is None else total + frame.loc[[("total", "")]]
    if total is not None:
        check_estimate(total, budget_for(PROFILE, [], out), spent_in(from_root(out) / "ledgers"))


def live_studies(study: str) -> list[str]:
    """The studies, among `study` or all, that can be asked live."""
    names = [name for name in STUDIES if study in ("all", name) and notebooks(name, PROFILE)]
    return [name for name in names if importlib.util.find_spec(f"lib.studies.{name}_stages")]


def _planner(study: str):
    if importlib.util.find_spec(f"lib.studies.{study}_stages") is None:
        raise ParamsError(f"study {study} has no live stages")
    return importlib.import_module(f"lib.studies.{study}_stages").planned


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="make live-estimate", description=__doc__.splitlines()[0])
    parser.add_argument("--study", default="all", choices=("all", *STUDIES))
    parser.add_argument("--smoke", default="0")
    options = parser.parse_args(arguments)
    smoke, out = is_small(options.smoke), run_folder(PROFILE, options.smoke)
    try:
        for study in live_studies(options.study):
            frame = estimate_study(study, smoke=smoke, out=out)
            print(f"{study}: what a live run would still ask\n")
            print(frame.to_string(float_format=lambda value: f"{value:,.2f}"), "\n")
            check = budget_for(PROFILE, [], out)
            try:
                check_estimate(frame, check)
            except BudgetError as error:
                print(f"{study} would be refused: {error} (budget in params/live.yaml; SMOKE=1 asks far less)\n")
        ceiling = (profile_params(PROFILE).get("budget") or {}).get("dollars")
        print(f"Ceiling (params/live.yaml, budget.dollars): {ceiling if ceiling is not None else 'none'}")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
