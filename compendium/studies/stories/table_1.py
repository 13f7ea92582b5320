"""Stories: the two halves of Table 1, and the search for what is behind its printed p values."""

import numpy as np
import pandas as pd
from scipy import stats

from compendium.studies.stories.data import DIMENSIONS, HIGHEST, HUMAN, LOWEST, story_scores
from lib.ranks import mann_whitney

HALF = ("human_texts", "human_texts_se", "ai_texts", "ai_texts_se", "p")


def half(scores: pd.DataFrame, human) -> pd.DataFrame:
    """One half of Table 1: index dimension, columns HALF, from scores[story, dimension] and human[story]
    (booleans).

    Means and standard errors (sample deviation over the root of the number) over stories; p by the two-sided
    Mann-Whitney U test between stories by people and by models, with corrections for ties and continuity.
    Stories without a score are left out.
    """
    human = np.asarray(human, dtype=bool)
    rows = {}
    for name in scores.columns:
        groups = [scores[name][mask].dropna().to_numpy() for mask in (human, ~human)]
        numbers = [value for group in groups for value in (group.mean(), stats.sem(group))]
        rows[name] = [*numbers, mann_whitney(*groups).p]
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(HALF))


def mean_of_all(value: float, seen: int, repetitions: int) -> dict:
    """What a mean over `repetitions` may be when that over `seen` of them is `value`: {lo, hi}; {} where all were seen.

    The rest of the repetitions may be any grade. A standard error printed over all of them narrows this little: it
    bounds how the stories differ, and a constant added to each story's grades changes no difference.
    """
    rest = repetitions - seen
    if rest <= 0:
        return {}
    ends = (("lo", LOWEST), ("hi", HIGHEST))
    return {end: (seen * value + rest * grade) / repetitions for end, grade in ends}


def variants(ratings: pd.DataFrame, snapshot: int) -> pd.DataFrame:
    """Two-sided p values of people's and models' stories under plausible readings of "Mann-Whitney U Test".

    Index: what was tested; columns DIMENSIONS. The unit is the story and its mean rating unless the index
    says otherwise; `snapshot` is the number of first ratings of the last reading.
    """
    rows = {}
    for label, unit, middle in (
        ("story mean", "story", "mean"),
        ("story median", "story", "median"),
        ("text mean (languages apart)", ["story", "language"], "mean"),
        ("single ratings", "rating", "mean"),
    ):
        groups = ratings.groupby(unit)
        table = groups[list(DIMENSIONS)].agg(middle)
        rows[label] = _tests(table, groups["author"].first() == HUMAN)
    means = ratings.groupby("story")[list(DIMENSIONS)].mean()
    human = ratings.groupby("story")["author"].first() == HUMAN
    for label, test in (
        (
            "no correction for continuity",
            lambda a, b: stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False),
        ),
        ("exact, ties ignored", lambda a, b: stats.mannwhitneyu(a, b, method="exact")),
        ("Welch's t", lambda a, b: stats.ttest_ind(a, b, equal_var=False)),
        ("Student's t", stats.ttest_ind),
        ("Brunner-Munzel", stats.brunnermunzel),
        ("Kolmogorov-Smirnov", stats.ks_2samp),
    ):
        rows[label] = _tests(means, human, test)
    rows["means rounded to whole points"] = _tests(means.round(0), human)
    only = ratings.drop_duplicates(["session", "story"])
    rows["one rating a person and story"] = _tests(only.groupby("story")[list(DIMENSIONS)].mean(), human)
    rows[f"story mean, first {snapshot} ratings"] = _tests(*_first(ratings, snapshot))
    return pd.DataFrame(rows, index=list(DIMENSIONS)).T


def prefix_scan(ratings: pd.DataFrame, counts) -> pd.DataFrame:
    """The same test on the first `count` ratings of the sheet, for each of counts: index count, columns
    DIMENSIONS.
    """
    rows = {count: _tests(*_first(ratings, count)) for count in counts}
    return pd.DataFrame(rows, index=list(DIMENSIONS)).T.rename_axis("ratings")


def matched(found: pd.DataFrame, printed: pd.Series, decimals: int = 3) -> pd.DataFrame:
    """How each row of p values stands to the printed ones: `equal` at the printed rounding, `largest`
    difference.
    """
    gap = (found - printed.reindex(found.columns)).abs()
    return pd.DataFrame(
        {"equal": (gap <= 0.5 * 10.0**-decimals + 1e-12).sum(axis=1), "largest": gap.max(axis=1)}
    )


def _first(ratings, count):
    part = ratings.head(count)
    human = part.groupby("story")["author"].first() == HUMAN
    return story_scores(part, human.index), human


def _tests(table, human, test=None) -> list[float]:
    test = test or mann_whitney
    return [
        float(
            test(table[name][human].to_numpy(), table[name][~human].to_numpy()).p
            if test is mann_whitney
            else test(table[name][human], table[name][~human]).pvalue
        )
        for name in DIMENSIONS
    ]
