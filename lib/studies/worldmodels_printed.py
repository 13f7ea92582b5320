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
    "anthropic/claude-opus-5", "openai/gpt-5.6-sol", "meta-llama/llama-3.3-70b-instruct", "qwen/qwen3.8-27b",
    "deepseek/deepseek-v4-flash-0731")
MODELS = (CLAUDE, DEEPSEEK, GPT, LLAMA, QWEN)
GAMES = tuple(f"G{i}" for i in range(1, 10))
CASES = tuple(f"C{i}" for i in range(1, 15))
LOCATIONS = ("original", "india", "china", "native_american", "anonymised")
TOYS = ("T1.1", "T1.2", "T2.1", "T2.2", "T3.1", "T3.2", "T4.1", "T4.2", "T4.3", "T4.4")
CULTURAL_RUNS = tuple(f"{model}:{condition}" for model in MODELS for condition in ("anonymised", "located"))


@dataclass(frozen=True)
class Rule:
    """One printed number as a function of others.

    target : (exhibit, row, column); sources : the same, in the order of `function`'s array argument;
    function must rise or fall in each source on its own; how : one line for readers; counting : the
    function counts, so the sources' rounding is not carried along.
    """

    target: tuple[str, str, str]
    sources: tuple[tuple[str, str, str], ...]
    function: Callable[[np.ndarray], float]
    how: str
    counting: bool = False


def derive(printed: pd.DataFrame) -> pd.DataFrame:
    """Recompute every number that a rule covers.

    printed : as lib.cells.published gives it. Returns exhibit, row, column, printed, value, lo, hi, agrees, how:
    [lo, hi] is what the inputs' rounding allows, and `value` the point of it nearest to the printed number
    (so that a number which rounding explains is not called a contradiction); `agrees` says whether [lo, hi]
    meets the printed number's own rounding interval. Raises KeyError for a rule whose address is not printed.
    """
    numbers = printed.set_index(["exhibit", "row", "column"])[["value", "decimals"]]
    value = numbers["value"].to_dict()
    half = {key: 0.5 * 10.0 ** -int(d) if pd.notna(d) and d > 0 else 0.0 for key, d in numbers["decimals"].items()}
    rows = []
    for rule in rules():
        inputs = np.array([value[source] for source in rule.sources])
        if np.isnan(inputs).any():
            raise KeyError(f"{rule.target}: a source is printed as missing")
        halves = np.array([0.0 if rule.counting else half[source] for source in rule.sources])
        low, high = _range(rule.function, inputs, halves)
        shown = value[rule.target]
        nearest = float(np.clip(shown, low, high))
        agrees = abs(nearest - shown) <= half[rule.target] * (1 + 1e-9) + 1e-12
        rows.append([*rule.target, shown, nearest, low, high, agrees, rule.how])
    return pd.DataFrame(rows, columns=["exhibit", "row", "column", "printed", "value", "lo", "hi", "agrees", "how"])


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
    return [*_tables_1_to_4(), *_tables_7_to_10(), *_tables_11_to_14(), *_counts_in_text(), *_means_in_text(),
            *_appendix()]


def harmonic(pair) -> float:
    """F1 of coverage and precision."""
    return 2 * pair[0] * pair[1] / pair.sum()


def _sum(target, sources, how):
    return Rule(target, tuple(sources), np.sum, how)


def _mean(target, sources, how):
    return Rule(target, tuple(sources), np.mean, how)


def _same(target, source, how=""):
    return Rule(target, (source,), lambda v: v[0], how or f"{source[0]}, {source[1]}, {source[2]}")


def _share(target, part, whole):
    return Rule(target, (part, whole), lambda v: 100 * v[0] / v[1], "percentage of the two counts")


def _tables_1_to_4():
    t4 = lambda column: [("table-4", model, column) for model in MODELS]
    made = [
        _sum(("table-1", "game", "lane1"), [("table-8", m, "lane1") for m in MODELS], "sum over LLMs, Table 8"),
        _sum(("table-1", "game", "lane1_of"), [("table-8", m, "candidates") for m in MODELS], "sum, Table 8"),
        _mean(("table-1", "game", "f1"), [("table-2", m, "f1") for m in MODELS], "mean of Table 2 (27 artifacts each)"),
        _sum(("table-1", "game", "checklist"), [("table-8", m, "lane3") for m in MODELS], "sum, Table 8"),
        _sum(("table-1", "situational", "lane1"), t4("pass"), "sum, Table 4"),
        _same(("table-1", "situational", "f1"), ("table-4", "all", "f1")),
        _sum(("table-1", "situational", "checklist"), t4("checklist"), "sum, Table 4"),
        _sum(("table-1", "cultural", "lane1"), [("table-11", r, "lane1") for r in CULTURAL_RUNS], "sum, Table 11"),
        _sum(("table-1", "cultural", "checklist"), [("table-11", r, "lane3") for r in CULTURAL_RUNS], "sum, Table 11"),
        _mean(("table-1", "cultural", "f1"), [("table-5", "cultural:mean_f1", c) for c in CASES], "mean, Table 5"),
        _mean(("table-1", "cultural", "semantic_mean"), [("table-5", "cultural:mean_semantic", c) for c in CASES],
              "mean, Table 5"),
    ]
    for column in ("first_pass_valid", "first_pass_of", "final_valid", "final_of", "attempts"):
        made.append(_sum(("table-3", "all", column), [("table-3", r, column) for r in "123"], "sum of the runs"))
    for row in ("1", "2", "3", "all"):
        made.append(_share(("table-3", row, "first_pass_percent"), ("table-3", row, "first_pass_valid"),
                           ("table-3", row, "first_pass_of")))
    for column in ("validate", "probe", "pass", "n", "checklist", "bias_free"):
        made.append(_sum(("table-4", "all", column), t4(column), "sum over LLMs"))
    for column in ("coverage", "precision", "f1"):
        made.append(Rule(("table-4", "all", column), (*t4("n"), *t4(column)),
                         lambda v: v[:5] @ v[5:] / v[:5].sum(), "mean over LLMs, weighted by n"))
    return made


def _tables_7_to_10():
    made = [Rule(("table-7", t, "f1"), (("table-7", t, "coverage"), ("table-7", t, "precision")), harmonic,
                 "harmonic mean of coverage and precision") for t in TOYS]
    for model in MODELS:
        for column in ("coverage", "f1"):
            made.append(_mean(("table-8", model, column), [("table-9", model, f"{g}:{column}") for g in GAMES],
                              "mean over games, Table 9"))
        made += [_same(("table-10", model, column), ("table-4", model, source))
                 for column, source in (("validate", "validate"), ("probe", "probe"), ("lane1", "pass"))]
        made.append(Rule(("table-10", model, "lane1_percent"), (("table-10", model, "lane1"),),
                         lambda v: 100 * v[0] / 27, "of 27"))
    for column in ("validate", "probe", "lane1"):
        made.append(_sum(("table-10", "all", column), [("table-10", m, column) for m in MODELS], "sum over LLMs"))
    made.append(Rule(("table-10", "all", "lane1_percent"), (("table-10", "all", "lane1"),),
                     lambda v: 100 * v[0] / 135, "of 135"))
    return made


def _tables_11_to_14():
    made = []
    for model in MODELS:
        t12 = lambda column, m=model: ("table-12", m, column)
        for condition in ("anonymised", "located"):
            run = f"{model}:{condition}"
            made += [_same(t12(f"semantic_{condition}"), ("table-11", run, "semantic")),
                     _same(t12(f"f1_{condition}"), ("table-11", run, "f1"))]
        made.append(_mean(("table-11", f"{model}:located", "semantic"), [("table-14", c, model) for c in CASES],
                          "column mean of Table 14"))
        for kind in ("semantic", "f1"):
            made.append(Rule(t12(f"{kind}_delta"), (t12(f"{kind}_located"), t12(f"{kind}_anonymised")),
                             lambda v: v[0] - v[1], "with location minus anonymised"))
        made.append(_same(t12("self_f1"), ("table-11", f"{model}:located", "self_f1")))
    blank = {(LLAMA, "C5"), (LLAMA, "C10"), (QWEN, "C11")}
    for case in CASES:
        others = [("table-13", case, m) for m in (GPT, LLAMA, CLAUDE, QWEN) if (m, case) not in blank]
        made.append(_mean(("table-13", case, DEEPSEEK), others, "mean of the other LLMs (Table 12, caption)"))
        made.append(_mean(("table-14", case, "panel"), [("table-14", case, m) for m in MODELS], "mean of the five"))
    return made


def _counts_in_text():
    t1, tiers = (lambda track, column: ("table-1", track, column)), [("text-3", "tiers", t) for t in
                                                                     ("toy", "game", "situational", "cultural")]
    sizes = [t1(track, "lane1_of") for track in ("game", "situational", "cultural")]
    exact = [("table-2", m, "exact") for m in MODELS]
    others = tuple(("table-4", m, "pass") for m in (LLAMA, QWEN, DEEPSEEK))
    made = [_sum((text, "corpus", "scenarios"), tiers, "sum of the tiers") for text in ("text-abstract", "text-1")]
    made += [_sum(target, sizes, "sum over tracks, Table 1") for target in (
        ("text-abstract", "corpus", "first_pass_generations"), ("text-6", "all", "candidates"),
        ("text-7", "all", "candidates"))]
    for text in ("text-abstract", "text-6", "text-7"):
        made += [_same((text, "game", "lane1"), t1("game", "lane1")),
                 _same((text, "game", "lane1_of"), t1("game", "lane1_of")),
                 _sum((text, "game", "exact"), exact, "sum, Table 2"),
                 _same((text, "game", "mean_f1"), t1("game", "f1"))]
    made += [
        _same(("text-abstract", "game", "exact_of"), t1("game", "lane1")),
        Rule(("text-5", "game", "outputs_per_llm"),
             (("text-5", "game", "games"), ("text-5", "game", "requests_per_pair")), np.prod, "games x requests"),
        Rule(("text-5", "game", "outputs"), (("text-5", "game", "outputs_per_llm"), ("text-1", "corpus", "llms")),
             np.prod, "outputs per LLM x LLMs"),
        Rule(("text-5", "cultural", "world_models"),
             (("text-5", "cultural", "scenarios"), ("text-5", "cultural", "prompt_conditions"),
              ("text-5", "cultural", "outputs_per_cell"), ("text-1", "corpus", "llms")), np.prod,
             "scenarios x conditions x outputs x LLMs"),
        *[_same(("text-5", "lane1", track), t1(track, "lane1")) for track in ("game", "situational", "cultural")],
        *[_same(("text-6", "game", column), ("table-3", "all", source)) for column, source in (
            ("contract_valid", "first_pass_valid"), ("contract_valid_of", "first_pass_of"),
            ("contract_valid_percent", "first_pass_percent"))],
        *[_same(("text-6", track, column), t1(track, column)) for track in ("situational", "cultural")
          for column in ("lane1", "lane1_of")],
        *[_same(("text-6", f"situational:{m}", "lane1"), ("table-4", m, "pass")) for m in (CLAUDE, GPT)],
        Rule(("text-6", "situational", "lane1_others_least"), others, np.min, "least of the three, Table 4"),
        Rule(("text-6", "situational", "lane1_others_most"), others, np.max, "most of the three, Table 4"),
        _sum(("text-6", "cultural", "strict"), [("table-11", r, "strict") for r in CULTURAL_RUNS], "sum, Table 11"),
        _same(("text-6", "cultural", "strict_of"), t1("cultural", "lane1_of")),
        _same(("text-6", "game", "valid"), t1("game", "lane1")),
        Rule(("text-6", "game", "not_exact"), (("text-6", "game", "valid"), ("text-6", "game", "exact")),
             lambda v: v[0] - v[1], "valid less exact"),
        Rule(("text-6", "game", "pairs"), (("text-1", "corpus", "llms"), ("text-5", "game", "games")), np.prod,
             "LLMs x games"),
        *[_same(("text-6", "game", column), t1("game", column)) for column in ("checklist", "checklist_of")],
        *[_same(("text-6", "situational", column), t1("situational", column)) for column in ("checklist",)],
        _sum(("text-6", "cultural", "checklist"), [("table-11", r, "lane3") for r in CULTURAL_RUNS], "sum, Table 11"),
        Rule(("text-6", "location", "llms_lower_f1"), tuple(("table-12", m, "f1_delta") for m in MODELS),
             lambda v: float((v < 0).sum()), "negative differences, Table 12", True),
    ]
    return made


def _means_in_text():
    case = lambda game: ("table-5", "game:mean_f1", game)
    four = (GPT, LLAMA, QWEN, DEEPSEEK)
    made = [_same((text, game, "mean_f1"), case(game)) for text in ("text-6", "text-A.1")
            for game in ("G2", "G9", "G4", "G7")]
    made += [
        _same(("text-6", f"game:{CLAUDE}", "mean_precision"), ("table-2", CLAUDE, "precision")),
        _same(("text-6", f"game:{CLAUDE}", "mean_f1"), ("table-2", CLAUDE, "f1")),
        _same(("text-6", f"game:{CLAUDE}", "artifacts_valid"), ("table-8", CLAUDE, "lane1")),
        _mean(("text-6", "game", "mean_within_pair_sd"), [("table-6", m, "mean_sd") for m in MODELS], "mean, Table 6"),
        Rule(("text-6", "stochastic_fraction", "p"),
             (("text-6", "stochastic_fraction", "rho"), ("text-5", "game", "games")), spearman_p, "two-sided p of this rho with nine games, by Student's t"),
        *[_same(("text-6", track, "mean_f1"), ("table-1", track, "f1")) for track in ("situational", "cultural")],
        _same(("text-6", "cultural", "mean_semantic"), ("table-1", "cultural", "semantic_mean")),
        *[_same(("text-6", f"situational:{CLAUDE}", c), ("table-4", CLAUDE, c)) for c in ("coverage", "precision")],
        *[_same(("text-6", f"situational:{m}", "stochastic"), ("text-A.2", f"situational:{m}", "stochastic"))
          for m in (CLAUDE, GPT)],
        *[_same((text, row, f"{kind}_delta"), ("table-12", QWEN, f"{kind}_delta"))
          for text, row in (("text-6", f"location:{QWEN}"), ("text-B.4", QWEN)) for kind in ("semantic", "f1")],
    ]
    for column in ("precision", "coverage"):
        sources = tuple(("table-4", m, column) for m in four)
        made += [Rule(("text-6", "situational:four", f"{column}_least"), sources, np.min, "least of four, Table 4"),
                 Rule(("text-6", "situational:four", f"{column}_most"), sources, np.max, "most of four, Table 4")]
    return made


def spearman_p(pair) -> float:
    """Two-sided p of a rank correlation rho over n pairs, by Student's t with n - 2 degrees of freedom."""
    rho, n = pair
    return float(2 * stats.t.sf(abs(rho) * np.sqrt((n - 2) / (1 - rho**2)), n - 2))


def _appendix():
    t9 = lambda game, models: tuple(("table-9", m, f"{game}:f1") for m in models)
    toy_f1 = tuple(("table-7", t, "f1") for t in TOYS)
    states = lambda case, model, place: ("table-15", f"{case}:{model}", place)
    bias = tuple(("table-11", r, "bias_free") for r in CULTURAL_RUNS)
    made = [
        _same(("text-A.1", "S4", "first_pass"), ("table-5", "situational:first_pass", "S4")),
        _same(("text-A.1", "C7", "mean_f1"), ("table-5", "cultural:mean_f1", "C7")),
        _same(("text-A.1", "C7", "lane1_pass"), ("table-5", "cultural:lane1_pass", "C7")),
        _same(("text-A.1", "C7", "lane1_of"), ("text-A.1", "cultural", "n_per_case")),
        _same(("text-B.1", "T2.2", "f1"), ("table-7", "T2.2", "f1")),
        _same(("text-B.1", "T2.2", "precision"), ("table-7", "T2.2", "precision")),
        Rule(("text-B.1", "toy", "exact"), toy_f1, lambda v: float((v > 0.999).sum()), "F1 of 1.00, Table 7", True),
        Rule(("text-B.1", "toy", "sub_perfect"), toy_f1, lambda v: float((v < 0.999).sum()), "F1 below 1, Table 7",
             True),
        _same(("text-B.2", "game", "lane1"), ("table-1", "game", "lane1")),
        _same(("text-B.2", "game", "checklist"), ("table-1", "game", "checklist")),
        _sum(("text-B.2", "game", "bias_free"), [("table-8", m, "bias_free") for m in MODELS], "sum, Table 8"),
        _same(("text-B.2", CLAUDE, "coverage"), ("table-8", CLAUDE, "coverage")),
        _same(("text-B.2", CLAUDE, "f1"), ("table-8", CLAUDE, "f1")),
        *[Rule(("text-B.2", row, f"f1_{end}"), sources, function, "over Table 9")
          for row, sources in ((GPT, tuple(("table-9", GPT, f"{g}:f1") for g in GAMES)), ("G2", t9("G2", MODELS)),
                               ("G6", t9("G6", MODELS))) for end, function in (("least", np.min), ("most", np.max))],
        *[_same(("text-B.4", c, "panel"), ("table-14", c, "panel")) for c in ("C4", "C5")],
        Rule(("text-B.4", f"missing:{QWEN}", "unparseable_located"), (("table-11", f"{QWEN}:located", "lane3"),),
             lambda v: 14 - v[0], "14 less those that reached Lane 3, Table 11"),
        Rule(("text-C", "cultural", "flags_least"), bias, lambda v: 14 - v.max(), "14 less bias-free, Table 11"),
        Rule(("text-C", "cultural", "flags_most"), bias, lambda v: 14 - v.min(), "14 less bias-free, Table 11"),
        Rule(("text-C", "locations", "pairs"), (("text-1", "corpus", "llms"), ("text-C", "locations", "conditions")),
             lambda v: 2 * v[0] * v[1], "two cases x LLMs x conditions"),
        _same(("text-C", f"C9:{GPT}", "states_located"), states("C9", GPT, "original")),
        *[_same((text, f"C13:{LLAMA}", f"states_{place}"), states("C13", LLAMA, place))
          for text in ("text-6", "text-C") for place in ("india", "native_american")],
        _same(("text-C", f"C13:{QWEN}", "states_china"), states("C13", QWEN, "china")),
        _same(("text-6", f"G6:{CLAUDE}", "states"), ("figure-2", f"G6:{CLAUDE}", "states")),
        Rule(("figure-2", f"G6:{CLAUDE}", "states"),
             tuple(("figure-2", f"G6:{CLAUDE}", column) for column in ("type_states", "bid_levels", "tie_states")),
             lambda v: 1 + v[0] + v[0] * (v[1] ** 2 - v[1]) + 3 * v[2],
             "start, value states, an ending for each unequal pair of bids, ties with two endings each", True),
    ]
    return made


def extreme_pairs(printed: pd.DataFrame) -> dict[str, int]:
    """Counts over Table 15, whose consequence levels stand in the notes: pairs printed, missing, and of each
    level (EXT, HIGH, LOW)."""
    table = printed[printed["exhibit"] == "table-15"]
    shown = table[table["value"].notna()]
    return {"printed": len(shown), "missing": len(table) - len(shown),
            **{level: int((shown["note"] == level).sum()) for level in ("EXT", "HIGH", "LOW")}}


def possible_semantics(scores, most: int = 16) -> pd.DataFrame:
    """Which whole-number ratios k/n, n <= most, a printed score could be the square root of, rounded to four
    decimals and then, halves up, to the three that are printed (2/3 is printed as .817).

    Returns score, k, n for the smallest fitting n of each score, NaN where none fits. Nearly every entry of
    Table 14 fits, which shows that the semantic score is the geometric mean of coverage and an avoidance of
    one; the arithmetic and the harmonic mean would give other numbers.
    """
    rows = []
    for score in sorted(set(np.round(scores, 3))):
        fits = [(n, k) for n in range(1, most + 1) for k in range(n + 1)
                if abs(np.floor(round(np.sqrt(k / n), 4) * 1000 + 0.5 + 1e-9) / 1000 - score) < 1e-9]
        n, k = min(fits, default=(np.nan, np.nan))
        rows.append([score, k, n])
    return pd.DataFrame(rows, columns=["score", "k", "n"])
