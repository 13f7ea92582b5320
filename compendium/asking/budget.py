"""What calls cost, what they may cost, and the ceilings.

A ceiling is kept to the call: before each call the most it could add is set aside, and a call whose most
would pass a ceiling is not made. The most is knowable because a request says `max_tokens` and because no text
has more tokens than bytes: every token of a byte-level vocabulary stands for at least one byte.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from compendium.asking.errors import BudgetError

UNITS = ("dollars", "tokens", "calls")
SPENDING = (*UNITS, *(f"risk_{unit}" for unit in UNITS))  # what is spent, and what may be
MILLION = 1e6
BYTES_PER_TOKEN = 4  # of English prose, for estimates only; the bound counts a token a byte
MESSAGE_OVERHEAD = 16  # tokens a chat template puts around a message, at most
PROMPT_OVERHEAD = 64  # and around the whole prompt (some templates add a system line of their own)


@dataclass(frozen=True)
class Budget:
    """Prices and ceilings of a run.

    Parameters
    ----------
    dollars, tokens, calls : ceilings on the total (tokens: prompt plus completion); None: none.
    per_model : {model: {"dollars": ..., "tokens": ..., "calls": ...}}, further ceilings.
    prices : {model: {"input": $ per million prompt tokens, "output": $ per million completion tokens}}.
    default_max_tokens : taken as a request's `max_tokens` in the sums where it has none. With a ceiling in
        dollars or tokens and neither of the two, the most a call could cost is unknown and BudgetError says
        so.
    account : the file that all stages under these ceilings draw on (`compendium.asking.account`); None: one beside
        the stage's ledger.

    What the stage's own ledger records as spent always counts, so starting again never starts a fresh budget.
    Raises BudgetError for a price or ceiling that is not a number of at least 0 and for unknown names.
    """

    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None
    per_model: Mapping = field(default_factory=dict)
    prices: Mapping = field(default_factory=dict)
    default_max_tokens: int | None = None
    account: Path | str | None = None

    def __post_init__(self):
        for model, price in self.prices.items():
            if not isinstance(price, Mapping) or set(price) != {"input", "output"}:
                raise BudgetError(
                    f"prices, {model}: should be {{input: …, output: …}} in dollars per million tokens, "
                    f"not {price!r}"
                )
            for name, value in price.items():
                _amount(f"prices, {model}, {name}", value)
        for unit in (*UNITS, "default_max_tokens"):
            _amount(unit, getattr(self, unit), optional=True)
        for model, ceilings in self.per_model.items():
            if not isinstance(ceilings, Mapping):
                raise BudgetError(
                    f"per_model, {model}: should be {{dollars: …, tokens: …, calls: …}}, not {ceilings!r}"
                )
            for unit, value in ceilings.items():
                if unit not in UNITS:
                    raise BudgetError(f"per_model, {model}: {unit!r} is none of {', '.join(UNITS)}")
                _amount(f"per_model, {model}, {unit}", value, optional=True)

    @property
    def limits(self) -> list:
        """The ceilings that are set: [(scope, unit, ceiling)], scope "total" or a model."""
        total = [("total", unit, getattr(self, unit)) for unit in UNITS]
        each = [
            (model, unit, value)
            for model, ceilings in self.per_model.items()
            for unit, value in ceilings.items()
        ]
        return [limit for limit in total + each if limit[2] is not None]

    def cost(self, model: str, prompt_tokens: float, completion_tokens: float) -> float:
        """Dollars for these tokens; NaN where the model has no price."""
        price = self.prices.get(model)
        if price is None:
            return math.nan
        return (prompt_tokens * price["input"] + completion_tokens * price["output"]) / MILLION

    def worst(self, request) -> dict:
        """The most one call of `request` could add: {"dollars", "tokens", "calls"}; dollars NaN without a
        price.

        Raises BudgetError where a ceiling needs a price or a `max_tokens` that is not there.
        """
        units = {unit for scope, unit, _ in self.limits if scope in ("total", request.model)}
        longest = request.max_tokens if request.max_tokens is not None else self.default_max_tokens
        if longest is None and units & {"dollars", "tokens"}:
            raise BudgetError(
                f"{request.model}: a request without max_tokens has no bound on its cost; give it "
                "max_tokens, or the budget default_max_tokens",
                scope=request.model,
            )
        prompt, longest = prompt_token_bound(request.messages, request.extra), longest or 0
        dollars = self.cost(request.model, prompt, longest)
        if math.isnan(dollars) and "dollars" in units:
            raise BudgetError(
                f"{request.model}: no price, and a ceiling in dollars needs one; add the model to "
                "`prices` (input and output, dollars per million tokens)",
                scope=request.model,
            )
        return {"dollars": dollars, "tokens": prompt + longest, "calls": 1}


def prompt_token_bound(messages, extra=None) -> int:
    """No byte-level tokenizer makes more tokens of these messages (and what `extra` adds) than this."""
    prompt = PROMPT_OVERHEAD + sum(MESSAGE_OVERHEAD + _bytes(message["content"]) for message in messages)
    return prompt + (len(json.dumps(extra, default=str)) if extra else 0)


def prompt_token_guess(messages) -> int:
    """About as many tokens as these messages have (four bytes of prose a token)."""
    return sum(4 + math.ceil(_bytes(message["content"]) / BYTES_PER_TOKEN) for message in messages)


def text_token_guess(text: str) -> int:
    """About as many tokens as this text has (four bytes of prose a token)."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def estimate(stages: Mapping, prices: Mapping, *, expected_tokens=None, ledger=None) -> pd.DataFrame:
    """Calls, tokens and cost before anything is spent.

    Parameters
    ----------
    stages : {stage: requests}.
    prices : {model: {"input", "output"}} in dollars per million tokens.
    expected_tokens : completion tokens to expect of a reply: a number, {(stage, model): number}, or None for
        `max_tokens`.
    ledger : requests that it has a first reply to are left out of the count (they are not asked again).

    Returns a frame with a row a stage and model and a last row ("total", ""): columns calls, prompt_tokens,
    completion_tokens, cost (expected, dollars) and most (if each reply ran to `max_tokens`, without re-asks).
    Cost is NaN where a model has no price; `most` also where requests have no `max_tokens`.
    """
    budget = Budget(prices=prices)
    rows = {}
    for stage, requests in stages.items():
        requests = list(requests)
        known = ledger.have([request.digest for request in requests]) if ledger is not None else set()
        for request in requests:
            if request.digest in known:
                continue
            row = rows.setdefault((stage, request.model), dict.fromkeys(_ESTIMATE, 0.0))
            bound = request.max_tokens if request.max_tokens is not None else math.nan
            each = (
                expected_tokens.get((stage, request.model))
                if isinstance(expected_tokens, Mapping)
                else expected_tokens
            )
            prompt, reply = prompt_token_guess(request.messages), bound
            if each is not None:
                reply = each if math.isnan(bound) else min(each, bound)
            amounts = (
                1,
                prompt,
                reply,
                budget.cost(request.model, prompt, reply),
                budget.cost(request.model, prompt, bound),
            )
            for name, amount in zip(_ESTIMATE, amounts, strict=True):
                row[name] += amount
    index = (
        pd.MultiIndex.from_tuples(list(rows), names=["stage", "model"])
        if rows
        else pd.MultiIndex.from_arrays([[], []], names=["stage", "model"])
    )
    frame = pd.DataFrame(list(rows.values()), index=index, columns=list(_ESTIMATE), dtype=float)
    frame.loc[("total", ""), :] = frame.sum(skipna=False)
    return frame


_ESTIMATE = ("calls", "prompt_tokens", "completion_tokens", "cost", "most")


def check_estimate(frame: pd.DataFrame, budget: Budget, spent: Mapping | None = None) -> None:
    """Refuse to start where the estimate, on top of what is `spent`, is above a ceiling on the total.

    `spent` is what `compendium.asking.account.spent_on` says; what is at risk counts. Raises
    BudgetError, also where a ceiling in dollars meets a model without a price.
    """
    total = frame.loc[("total", "")]
    expected = {
        "dollars": total["cost"],
        "calls": total["calls"],
        "tokens": total["prompt_tokens"] + total["completion_tokens"],
    }
    for scope, unit, ceiling in budget.limits:
        if scope != "total":
            continue
        before = (spent or {}).get(unit, 0) + (spent or {}).get(f"risk_{unit}", 0)
        if math.isnan(expected[unit]):
            raise BudgetError(
                f"the estimate in {unit} is unknown (a model without a price, or a request without "
                f"max_tokens), and there is a ceiling of {shown(ceiling, unit)}",
                scope=scope,
                unit=unit,
            )
        if before + expected[unit] > ceiling:
            raise BudgetError(
                f"not started: the estimate is {shown(expected[unit], unit)} on top of "
                f"{shown(before, unit)} spent, "
                f"above the ceiling of {shown(ceiling, unit)}; raise the ceiling or ask less",
                scope=scope,
                unit=unit,
                ceiling=ceiling,
                spent=before,
                needed=expected[unit],
            )


def shown(amount, unit) -> str:
    """An amount as a message shows it: $4.98, 12,000 tokens, 3 calls."""
    return f"${amount:,.4f}" if unit == "dollars" else f"{amount:,.0f} {unit}"


def _amount(name, value, optional=False):
    if value is None and optional:
        return
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
    if not good:  # NaN fails the comparison
        raise BudgetError(
            f"{name}: should be a number of at least 0{' or None' if optional else ''}, not {value!r}"
        )


def _bytes(content) -> int:
    if isinstance(content, str):
        return len(content.encode())
    if isinstance(content, (list, tuple)):
        return sum(
            _bytes(part.get("text", "")) if isinstance(part, Mapping) else len(str(part)) for part in content
        )
    return 0 if content is None else len(str(content))
