"""The external check: how the key-free ratings go with a keyed test, with what uncertainty.

Source: The Metanym Game, section 4.5 and Appendix D.1 (Tables 9-11). Twelve models are few, so two intervals
are
given for each correlation: Fisher's z (bivariate normal) and the BCa bootstrap over models.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from compendium.studies.metanym.game import MetanymError
from lib.correlation import fisher_interval
from lib.ranks import spearman
from lib.resampling import bootstrap, bootstrap_indices, percentile_interval
from lib.rounding import Printed

# the quantities of Tables 9 and 11 as means of the four components (Appendix D.1)
LADDER = {
    "EC": ("EC",),
    "GF": ("GF",),
    "EF": ("EF",),
    "GC": ("GC",),
    "G=(GF+GC)/2": ("GF", "GC"),
    "E=(EF+EC)/2": ("EF", "EC"),
    "(EF+GF)/2": ("EF", "GF"),
    "T": ("GF", "GC", "EF", "EC"),
}
REGIMES = ("GF", "GC", "EF", "EC", "(EF+GF)/2", "(GC+EF)/2", "T")


class Line(NamedTuple):
    """A least-squares line and the correlation it rests on."""

    slope: float
    intercept: float
    r: float


def correlation(x, y, axis: int = -1):
    """Pearson's r along an axis, x and y broadcast together; NaN where either does not vary."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    x, y = x - x.mean(axis=axis, keepdims=True), y - y.mean(axis=axis, keepdims=True)
    norm = np.sqrt((x * x).sum(axis=axis) * (y * y).sum(axis=axis))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(norm > 1e-12, (x * y).sum(axis=axis) / norm, np.nan)[()]


def bca_interval(x, y, *, B: int, rng: np.random.Generator, confidence: float = 0.95) -> tuple:
    """(lo, hi) of Pearson's r by the BCa bootstrap over pairs."""
    pairs = np.stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    found = bootstrap(
        pairs,
        lambda drawn, axis: correlation(drawn[0], drawn[1], axis),
        B=B,
        rng=rng,
        method="bca",
        confidence=confidence,
    )
    return found.lo, found.hi


def composite(components: pd.DataFrame, parts) -> pd.Series:
    """The mean of some components, by model."""
    absent = [part for part in parts if part not in components]
    if absent:
        raise MetanymError(
            f"the table of components has no column {absent[0]!r}; it has {', '.join(components)}"
        )
    return components[list(parts)].mean(axis=1, skipna=False)


def ladder(
    components: pd.DataFrame, external: pd.Series, *, B: int, rng: np.random.Generator, quantities=LADDER
) -> pd.DataFrame:
    """The aggregation ladder (Table 9): each quantity against the external scores, models matched by name.

    Columns pearson, spearman, fisher_lo, fisher_hi, bca_lo, bca_hi. quantities: {name: components averaged}.
    """
    y = matched(components, external)
    rows = {}
    for name, parts in quantities.items():
        x = composite(components, parts)
        r = float(correlation(x, y))
        fisher, bca = fisher_interval(r, len(x)), bca_interval(x, y, B=B, rng=rng)
        rows[name] = {
            "pearson": r,
            "spearman": float(spearman(x, y)),
            "fisher_lo": fisher[0],
            "fisher_hi": fisher[1],
            "bca_lo": bca[0],
            "bca_hi": bca[1],
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def regimes(components: pd.DataFrame, external: pd.Series, leading: int = 8, names=REGIMES) -> pd.DataFrame:
    """Pearson's r on the full roster and on the `leading` models by total (Table 11)."""
    y, rows = matched(components, external), {}
    total = composite(components, LADDER["T"])
    first = total.sort_values(ascending=False, kind="stable").index[:leading]
    for name in names:
        parts = LADDER.get(name) or tuple(name.strip("(").split(")")[0].split("+"))
        x = composite(components, parts)
        rows[name] = {
            "full_roster": float(correlation(x, y)),
            "leading_eight": float(correlation(x[first], y[first])),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def all_combinations(components: pd.DataFrame, external: pd.Series) -> pd.DataFrame:
    """Pearson's r of every equal-weight mean of components, best first (columns parts, n_parts, pearson)."""
    y, names, rows = matched(components, external), ("GF", "GC", "EF", "EC"), []
    for code in range(1, 2 ** len(names)):
        parts = [name for bit, name in enumerate(names) if code >> bit & 1]
        rows.append(
            {
                "parts": "+".join(parts),
                "n_parts": len(parts),
                "pearson": float(correlation(composite(components, parts), y)),
            }
        )
    return pd.DataFrame(rows).sort_values("pearson", ascending=False, ignore_index=True)


def matched(components: pd.DataFrame, external: pd.Series) -> pd.Series:
    """The external scores in the components' order. Raises MetanymError for a model without one."""
    absent = [name for name in components.index if name not in external.index or pd.isna(external[name])]
    if absent:
        raise MetanymError(f"no external score for {absent[0]!r}")
    return external.reindex(components.index).astype(float)


def least_squares(x, y, axis: int = -1) -> Line:
    """The least-squares line of y on x along an axis (arrays of any shape, broadcast)."""
    x, y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    mean_x, mean_y = x.mean(axis=axis, keepdims=True), y.mean(axis=axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = ((x - mean_x) * (y - mean_y)).sum(axis=axis) / ((x - mean_x) ** 2).sum(axis=axis)
    intercept = mean_y.squeeze(axis) - slope * mean_x.squeeze(axis)
    return Line(slope, intercept, correlation(x, y, axis))


def propagated_error(
    total: pd.Series,
    replicates,
    correct: pd.Series,
    n_questions: int,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Intervals of slope and r with the uncertainty of models, of measurement, and of both (Table 10).

    total[model]; replicates[b, model] of it (its measurement distribution); correct[model] of n_questions
    (binomial). Rows models, measurement, both; columns slope_lo, slope_hi, r_lo, r_hi; the points are
    `least_squares` of the total against per cent correct.
    """
    models, replicates = list(total.index), np.asarray(replicates, dtype=float)
    B, n = replicates.shape
    share, point = correct.reindex(models).to_numpy(dtype=float) / n_questions, total.to_numpy(dtype=float)
    drawn = bootstrap_indices(n, B, rng)
    # a model drawn twice is measured twice: each place gets a measurement of its own
    measured = replicates[rng.integers(0, B, size=(B, n)), drawn]
    cases = {
        "models": (point[drawn], share[drawn]),
        "measurement": (replicates, rng.binomial(n_questions, share, size=(B, n)) / n_questions),
        "both": (measured, rng.binomial(n_questions, share[drawn]) / n_questions),
    }
    rows = {}
    whole = least_squares(point, 100 * share)
    for name, (x, y) in cases.items():
        fit = least_squares(x, 100 * y)
        rows[name] = {}
        for key, values in (("slope", fit.slope), ("r", fit.r)):
            estimate = getattr(whole, key)
            found = percentile_interval(estimate, np.where(np.isfinite(values), values, np.nan), confidence)
            rows[name] |= {f"{key}_lo": found.lo, f"{key}_hi": found.hi}
    return pd.DataFrame.from_dict(rows, orient="index")


def interval_replicates(
    estimate: pd.Series, lo: pd.Series, hi: pd.Series, B: int, rng: np.random.Generator
) -> np.ndarray:
    """Replicates[b, model] that a printed 95% interval stands for: two half-normals, one a side of the
    estimate.

    For recomputing from a printed table, where the replicates themselves are not printed.
    """
    z = rng.standard_normal((B, len(estimate)))
    below, above = ((estimate - lo) / 1.959964).to_numpy(), ((hi - estimate) / 1.959964).to_numpy()
    return estimate.to_numpy() + np.where(z < 0, below, above) * z


def rounding_range(statistic, inputs, decimals, *, B: int, rng: np.random.Generator) -> Printed:
    """A number recomputed from printed inputs, with the range it takes when each input moves within its
    rounding.

    inputs[case, variable]; decimals[variable]: printed decimals. statistic(array[..., case, variable]) ->
    [...]. The
    range is that of B uniform draws: how far such a number may lie from one computed before rounding.
    """
    inputs = np.asarray(inputs, dtype=float)
    half = 0.5 * 10.0 ** -np.asarray(decimals, dtype=float)
    values = statistic(inputs + rng.uniform(-1, 1, size=(B, *inputs.shape)) * half)
    return Printed(float(statistic(inputs)), float(np.min(values)), float(np.max(values)))


def in_words(components: pd.DataFrame, external: pd.Series, anchor_model: str, leading: int = 8) -> dict:
    """The numbers about the agreement that section 4.5 and Appendix D.1 state: {(exhibit, row, column): value}.

    components: models x GF, GC, EF, EC of the total that is compared; the leading models are those by total.
    Statements about models that are not on the roster are left out.
    """
    y, total = matched(components, external), composite(components, LADDER["T"])
    each = regimes(components, external, leading, [*REGIMES, "(GF+GC+EF)/3"])
    full, best = each["full_roster"], each["leading_eight"]
    first = total.sort_values(ascending=False, kind="stable").index[:leading]
    rest = total.index.drop(anchor_model, errors="ignore")
    quarters = full[["GF", "GC", "EF", "EC"]]
    made = {
        ("text-4.5", "T", "leading_eight"): best["T"],
        ("text-4.5", "EF", "leading_eight"): best["EF"],
        ("text-4.5", "GC", "leading_eight"): best["GC"],
        ("text-4.5", "quarters", "min"): quarters.min(),
        ("text-4.5", "quarters", "max"): quarters.max(),
        ("text-4.5", "(EF+GF)/2", "pearson"): full["(EF+GF)/2"],
        ("text-4.5", "without_weakest", "pearson"): full["(GF+GC+EF)/3"],
        ("text-D.1", "(GF+GC+EF)/3", "pearson"): full["(GF+GC+EF)/3"],
        ("text-D.1", "(GC+EF)/2", "pearson"): full["(GC+EF)/2"],
        ("text-D.1", "EC", "pearson"): full["EC"],
        ("text-D.1", "T", "pearson"): full["T"],
        ("text-D.1", "pooled", "pearson"): full["T"],
        ("text-D.1", "pooled", "spearman"): float(spearman(total, y)),
        ("text-D.1", "pooled", "pearson_without_anchor"): float(correlation(total[rest], y[rest])),
        ("text-D.1", "gpqa_leading_eight", "spread"): float(np.ptp(y[first])),
    }
    for part in ("GF", "EF"):
        made["text-D.1", f"{part}_leading_eight", "min"] = components.loc[first, part].min()
        made["text-D.1", f"{part}_leading_eight", "max"] = components.loc[first, part].max()
    claude = [name for name in total.index if name.startswith("claude")]
    if len(claude) > 2:
        made["text-D.1", "anthropic", "spearman"] = float(spearman(total[claude], y[claude]))
    family = ["gpt-4o", "gpt-4o-2024-08-06"]
    if set(family) <= set(total.index):
        for part in ("GF", "GC"):
            made["text-D.1", "gpt-4o_family", part] = components.loc[family, part].mean()
        made |= {
            ("text-D.1", "gpt-4o_family", f"gpqa_{end}"): getattr(y[family], end)() for end in ("min", "max")
        }
    return made
