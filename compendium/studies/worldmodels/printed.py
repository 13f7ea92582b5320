"""The printed numbers of "Evaluating LLM-Generated World Models" checked against each other.

No archive of the study is public, so no printed number can be reproduced from data; many follow from other
printed numbers. `derive` recomputes those, carrying the rounding of the inputs along.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

CLAUDE, GPT, LLAMA, QWEN, DEEPSEEK = (
    "anthropic/claude-opus-5",
    "openai/gpt-5.6-sol",
    "meta-llama/llama-3.3-70b-instruct",
    "qwen/qwen3.8-27b",
    "deepseek/deepseek-v4-flash-0731",
)
MODELS = (CLAUDE, DEEPSEEK, GPT, LLAMA, QWEN)
GAMES = tuple(f"G{i}" for i in range(1, 10))
CASES = tuple(f"C{i}" for i in range(1, 15))
TOYS = ("T1.1", "T1.2", "T2.1", "T2.2", "T3.1", "T3.2", "T4.1", "T4.2", "T4.3", "T4.4")
BLANK = {(LLAMA, "C5"), (LLAMA, "C10"), (QWEN, "C11")}  # Table 13's dashes
NO_SCORE = {(QWEN, "C11")}  # of them, the one that is missing with location (Table 11, column L3)
LLMS, G6 = ("text-1", "corpus", "llms"), f"G6:{CLAUDE}"  # an address and a row that many rules name
CULTURAL_RUNS = tuple(f"{model}:{condition}" for model in MODELS for condition in ("anonymised", "located"))


@dataclass(frozen=True)
class Rule:
    """One printed number as a function of others.

    target : (exhibit, row, column); sources : the same, in the order of `function`'s array argument;
    function must rise or fall in each source on its own; how : one line for readers; counting : the
    function counts, so the sources' rounding is not carried along; repeats : the same number printed again.
    """

    target: tuple[str, str, str]
    sources: tuple[tuple[str, str, str], ...]
    function: Callable[[np.ndarray], float]
    how: str
    counting: bool = False
    repeats: bool = False


def derive(printed: pd.DataFrame) -> pd.DataFrame:
    """Recompute every number that a rule covers.

    printed : as compendium.frame.cells.published gives it. Returns exhibit, row, column, printed, value, lo, hi,
    agrees, how, repeats: `value` is what the printed midpoints give, [lo, hi] what their rounding allows, and
    `agrees` says whether [lo, hi] meets the printed number's own rounding interval. Raises KeyError for a rule whose
    address is not printed.
    """
    numbers = printed.set_index(["exhibit", "row", "column"])[["value", "decimals"]]
    value = numbers["value"].to_dict()
    half = {
        key: 0.5 * 10.0 ** -int(d) if pd.notna(d) and d > 0 else 0.0 for key, d in numbers["decimals"].items()
    }
    rows = []
    for rule in rules():
        inputs = np.array([value[source] for source in rule.sources])
        if np.isnan(inputs).any():
            raise KeyError(f"{rule.target}: a source is printed as missing")
        halves = np.array([0.0 if rule.counting else half[source] for source in rule.sources])
        low, high = _range(rule.function, inputs, halves)
        shown = value[rule.target]
        slack = half[rule.target] * (1 + 1e-9) + 1e-12
        agrees = low - slack <= shown <= high + slack
        middle = float(rule.function(inputs))
        rows.append([*rule.target, shown, middle, low, high, agrees, rule.how, rule.repeats])
    columns = ["exhibit", "row", "column", "printed", "value", "lo", "hi", "agrees", "how", "repeats"]
    return pd.DataFrame(rows, columns=columns)


def _range(function, inputs, halves) -> tuple[float, float]:
    """Least and greatest value over the inputs' rounding intervals, for a function monotone in each input."""
    signs = np.zeros(len(inputs))
    for i in np.flatnonzero(halves):
        step = np.zeros(len(inputs))
        step[i] = halves[i]
        signs[i] = np.sign(function(inputs + step) - function(inputs - step))
    return float(function(inputs - signs * halves)), float(function(inputs + signs * halves))


def rules() -> list[Rule]:
    """Every rule, table by table."""
    return [
        *_tables_1_to_4(),
        *_tables_7_to_10(),
        *_tables_11_to_14(),
        *_counts_in_text(),
        *_means_in_text(),
        *_appendix(),
        *_design(),
        *_gates_together(),
        *_semantics_by_case(),
    ]


def harmonic(pair) -> float:
    """F1 of coverage and precision."""
    return 2 * pair[0] * pair[1] / pair.sum()


def _over(exhibit, rows, column) -> tuple:
    """The addresses of one column over some rows."""
    return tuple((exhibit, row, column) for row in rows)


def _sum(target, sources, how):
    return Rule(target, tuple(sources), np.sum, how)


def _mean(target, sources, how):
    return Rule(target, tuple(sources), np.mean, how)


def _same(target, source, how=""):
    said = how or f"{source[0]}, {source[1]}, {source[2]}"
    return Rule(target, (source,), lambda v: v[0], said, repeats=True)


def _share(target, part, whole):
    return Rule(target, (part, whole), lambda v: 100 * v[0] / v[1], "percentage of the two counts")


def _tables_1_to_4():
    t4 = lambda column: _over("table-4", MODELS, column)
    made = [
        _sum(("table-1", "game", "lane1"), _over("table-8", MODELS, "lane1"), "sum over LLMs, Table 8"),
        _sum(("table-1", "game", "lane1_of"), _over("table-8", MODELS, "candidates"), "sum, Table 8"),
        _mean(
            ("table-1", "game", "f1"), _over("table-2", MODELS, "f1"), "mean of Table 2 (27 artifacts each)"
        ),
        _sum(("table-1", "game", "checklist"), _over("table-8", MODELS, "lane3"), "sum, Table 8"),
        _sum(("table-1", "situational", "lane1"), t4("pass"), "sum, Table 4"),
        _same(("table-1", "situational", "f1"), ("table-4", "all", "f1")),
        _sum(("table-1", "situational", "checklist"), t4("checklist"), "sum, Table 4"),
        _sum(("table-1", "cultural", "lane1"), _over("table-11", CULTURAL_RUNS, "lane1"), "sum, Table 11"),
        _sum(
            ("table-1", "cultural", "checklist"), _over("table-11", CULTURAL_RUNS, "lane3"), "sum, Table 11"
        ),
        _mean(
            ("table-1", "cultural", "f1"),
            [("table-5", "cultural:mean_f1", c) for c in CASES],
            "mean, Table 5",
        ),
        _mean(
            ("table-1", "cultural", "semantic_mean"),
            [("table-5", "cultural:mean_semantic", c) for c in CASES],
            "mean, Table 5",
        ),
    ]
    for column in ("first_pass_valid", "first_pass_of", "final_valid", "final_of", "attempts"):
        made.append(
            _sum(("table-3", "all", column), [("table-3", r, column) for r in "123"], "sum of the runs")
        )
    for row in ("1", "2", "3", "all"):
        made.append(
            _share(
                ("table-3", row, "first_pass_percent"),
                ("table-3", row, "first_pass_valid"),
                ("table-3", row, "first_pass_of"),
            )
        )
    for column in ("validate", "probe", "pass", "checklist", "bias_free"):
        made.append(_sum(("table-4", "all", column), t4(column), "sum over LLMs"))
    balanced = [("table-5", "situational:first_pass", f"S{i}") for i in range(1, 10)]
    made.append(_sum(("table-4", "all", "n"), balanced, "sum over S1 to S9, Table 5"))
    for column in ("coverage", "precision", "f1"):
        made.append(
            Rule(
                ("table-4", "all", column),
                (*t4("n"), *t4(column)),
                lambda v: v[:5] @ v[5:] / v[:5].sum(),
                "mean over LLMs, weighted by n",
            )
        )
    return made


def _tables_7_to_10():
    made = [
        Rule(
            ("table-7", t, "f1"),
            (("table-7", t, "coverage"), ("table-7", t, "precision")),
            harmonic,
            "harmonic mean of coverage and precision",
        )
        for t in TOYS
    ]
    for model in MODELS:
        for column in ("coverage", "f1"):
            made.append(
                _mean(
                    ("table-8", model, column),
                    [("table-9", model, f"{g}:{column}") for g in GAMES],
                    "mean over games, Table 9",
                )
            )
        made += [
            _same(("table-10", model, column), ("table-4", model, source))
            for column, source in (("validate", "validate"), ("probe", "probe"), ("lane1", "pass"))
        ]
        made.append(
            Rule(
                ("table-10", model, "lane1_percent"),
                (("table-10", model, "lane1"),),
                lambda v: 100 * v[0] / 27,
                "of 27",
            )
        )
    for column in ("validate", "probe", "lane1"):
        made.append(_sum(("table-10", "all", column), _over("table-10", MODELS, column), "sum over LLMs"))
    made.append(
        Rule(
            ("table-10", "all", "lane1_percent"),
            (("table-10", "all", "lane1"),),
            lambda v: 100 * v[0] / 135,
            "of 135",
        )
    )
    return made


def _tables_11_to_14():
    made = []
    for model in MODELS:
        t12 = lambda column, m=model: ("table-12", m, column)
        for condition in ("anonymised", "located"):
            run = f"{model}:{condition}"
            made += [
                _same(t12(f"semantic_{condition}"), ("table-11", run, "semantic")),
                _same(t12(f"f1_{condition}"), ("table-11", run, "f1")),
            ]
        made.append(
            _mean(
                ("table-11", f"{model}:located", "semantic"),
                [("table-14", c, model) for c in CASES if (model, c) not in NO_SCORE],
                "column mean of Table 14, cells without a candidate (Table 13) left out",
            )
        )
        for kind in ("semantic", "f1"):
            made.append(
                Rule(
                    t12(f"{kind}_delta"),
                    (t12(f"{kind}_located"), t12(f"{kind}_anonymised")),
                    lambda v: v[0] - v[1],
                    "with location minus anonymised",
                )
            )
        made.append(_same(t12("self_f1"), ("table-11", f"{model}:located", "self_f1")))
    for case in CASES:
        others = [("table-13", case, m) for m in (GPT, LLAMA, CLAUDE, QWEN) if (m, case) not in BLANK]
        made.append(_mean(("table-13", case, DEEPSEEK), others, "mean of the other LLMs (Table 12, caption)"))
        five = [("table-14", case, m) for m in MODELS if (m, case) not in NO_SCORE]
        made.append(
            _mean(("table-14", case, "panel"), five, "mean over the LLMs; missing cells are left out")
        )
    for model, case in NO_SCORE:
        others = [("table-14", case, m) for m in MODELS if m != model]
        made.append(
            Rule(
                ("table-14", case, model),
                (("table-14", case, "panel"), *others),
                lambda v: 5 * v[0] - v[1:].sum(),
                "what the panel mean leaves for it; Table 13 has a dash",
            )
        )
    return made


def _counts_in_text():
    t1 = lambda track, column: ("table-1", track, column)
    tiers = [("text-3", "tiers", tier) for tier in ("toy", "game", "situational", "cultural")]
    sizes = [t1(track, "lane1_of") for track in ("game", "situational", "cultural")]
    exact = _over("table-2", MODELS, "exact")
    others = tuple(("table-4", m, "pass") for m in (LLAMA, QWEN, DEEPSEEK))
    made = [
        _sum((text, "corpus", "scenarios"), tiers, "sum of the tiers") for text in ("text-abstract", "text-1")
    ]
    made += [
        _sum(target, sizes, "sum over tracks, Table 1")
        for target in (
            ("text-abstract", "corpus", "first_pass_generations"),
            ("text-6", "all", "candidates"),
            ("text-7", "all", "candidates"),
        )
    ]
    for text in ("text-abstract", "text-6", "text-7"):
        made += [
            _same((text, "game", "lane1"), t1("game", "lane1")),
            _same((text, "game", "lane1_of"), t1("game", "lane1_of")),
            _sum((text, "game", "exact"), exact, "sum, Table 2"),
            _same((text, "game", "mean_f1"), t1("game", "f1")),
        ]
    made += [
        _same(("text-abstract", "game", "exact_of"), t1("game", "lane1")),
        Rule(
            ("text-5", "game", "outputs_per_llm"),
            (("text-5", "game", "games"), ("text-5", "game", "requests_per_pair")),
            np.prod,
            "games x requests",
        ),
        Rule(
            ("text-5", "game", "outputs"),
            (("text-5", "game", "outputs_per_llm"), LLMS),
            np.prod,
            "outputs per LLM x LLMs",
        ),
        Rule(
            ("text-5", "cultural", "world_models"),
            (
                ("text-5", "cultural", "scenarios"),
                ("text-5", "cultural", "prompt_conditions"),
                ("text-5", "cultural", "outputs_per_cell"),
                LLMS,
            ),
            np.prod,
            "scenarios x conditions x outputs x LLMs",
        ),
        *[
            _same(("text-5", "lane1", track), t1(track, "lane1"))
            for track in ("game", "situational", "cultural")
        ],
        *[
            _same(("text-6", "game", column), ("table-3", "all", source))
            for column, source in (
                ("contract_valid", "first_pass_valid"),
                ("contract_valid_of", "first_pass_of"),
                ("contract_valid_percent", "first_pass_percent"),
            )
        ],
        *[
            _same(("text-6", track, column), t1(track, column))
            for track in ("situational", "cultural")
            for column in ("lane1", "lane1_of")
        ],
        *[_same(("text-6", f"situational:{m}", "lane1"), ("table-4", m, "pass")) for m in (CLAUDE, GPT)],
        Rule(("text-6", "situational", "lane1_others_least"), others, np.min, "least of the three, Table 4"),
        Rule(("text-6", "situational", "lane1_others_most"), others, np.max, "most of the three, Table 4"),
        _sum(("text-6", "cultural", "strict"), _over("table-11", CULTURAL_RUNS, "strict"), "sum, Table 11"),
        _same(("text-6", "cultural", "strict_of"), t1("cultural", "lane1_of")),
        _same(("text-6", "game", "valid"), t1("game", "lane1")),
        Rule(
            ("text-6", "game", "not_exact"),
            (("text-6", "game", "valid"), ("text-6", "game", "exact")),
            lambda v: v[0] - v[1],
            "valid less exact",
        ),
        Rule(("text-6", "game", "pairs"), (LLMS, ("text-5", "game", "games")), np.prod, "LLMs x games"),
        *[_same(("text-6", "game", column), t1("game", column)) for column in ("checklist", "checklist_of")],
        _same(("text-6", "situational", "checklist"), t1("situational", "checklist")),
        _sum(("text-6", "cultural", "checklist"), _over("table-11", CULTURAL_RUNS, "lane3"), "sum, Table 11"),
        Rule(
            ("text-6", "location", "llms_lower_f1"),
            _over("table-12", MODELS, "f1_delta"),
            lambda v: float((v < 0).sum()),
            "negative differences, Table 12",
            True,
        ),
    ]
    return made


def _means_in_text():
    case = lambda game: ("table-5", "game:mean_f1", game)
    four = (GPT, LLAMA, QWEN, DEEPSEEK)
    made = [
        _same((text, game, "mean_f1"), case(game))
        for text in ("text-6", "text-A.1")
        for game in ("G2", "G9", "G4", "G7")
    ]
    made += [
        *[
            _same(("text-6", f"game:{CLAUDE}", f"mean_{column}"), ("table-2", CLAUDE, column))
            for column in ("precision", "f1")
        ],
        _same(("text-6", f"game:{CLAUDE}", "artifacts_valid"), ("table-8", CLAUDE, "lane1")),
        _mean(
            ("text-6", "game", "mean_within_pair_sd"), _over("table-6", MODELS, "mean_sd"), "mean, Table 6"
        ),
        Rule(
            ("text-6", "stochastic_fraction", "p"),
            (("text-6", "stochastic_fraction", "rho"), ("text-5", "game", "games")),
            spearman_p,
            "two-sided p of this rho with nine games, by Student's t",
        ),
        *[
            _same(("text-6", track, "mean_f1"), ("table-1", track, "f1"))
            for track in ("situational", "cultural")
        ],
        _same(("text-6", "cultural", "mean_semantic"), ("table-1", "cultural", "semantic_mean")),
        *[
            _same(("text-6", f"situational:{CLAUDE}", column), ("table-4", CLAUDE, column))
            for column in ("coverage", "precision")
        ],
        *[
            _same(
                ("text-6", f"situational:{m}", "stochastic"), ("text-A.2", f"situational:{m}", "stochastic")
            )
            for m in (CLAUDE, GPT)
        ],
        *[
            _same((text, row, f"{kind}_delta"), ("table-12", QWEN, f"{kind}_delta"))
            for text, row in (("text-6", f"location:{QWEN}"), ("text-B.4", QWEN))
            for kind in ("semantic", "f1")
        ],
    ]
    for column in ("precision", "coverage"):
        sources = _over("table-4", four, column)
        made += [
            Rule(
                ("text-6", "situational:four", f"{column}_{end}"),
                sources,
                function,
                f"{end} of four, Table 4",
            )
            for end, function in (("least", np.min), ("most", np.max))
        ]
    return made


def spearman_p(pair) -> float:
    """Two-sided p of a rank correlation rho over n pairs, by Student's t with n - 2 degrees of freedom."""
    rho, n = pair
    return float(2 * stats.t.sf(abs(rho) * np.sqrt((n - 2) / (1 - rho**2)), n - 2))


def _appendix():
    toy_f1 = _over("table-7", TOYS, "f1")
    states = lambda case, model, place: ("table-15", f"{case}:{model}", place)
    bias = _over("table-11", CULTURAL_RUNS, "bias_free")
    made = [
        _same(("text-A.1", "S4", "first_pass"), ("table-5", "situational:first_pass", "S4")),
        _same(("text-A.1", "C7", "mean_f1"), ("table-5", "cultural:mean_f1", "C7")),
        _same(("text-A.1", "C7", "lane1_pass"), ("table-5", "cultural:lane1_pass", "C7")),
        _same(("text-A.1", "C7", "lane1_of"), ("text-A.1", "cultural", "n_per_case")),
        *[_same(("text-B.1", "T2.2", column), ("table-7", "T2.2", column)) for column in ("f1", "precision")],
        Rule(
            ("text-B.1", "toy", "exact"),
            toy_f1,
            lambda v: float((v > 0.999).sum()),
            "F1 of 1.00, Table 7",
            True,
        ),
        Rule(
            ("text-B.1", "toy", "sub_perfect"),
            toy_f1,
            lambda v: float((v < 0.999).sum()),
            "F1 below 1, Table 7",
            True,
        ),
        *[
            _same(("text-B.2", "game", column), ("table-1", "game", column))
            for column in ("lane1", "checklist")
        ],
        _sum(("text-B.2", "game", "bias_free"), _over("table-8", MODELS, "bias_free"), "sum, Table 8"),
        *[_same(("text-B.2", CLAUDE, column), ("table-8", CLAUDE, column)) for column in ("coverage", "f1")],
        *[
            Rule(("text-B.2", row, f"f1_{end}"), sources, function, "over Table 9")
            for row, sources in (
                (GPT, tuple(("table-9", GPT, f"{game}:f1") for game in GAMES)),
                *((game, _over("table-9", MODELS, f"{game}:f1")) for game in ("G2", "G6")),
            )
            for end, function in (("least", np.min), ("most", np.max))
        ],
        *[_same(("text-B.4", c, "panel"), ("table-14", c, "panel")) for c in ("C4", "C5")],
        Rule(
            ("text-B.4", f"missing:{QWEN}", "unparseable_located"),
            (("table-11", f"{QWEN}:located", "lane3"),),
            lambda v: 14 - v[0],
            "14 less those that reached Lane 3, Table 11",
        ),
        Rule(
            ("text-C", "cultural", "flags_least"), bias, lambda v: 14 - v.max(), "14 less bias-free, Table 11"
        ),
        Rule(
            ("text-C", "cultural", "flags_most"), bias, lambda v: 14 - v.min(), "14 less bias-free, Table 11"
        ),
        Rule(
            ("text-C", "locations", "pairs"),
            (LLMS, ("text-C", "locations", "conditions")),
            lambda v: 2 * v[0] * v[1],
            "two cases x LLMs x conditions",
        ),
        _same(("text-C", f"C9:{GPT}", "states_located"), states("C9", GPT, "original")),
        *[
            _same((text, f"C13:{LLAMA}", f"states_{place}"), states("C13", LLAMA, place))
            for text in ("text-6", "text-C")
            for place in ("india", "native_american")
        ],
        _same(("text-C", f"C13:{QWEN}", "states_china"), states("C13", QWEN, "china")),
        _same(("text-6", G6, "states"), ("figure-2", G6, "states")),
        Rule(
            ("figure-2", G6, "states"),
            tuple(("figure-2", G6, column) for column in ("type_states", "bid_levels", "tie_states")),
            lambda v: 1 + v[0] + v[0] * (v[1] ** 2 - v[1]) + 3 * v[2],
            "start, value states, an ending for each unequal pair of bids, ties with two endings each",
            True,
        ),
    ]
    return made


def _design():
    """Counts that the design fixes: so many models, cases, runs and conditions."""
    games = ("text-5", "game", "games")
    per_pair, runs = ("text-5", "game", "requests_per_pair"), ("1", "2", "3")
    product = lambda target, *sources, how: Rule(target, sources, np.prod, how)
    made = [product(("table-3", run, "first_pass_of"), LLMS, games, how="LLMs x games") for run in runs]
    made += [_same(("table-3", run, "final_of"), ("table-3", run, "first_pass_of")) for run in runs]
    made += [_same(("table-8", m, "candidates"), ("text-5", "game", "outputs_per_llm")) for m in MODELS]
    how = "Lane 2a is for those that pass the probe (caption)"
    made += [_same(("table-4", m, "n"), ("table-4", m, "probe"), how) for m in MODELS]
    made += [
        _same(("table-1", track, "checklist_of"), ("table-1", track, "lane1_of"))
        for track in ("game", "situational", "cultural")
    ]
    made += [
        _same(("text-6", track, "checklist_of"), ("table-1", track, "checklist_of"))
        for track in ("situational", "cultural")
    ]
    made += [
        _same(("table-1", "cultural", "lane1_of"), ("text-5", "cultural", "world_models")),
        product(("text-A.1", "game", "n_per_case"), LLMS, per_pair, how="LLMs x runs"),
        product(
            ("text-A.1", "situational", "attempts_per_case"),
            LLMS,
            ("text-5", "situational", "generations_at_most"),
            how="LLMs x generations",
        ),
        product(
            ("text-A.1", "cultural", "n_per_case"),
            LLMS,
            ("text-5", "cultural", "prompt_conditions"),
            how="LLMs x conditions",
        ),
        _same(("text-A.1", "S4", "first_pass_of"), ("text-A.1", "situational", "attempts_per_case")),
        _same(("text-abstract", "corpus", "llms"), LLMS),
        *[
            _same(("text-5", track, column), ("text-3", "tiers", track))
            for track, column in (("game", "games"), ("situational", "scenarios"), ("cultural", "scenarios"))
        ],
        _same(("text-B.1", "toy", "cases"), ("text-3", "tiers", "toy")),
        _same(("text-B.2", "game", "first_pass"), ("text-5", "game", "outputs")),
        _same(("text-7", "lane2a", "depth"), ("text-5", "lane2a", "transitions")),
        _same(("text-C", "cultural", "flags_of"), ("text-5", "cultural", "scenarios")),
        _same(("text-C", "game", "bias_free"), ("text-B.2", "game", "bias_free")),
        _same(("text-C", f"C9:{GPT}", "terminals_located"), ("text-6", f"C9:{GPT}", "terminals_located")),
        _same(("text-C", f"C13:{LLAMA}", "path_india"), ("text-6", f"C13:{LLAMA}", "path_india")),
        product(
            ("figure-2", G6, "tie_states"),
            ("figure-2", G6, "type_states"),
            ("figure-2", G6, "bid_levels"),
            how="a tie for each value state and equal pair of bids",
        ),
    ]
    return made


def _gates_together():
    """`overall` counts who passes several gates; the gates' counts fix it where all but one pass everybody."""
    both = lambda v: v[:-1].sum() - (len(v) - 2) * v[-1]
    how = "passes of the one gate that does not pass all"
    gates = ("lane1", "lane3", "bias_free")
    made = [
        Rule(
            ("table-7", t, "overall"), tuple(("table-7", t, gate) for gate in gates), np.min, "all gates pass"
        )
        for t in TOYS
    ]
    made += [
        Rule(("table-8", m, "overall"), tuple(("table-8", m, c) for c in (*gates, "candidates")), both, how)
        for m in MODELS
    ]
    for model in MODELS:
        anonymised, located = (f"{model}:{condition}" for condition in ("anonymised", "located"))
        self_f1 = (("table-11", run, "self_f1") for run in (anonymised, located))
        made.append(_same(*self_f1, "one number a model"))
        # DeepSeek's runs, and these two, lose candidates at both gates
        full = [
            run
            for run in (anonymised, located)
            if model != DEEPSEEK and run not in (f"{LLAMA}:anonymised", f"{QWEN}:located")
        ]
        for run in full:
            counts = (
                ("table-11", run, "lane1"),
                ("table-11", run, "lane3"),
                ("text-5", "cultural", "scenarios"),
            )
            made.append(Rule(("table-11", run, "overall"), counts, both, how))
    return made


def _semantics_by_case():
    """Tables 13 and 14 hold every cell's semantic score: with location, and less the difference without."""

    def without_location(v):  # scores, then as many differences
        return np.mean(v[: len(v) // 2] - v[len(v) // 2 :])

    made = []
    for model in (CLAUDE, DEEPSEEK, GPT, LLAMA):  # Qwen's anonymised C11 is in neither table
        cases = [c for c in CASES if (model, c) not in BLANK]
        made.append(
            Rule(
                ("table-11", f"{model}:anonymised", "semantic"),
                tuple((table, c, model) for table in ("table-14", "table-13") for c in cases),
                without_location,
                "mean of Table 14 less Table 13",
            )
        )
    for case in CASES:
        if not any(case == blank for _, blank in BLANK):
            made.append(
                Rule(
                    ("table-5", "cultural:mean_semantic", case),
                    tuple((table, case, m) for table in ("table-14", "table-13") for m in MODELS),
                    lambda v: np.mean(np.concatenate([v[:5], v[:5] - v[5:]])),
                    "mean of Table 14 and of Table 14 less Table 13, ten candidates",
                )
            )
    return made


def extreme_pairs(printed: pd.DataFrame) -> dict[str, int]:
    """Counts over Table 15, whose consequence levels stand in the notes: pairs printed, missing, and of each
    level (EXT, HIGH, LOW)."""
    table = printed[printed["exhibit"] == "table-15"]
    shown = table[table["value"].notna()]
    return {
        "printed": len(shown),
        "missing": len(table) - len(shown),
        **{level: int((shown["note"] == level).sum()) for level in ("EXT", "HIGH", "LOW")},
    }
