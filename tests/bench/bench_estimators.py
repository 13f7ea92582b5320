"""Estimators that take many resamples or many studies at once, against the same numbers made one by one.

Peers, in the same run: sorting every resample (`spearman`), every pair of units counted, statsmodels' mixed model and
one search a study (`crossed_model`). Marks: the ratios below; and equal numbers.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lib.mixed import crossed_effects, crossed_model  # noqa: E402
from lib.numeric import near  # noqa: E402
from lib.rankings import win_share  # noqa: E402
from lib.ranks import spearman  # noqa: E402
from lib.selection import _weighted_spearman  # noqa: E402

MARKS = {"resampled rho": 3, "share of wins": 4, "mixed model": 3, "many mixed models": 5}


def took(call):
    call()
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def resampled_rho(rng):
    """300 resamples of 200 units; the sorting way ranks each of them."""
    first, second = rng.normal(size=(2, 200)).round(1)
    draws = rng.integers(0, 200, (300, 200))
    weights = np.stack([np.bincount(row, minlength=200) for row in draws]).astype(float)
    slow, a = took(lambda: spearman(first[draws], second[draws]))
    fast, b = took(lambda: _weighted_spearman(first, second, weights))
    return slow, fast, np.array_equal(a, b)


def share_of_wins(rng):
    scores = rng.normal(size=(300, 8)).round(2)

    def every_pair():
        shares = np.full((8, 8), np.nan)
        for i, j in np.ndindex(8, 8):
            a, b = scores[:, i][:, None], scores[:, j]
            shares[i, j] = (((a > b) & ~near(a, b)) + 0.5 * near(a, b)).mean() if i != j else np.nan
        return np.nanmean(shares, axis=1)

    slow, a = took(every_pair)
    fast, b = took(lambda: win_share(scores, paired=False))
    return slow, fast, np.allclose(a, b, rtol=0, atol=1e-12)


def study(rng, studies):
    story, rater = rng.integers(0, 200, 441), rng.integers(0, 115, 441)
    Y = 0.55 * rng.normal(size=(200, studies))[story] + 0.6 * rng.normal(size=(115, studies))[rater]
    Y += 0.75 * rng.normal(size=Y.shape)
    return Y, pd.DataFrame({"mean": 1.0, "odd": story % 2}), {"story": story, "rater": rater}


def mixed_model(rng):
    import statsmodels.api as sm

    Y, terms, groups = study(rng, 1)
    parts = {name: f"0 + C({name})" for name in groups}
    frame = pd.DataFrame({"y": Y[:, 0], "odd": terms["odd"], **groups})

    def peer():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = sm.MixedLM.from_formula(
                "y ~ odd", groups=np.ones(len(frame)), vc_formula=parts, data=frame
            )
            return model.fit(reml=True).fe_params["odd"]

    slow, a = took(peer)
    fast, b = took(lambda: crossed_model(Y[:, 0], terms, groups).fixed.at["odd", "estimate"])
    return slow, fast, bool(abs(a - b) < 1e-3)


def many_mixed_models(rng):
    Y, terms, groups = study(rng, 60)
    slow, a = took(lambda: [crossed_model(y, terms, groups).fixed.at["odd", "estimate"] for y in Y.T])
    fast, b = took(lambda: crossed_effects(Y, terms, groups)[0][:, 1])
    return slow, fast, bool(np.abs(np.array(a) - b).max() < 0.02)


def main():
    rng, failed = np.random.default_rng(1), 0
    for name, mark in MARKS.items():
        slow, fast, same = globals()[name.replace(" ", "_")](rng)
        failed += slow / fast < mark or not same
        ratio = f"ratio {slow / fast:5.1f} (mark {mark}), same numbers: {same}"
        print(f"{name:<20} {1e3 * fast:8.1f} ms, peer {1e3 * slow:8.1f} ms, {ratio}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
