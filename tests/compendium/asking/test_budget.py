"""Prices, estimates and ceilings."""

import math

import pytest

from compendium.asking.budget import Budget, check_estimate, estimate, prompt_token_bound
from compendium.asking.errors import BudgetError
from compendium.asking.request import Request

PRICES = {"m": {"input": 2.0, "output": 10.0}}


def asked(number=0, model="m", **more):
    return Request(
        model, [{"role": "user", "content": "four" * 100}], seed=number, **{"max_tokens": 100, **more}
    )


def test_cost_of_tokens():
    """A million prompt tokens and half a million completion tokens at $2 and $10."""
    assert Budget(prices=PRICES).cost("m", 1_000_000, 500_000) == 2.0 + 5.0
    assert math.isnan(Budget(prices=PRICES).cost("other", 1, 1))


def test_the_most_a_call_can_cost_is_never_below_what_it_costs():
    request = asked()
    worst = Budget(prices=PRICES, dollars=1).worst(request)
    assert worst["tokens"] == prompt_token_bound(request.messages) + 100
    assert worst["dollars"] == pytest.approx((prompt_token_bound(request.messages) * 2 + 100 * 10) / 1e6)
    assert prompt_token_bound(request.messages) >= len("four" * 100)
    with_tools = asked(extra={"tools": ["x" * 1000]})
    assert Budget(prices=PRICES, dollars=1).worst(with_tools)["tokens"] > worst["tokens"] + 1000


def test_an_estimate_by_stage_and_model():
    stages = {
        "generate": [asked(i) for i in range(3)],
        "judge": [asked(9), asked(1, model="free", max_tokens=None)],
    }
    prices = {**PRICES, "free": {"input": 0.0, "output": 0.0}}
    frame = estimate(
        stages, prices, expected_tokens={("generate", "m"): 50, ("judge", "m"): 50, ("judge", "free"): 20}
    )
    assert list(frame.index) == [("generate", "m"), ("judge", "m"), ("judge", "free"), ("total", "")]
    prompt = 4 + 100  # four bytes a token
    assert frame.loc[("generate", "m")].to_dict() == pytest.approx(
        {
            "calls": 3,
            "prompt_tokens": 3 * prompt,
            "completion_tokens": 150,
            "cost": 3 * (prompt * 2 + 50 * 10) / 1e6,
            "most": 3 * (prompt * 2 + 100 * 10) / 1e6,
        }
    )
    # more than `max_tokens` is never expected of a reply
    longer = estimate(
        stages, prices, expected_tokens={("generate", "m"): 1000, ("judge", "m"): 50, ("judge", "free"): 20}
    ).loc[("generate", "m")]
    assert longer["completion_tokens"] == 300 and longer["cost"] == longer["most"]
    assert frame.loc[("total", ""), "calls"] == 5
    assert math.isnan(frame.loc[("total", ""), "most"]) and frame.loc[("total", ""), "cost"] > 0


def test_nothing_to_estimate():
    assert estimate({"judge": []}, PRICES).loc[("total", "")].tolist() == [0, 0, 0, 0, 0]


def test_an_estimate_above_the_ceiling_is_refused():
    frame = estimate({"judge": [asked(i) for i in range(10)]}, PRICES)
    cost = frame.loc[("total", ""), "cost"]
    check_estimate(frame, Budget(dollars=cost, tokens=2040, calls=10))
    check_estimate(frame, Budget())
    with pytest.raises(
        BudgetError, match=r"not started: the estimate is \$0.01.* above the ceiling of \$0.01"
    ):
        check_estimate(frame, Budget(dollars=cost * 0.99))
    with pytest.raises(BudgetError, match="on top of 1 calls spent, above the ceiling of 10 calls"):
        check_estimate(frame, Budget(calls=10), {"calls": 0, "risk_calls": 1})
    with pytest.raises(BudgetError, match="estimate in dollars is unknown"):
        check_estimate(estimate({"judge": [asked()]}, {}), Budget(dollars=5))


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"prices": {"m": {"input": 1}}}, "prices, m: should be"),
        ({"prices": {"m": 3}}, "prices, m: should be"),
        ({"prices": {"m": {"input": -1, "output": 1}}}, "prices, m, input"),
        ({"dollars": "5"}, "dollars: should be"),
        ({"tokens": float("nan")}, "tokens"),
        ({"per_model": {"m": {"euros": 1}}}, "'euros' is none of"),
        ({"per_model": {"m": {"calls": True}}}, "per_model, m, calls"),
    ],
)
def test_one_clear_error_for_a_wrong_budget(fields, words):
    with pytest.raises(BudgetError, match=words):
        Budget(**fields)


def test_a_ceiling_needs_a_price_and_a_bound():
    with pytest.raises(BudgetError, match="other: no price"):
        Budget(dollars=1, prices=PRICES).worst(asked(model="other"))
    with pytest.raises(BudgetError, match="without max_tokens"):
        Budget(tokens=1000).worst(asked(max_tokens=None))
    assert Budget(tokens=1000, default_max_tokens=70).worst(asked(max_tokens=None))["tokens"] > 70
    assert math.isnan(Budget(tokens=1000, prices=PRICES).worst(asked(model="other"))["dollars"])
    assert Budget(per_model={"m": {"dollars": 1}}).worst(asked(model="other", max_tokens=None))["calls"] == 1
