"""What estimators that use linear algebra, exp or log give on fixed data, written as cells are (12 digits), and what the
processor's kernels themselves gave, to the last bit. Run by `tests.chain.test_portable` under several kernels."""

import json
import sys

import numpy as np
import pandas as pd

from lib import spectral
from lib.agreement import krippendorff_alpha
from lib.correlation import correlation_matrix
from lib.mixed import crossed_model
from lib.paired import paired_difference
from lib.plane import principal_plane
from lib.rankings import mean_replicates, rank_table, win_share
from lib.ranks import kendall_tau_b, spearman
from lib.resampling import bootstrap


def results():
    """(name, numbers) of each: whole ratings, so that means tie often."""
    rng = np.random.default_rng(5)
    ratings = np.clip(np.round(6 + rng.normal(size=(12, 60)) + rng.normal(size=60)), 1, 10)
    axis = spectral.two_sided(ratings, "row_mean")
    yield from zip(
        ("sigma", "left", "right", "consensus"), (axis.sigma, axis.left, axis.right, axis.consensus)
    )
    group = np.repeat(np.arange(6), 10)
    yield "group means", spectral.group_means(axis.consensus, group, 6)
    entrants = pd.DataFrame(ratings.reshape(120, 6))
    for paired in (True, False):
        replicates = mean_replicates(entrants, paired=paired, B=2000, rng=rng)
        yield f"ranks {paired}", rank_table(entrants.mean(), replicates).to_numpy()
        yield f"won {paired}", win_share(entrants, paired=paired)
    measures = pd.DataFrame(ratings.T + 0.1 * rng.normal(size=(60, 12)))
    plane = principal_plane(measures)
    yield from zip(("scores", "loadings", "share"), (plane.scores, plane.loadings, plane.share))
    yield "alpha", krippendorff_alpha(ratings, "interval")
    for method in ("spearman", "kendall"):
        for number, table in enumerate(correlation_matrix(measures, measures, method)):
            yield f"{method} {number}", table
    yield "rho, tau", [spearman(*ratings[:2]), kendall_tau_b(*ratings[:2])]
    yield "difference", paired_difference(*ratings[:2], B=500, rng=rng)[:3]
    yield "BCa", bootstrap(np.log(measures[0]), np.mean, B=500, rng=rng)[:3]
    rows = pd.DataFrame(
        {"y": ratings.ravel(), "item": np.tile(np.arange(60), 12), "rater": np.repeat(np.arange(12), 60)}
    )
    terms = pd.DataFrame({"mean": 1.0, "half": rows["item"] % 2})
    fit = crossed_model(rows["y"], terms, {"item": rows["item"], "rater": rows["rater"]})
    yield from (
        ("fixed", fit.fixed),
        ("variances", list(fit.variances.values())),
        ("likelihood", fit.log_likelihood),
    )


def kernels() -> str:
    """The bits of a product, exp and log, rounded nowhere."""
    x = np.random.default_rng(1).random(10_000) * 5
    return f"{(x @ x).hex()} {sum(np.exp(x).tolist()).hex()} {sum(np.log(x).tolist()).hex()}"


if __name__ == "__main__":
    found = {
        name: [f"{value:.12g}" for value in np.ravel(np.asarray(numbers, dtype=float))]
        for name, numbers in results()
    }
    json.dump({"kernels": kernels(), "results": found}, sys.stdout)
