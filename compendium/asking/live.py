"""Before a live run: what it would ask and cost, and whether it may start.

`python -m compendium.asking.live --study alienbench` says so. A study takes part with `planned(p, out) -> {stage: requests}` in
compendium/studies/<study>/stages.py: every request its stages would make, with stand-ins of typical length for texts that
are not written yet.
"""

import argparse
import importlib
import importlib.util
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import pandas as pd

from compendium.asking.account import spent_on
from compendium.asking.budget import check_estimate, estimate
from compendium.asking.errors import BudgetError
from compendium.asking.ledger import Ledger
from compendium.asking.sources import account_path, budget_for, ledgers_only, live_directory, price_of
from compendium.frame.chain import notebooks
from compendium.frame.params import ParamsError, is_small, profile_params, run_folder, study_params
from compendium.frame.paths import ACROSS, STUDIES, from_root
from compendium.frame.run import checked_books

PROFILE = "live"


def estimate_study(study: str, *, smoke: bool = False, out="build/live") -> pd.DataFrame:
    """Calls, tokens and dollars of a study's stages that its ledgers do not hold yet (see `compendium.asking.estimate`).

    Raises ParamsError for malformed params or a study without live stages.
    """
    params = SimpleNamespace(**study_params(study, PROFILE, smoke))
    planned = _planner(study)
    if planned is None:
        raise ParamsError(f"study {study} has no live stages")
    where = live_directory(PROFILE)
    stages = {stage: where.shaped(asked) for stage, asked in planned(params, from_root(out)).items()}
    models = {request.model for requests in stages.values() for request in requests}
    budget = budget_for(PROFILE, models)
    expected = profile_params(PROFILE).get("expected_tokens", {})
    tokens = {
        (stage, model): expected.get(model, expected.get(f"{study}/{stage}", expected.get("default")))
        for stage in stages
        for model in models
    }
    with ExitStack() as opened:
        paths = sorted((from_root(out) / "ledgers").glob(f"{study}*.sqlite"))
        known = [opened.enter_context(Ledger(path, readonly=True)) for path in paths]
        have = SimpleNamespace(have=lambda digests: set().union(*(ledger.have(digests) for ledger in known)))
        return estimate(stages, budget.prices, expected_tokens=tokens, ledger=have)


def check_live(study: str, *, smoke: bool = False, out="build/live") -> None:
    """Refuse a live run that cannot end well: no key, a proxy that is not spoken here, or an estimate above the
    ceiling on top of what is spent.

    A run from its ledgers alone asks nothing, so it may start. Raises EndpointError or BudgetError (both
    ValueError), or ParamsError.
    """
    if ledgers_only():
        return
    where, budget, total = live_directory(PROFILE), budget_for(PROFILE, []), None
    frames = [estimate_study(name, smoke=smoke, out=out) for name in live_studies(study)]
    asked = {model for frame in frames for _, model in frame.index if model}
    for endpoint in dict.fromkeys(where.model(model).endpoint for model in sorted(asked)):
        where.endpoints[endpoint].key()
        where.endpoints[endpoint].check_proxy()
    for frame in frames:
        total = frame.loc[[("total", "")]] if total is None else total + frame.loc[[("total", "")]]
    if total is not None:
        check_estimate(total, budget, _spent(out))


def live_studies(study: str) -> list[str]:
    """The studies, among `study` or all, that can be asked live."""
    whole = study in ("all", ACROSS)  # the chapter across takes what all others make
    asked = [name for name in STUDIES if (whole or name == study) and name != ACROSS]
    return [name for name in asked if notebooks(name, PROFILE) and _planner(name)]


def _spent(out) -> dict:
    """What the profile's account records, and the ledgers of `out` that it has not met."""
    with ExitStack() as opened:
        paths = sorted((from_root(out) / "ledgers").glob("*.sqlite"))
        return spent_on(
            account_path(PROFILE), [opened.enter_context(Ledger(path, readonly=True)) for path in paths]
        )


def _planner(study: str):
    """The study's `planned`, or None where it has no stages that can be asked live."""
    name = f"compendium.studies.{study}.stages"
    return getattr(importlib.import_module(name), "planned", None) if importlib.util.find_spec(name) else None


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="make live-estimate", description=__doc__.splitlines()[0])
    parser.add_argument("--study", default="all", choices=("all", *STUDIES))
    parser.add_argument("--smoke", default="0")
    options = parser.parse_args(arguments)
    smoke, out = is_small(options.smoke), run_folder(PROFILE, options.smoke)
    failed = False
    for study in live_studies(options.study):
        try:
            _show(study, smoke, out)
        except ValueError as error:  # of one study: the others are shown all the same
            print(f"error: {study}: {error}", file=sys.stderr)
            failed = True
    return 2 if failed or _refused(options.study, smoke, out) else 0


def _show(study, smoke, out) -> None:
    """Print a study's estimate."""
    frame, budget = estimate_study(study, smoke=smoke, out=out), budget_for(PROFILE, [])
    print(f"{study}: what a live run would still ask\n")
    counts = dict.fromkeys(("calls", "prompt_tokens", "completion_tokens"), "{:,.0f}".format)
    print(frame.to_string(float_format="{:,.2f}".format, formatters=counts), "\n")
    print("cost: dollars, with replies as long as expected; most: dollars, if every reply ran to its limit")
    where = live_directory(PROFILE)
    for model in sorted({model for _, model in frame.index if model}):
        price, source = price_of(model, PROFILE)
        each = f"${price['input']:g} in, ${price['output']:g} out" if price else "no price"
        print(f"{model} at {where.endpoint(model).base_url}: {each} a million tokens ({source})")
    spent = _spent(out)
    ceiling = "none" if budget.dollars is None else f"${budget.dollars:,.2f}"
    print(
        f"Ceiling (params/{PROFILE}.yaml, budget.dollars): {ceiling}; spent so far: ${spent['dollars']:,.2f}"
    )


def _refused(study, smoke, out) -> bool:
    """Whether `make tables` would refuse this run, by what it asks itself; says why."""
    try:
        checked_books(study, PROFILE, smoke)
        check_live(study, smoke=smoke, out=out)
    except BudgetError as error:
        print(f"would be refused: {error} (budget in params/{PROFILE}.yaml; SMOKE=1 asks far less)")
        return True
    except ValueError as error:
        print(f"would be refused: {error}")
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
