"""What is true of the simulated AlienBench study, solved from the numbers that the paper prints.

From data/published/alienbench.csv:

1. rates[model, condition, feature]: the expected panel label. Sums over features are Table 3's condition
   means (Table 9's for the paraphrases), means over conditions are Table 6's rates (up to their rounding).
2. Judges agree except on *contested* sentences. How often each feature is contested follows from its nominal
   alpha (Table 7); which judge dissents, and to which side, from the alphas of the score (Tables 7 and 12).
3. The features of one description hang together just so much that the scores' SD within a condition is Table
   3's.
4. Tokens a description: log-normal, so that the mean score per 100 tokens is Table 3's, with a spread from
   its interval.
5. Of people the paper prints the rates alone. How widely their scores spread and how far judges agree on each
   feature is taken from the authors' released extractions (`people` in data/simulated/alienbench.yaml).

A description's feature departs or not (x); it may be contested, with a probability that depends on x; then
one judge labels it against the other two. The panel's expected label is `rates` exactly: contested features
of both kinds cancel, so judges' errors move no margin.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass

import numpy as np

from compendium.frame.paths import DATA
from compendium.studies.alienbench.simulated import margins

PUBLISHED = DATA / "published" / "alienbench.csv"
HUMAN = "human"
CONDITIONS = (
    "baseline",
    "departure_primed",
    "constrained_no_light",
    "constrained_high_gravity",
    "constrained_ammonia",
    "detailed_description",
)
FEATURES = (
    "symmetry",
    "sensory_organs",
    "locomotion",
    "body_plan",
    "skin_covering",
    "reproduction",
    "metabolism",
    "communication",
    "habitat",
    "cognition",
)
TWO_SIDED_95 = 1.959963984540054  # the printed intervals' half width in standard errors
LONGEST_SPREAD, SHORTEST_SPREAD = 0.6, 0.15  # of log tokens; printed intervals are too coarse to say more


@dataclass(frozen=True)
class Truth:
    """The known truth. Axes: model (the paper's order, then `human`), condition (six, then the paraphrases),
    feature.

    rates[model, condition, feature] : expected label, averaged over the panel; NaN where nobody is asked.
    states[model, condition, state] : probability of each of the 1,024 patterns x (see `margins.patterns`).
    contested[2, model, condition, feature] : probability of being contested, given x = 0 and x = 1.
    votes[vote, judge] and vote_odds[vote] : the six ways in which one of three judges dissents, and their
        odds.
    log_tokens[model, 2] : mean and SD of the logarithm of completion tokens (NaN for `human`).
    printed : the printed numbers used, {(exhibit, row, column): (value, lo, hi)}.
    """

    models: tuple
    conditions: tuple
    features: tuple
    judges: tuple
    rates: np.ndarray
    states: np.ndarray
    contested: np.ndarray
    votes: np.ndarray
    vote_odds: np.ndarray
    log_tokens: np.ndarray
    printed: dict

    def place(self, model: str, condition: str) -> tuple[int, int]:
        """The indices of a model and a condition. Raises ValueError where the study has no such cell."""
        if model in self.models and condition in self.conditions:
            at = self.models.index(model), self.conditions.index(condition)
            if np.isfinite(self.rates[at][0]):
                return at
        raise ValueError(f"no simulated texts of model {model!r} under condition {condition!r}")

    def expected_alphas(self) -> dict:
        """Alphas of the main study in expectation: each feature's, `total`, and `without <judge>`."""
        main = _Main(self.rates[:-1, : len(CONDITIONS)].reshape(-1, len(self.features)))
        panel = main.panel(self.vote_odds, self.votes, self._feature_alphas())
        covariance = margins.covariances(self.states[:-1, : len(CONDITIONS)].reshape(len(main.rates), -1))
        everyone, pairs = main.alphas(panel, covariance)
        return {
            **dict(zip(self.features, self._feature_alphas())),
            "total": everyone,
            **{f"without {judge}": pairs[at] for at, judge in enumerate(self.judges)},
        }

    def people_alphas(self) -> dict:
        """Alphas of the human descriptions in expectation: each feature's, and `total`."""
        one = _Main(self.rates[-1, :1])
        alphas = _people()["alphas"]
        panel = one.panel(
            self.vote_odds, self.votes, np.array([alphas[feature] for feature in self.features])
        )
        total, _ = one.alphas(panel, margins.covariances(self.states[-1, :1]))
        return {**alphas, "total": total}

    def error_rates(self) -> np.ndarray:
        """P(label differs from x | x), averaged over the main study's cells: [x, judge, feature]."""
        main = self.contested[:, :-1, : len(CONDITIONS)].mean(axis=(1, 2))
        yes = self.vote_odds @ self.votes
        return main[:, None, :] * np.stack([yes, 1 - yes])[:, :, None]

    def _feature_alphas(self):
        return np.array([self.printed["table-7", feature, "alpha"][0] for feature in self.features])


class _Main:
    """The cells of the main study (models × conditions, flattened), and the alphas expected of them."""

    def __init__(self, rates):
        self.rates = rates  # [cell, feature]

    def panel(self, odds, votes, alphas):
        """What votes with these odds imply: contested[2, cell, feature], `share` and `yes` (mean vote).

        One judge of three dissents on a contested label, so two of three pairs disagree: alpha follows from
        how often labels are contested (Krippendorff 2011, nominal data, many units).
        """
        yes = float(odds @ votes.mean(axis=1))
        cap = np.minimum(self.rates / yes, (1 - self.rates) / (1 - yes))
        pooled = self.rates.mean(axis=0)
        share = (1 - alphas) * 2 * pooled * (1 - pooled) / (2 / 3 * cap.mean(axis=0))
        return {
            "share": share,
            "yes": yes,
            "odds": odds,
            "votes": votes,
            "contested": contested_given(self.rates, yes, share),
        }

    def alphas(self, panel, covariance):
        """(alpha of the score over all judges, [alphas without each judge]), interval level, in expectation."""
        odds, votes = panel["odds"], panel["votes"]
        zero, one = panel["contested"]
        tension = zero * (1 - self.rates) + one * self.rates
        lean = odds @ votes
        off = covariance * (1 - np.eye(covariance.shape[-1]))
        means, squares = [], []
        for judge in range(votes.shape[1]):
            expected = self.rates + tension * (lean[judge] - panel["yes"])
            slope = 1 - one * (1 - lean[judge]) - zero * lean[judge]
            spread = (expected * (1 - expected)).sum(axis=1) + np.einsum("cf,cg,cfg->c", slope, slope, off)
            means.append(expected.sum(axis=1).mean())
            squares.append((spread + expected.sum(axis=1) ** 2).mean())
        disagreement = {}
        for first in range(votes.shape[1]):
            for second in range(first):
                gap = votes[:, first] - votes[:, second]
                tilt = one - zero
                both = tension[:, :, None] * tension[:, None, :] + tilt[:, :, None] * tilt[:, None, :] * off
                apart = (both * (1 - np.eye(both.shape[-1]))).sum(axis=(1, 2)) * float(odds @ gap) ** 2
                disagreement[second, first] = (tension.sum(axis=1) * float(odds @ gap**2) + apart).mean()
        everyone = range(votes.shape[1])
        without = [
            self._alpha([other for other in everyone if other != left], means, squares, disagreement)
            for left in everyone
        ]
        return self._alpha(everyone, means, squares, disagreement), np.array(without)

    @staticmethod
    def _alpha(judges, means, squares, disagreement):
        judges = list(judges)
        variance = np.mean([squares[j] for j in judges]) - np.mean([means[j] for j in judges]) ** 2
        pairs = [disagreement[j, k] for k in judges for j in judges if j < k]
        return 1 - np.mean(pairs) / (2 * variance)


def contested_given(rates, yes, share):
    """contested[2, ..., feature]: P(contested | x) for x = 0, 1, so that the panel's expected label stays
    `rates`."""
    cap = np.minimum(rates / yes, (1 - rates) / (1 - yes)) * share
    return np.stack([cap * (1 - yes) / (1 - rates), cap * yes / rates])


@functools.cache
def truth() -> Truth:
    """The study's truth, solved once a process. Raises ValueError naming a printed number that is missing."""
    from compendium.studies.alienbench.simulated.creatures import grammar

    printed, people = _printed(), _people()
    leniency = {judge: entry["leniency"] for judge, entry in grammar().judges.items()}
    models = tuple(row for exhibit, row, column in printed if (exhibit, column) == ("table-3", "overall"))
    judges = tuple(row for exhibit, row, column in printed if (exhibit, column) == ("table-11", "rho"))
    wordings = tuple(
        dict.fromkeys(
            column for exhibit, _, column in printed if exhibit == "table-9-means" and column != "baseline"
        )
    )

    def table(exhibit, rows, columns, part=0):
        return np.array([[_value(printed, exhibit, row, column)[part] for column in columns] for row in rows])

    scores = table("table-3", models, CONDITIONS)
    deviations = table("table-3", models, [f"{condition}_sd" for condition in CONDITIONS])
    main, effects = margins.additive_rates(scores, table("table-6", FEATURES, models).T / 100)
    rates = np.full((len(models) + 1, len(CONDITIONS) + len(wordings), len(FEATURES)), np.nan)
    rates[:-1, : len(CONDITIONS)] = main
    rates[:-1, len(CONDITIONS) :] = margins.shifted_rates(effects, table("table-9-means", models, wordings))
    rates[-1, 0] = table("table-6", FEATURES, [HUMAN])[:, 0] / 100
    alphas = np.array([_value(printed, "table-7", feature, "alpha")[0] for feature in FEATURES])
    targets = np.array(
        [
            _value(printed, "table-7", "total", "alpha")[0],
            *(_value(printed, "table-12", judge, "alpha")[0] for judge in judges),
        ]
    )
    cells = _Main(main.reshape(-1, len(FEATURES)))
    split = [vote for vote in np.ndindex(*[2] * len(judges)) if 0 < sum(vote) < len(judges)]
    votes = np.array(split, dtype=float)
    start = votes @ np.array([leniency.get(judge, 0) for judge in judges], dtype=float)
    covariance = np.einsum("cf,fg->cfg", cells.rates * (1 - cells.rates), np.eye(len(FEATURES)))
    apart = _Main(rates[-1, :1])
    people_alphas = np.array([people["alphas"][feature] for feature in FEATURES])
    for _ in range(2):  # the odds need the covariances, and these the odds: two rounds settle both
        odds = _vote_odds(cells, votes, alphas, targets, covariance, start)
        panel = cells.panel(odds, votes, alphas)
        share = np.tile(panel["share"], (len(rates), 1, 1))
        share[-1] = apart.panel(odds, votes, people_alphas)["share"]
        contested = contested_given(rates, panel["yes"], share)
        states = _states(rates, contested, panel, deviations, people["sd"])
        covariance = margins.covariances(states[:-1, : len(CONDITIONS)].reshape(len(cells.rates), -1))
    samples = _value(printed, "text-abstract", "generations_per_model", "count")[0]
    per_100 = np.array([_value(printed, "table-3", model, "per_100_tokens") for model in models])
    return Truth(
        (*models, HUMAN),
        (*CONDITIONS, *wordings),
        FEATURES,
        judges,
        rates,
        states,
        contested,
        votes,
        odds,
        _log_tokens(scores, deviations, samples, per_100),
        printed,
    )


def _people() -> dict:
    """What is set of people: `sd` of their scores, `alphas` {feature: nominal alpha}."""
    from compendium.studies.alienbench.simulated.creatures import grammar

    return grammar().people


def _vote_odds(cells, votes, alphas, targets, covariance, start):
    """Odds of the six votes that give the printed alphas of the score: damped Gauss–Newton on log odds.

    Five free odds, four alphas, so a slight pull towards `start` (who is lenient) makes the answer unique.
    Each alpha counts by its printed decimals: three for the panel's, two for the others'.
    """
    scale = np.where(np.arange(len(targets)) == 0, 1e-4, 1e-3)

    def odds_of(logits):
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    def residuals(logits):
        everyone, pairs = cells.alphas(cells.panel(odds_of(logits), votes, alphas), covariance)
        return np.concatenate([(np.array([everyone, *pairs]) - targets) / scale, (logits - start) / 20])

    logits = start.astype(float)
    damping, now = 1e-3, residuals(logits)
    for _ in range(60):
        moved = [residuals(logits + 1e-5 * unit) for unit in np.eye(len(logits))]
        slopes = (np.stack(moved, axis=1) - now[:, None]) / 1e-5
        step = -np.linalg.solve(slopes.T @ slopes + damping * np.eye(len(logits)), slopes.T @ now)
        step *= min(1, 1 / np.abs(step).max())
        then = residuals(logits + step)
        if then @ then < now @ now:
            settled = now @ now - then @ then < 1e-12
            logits, now, damping = logits + step, then, damping / 5
            if settled:
                break
        else:
            damping *= 10
            if damping > 1e9:
                break
    return odds_of(logits)


def _states(rates, contested, panel, deviations, people_sd):
    """Joint distributions of the ten features, for every cell that is asked; SDs of paraphrases as the
    baseline's."""
    asked = np.isfinite(rates[..., 0])
    paraphrases = rates.shape[1] - deviations.shape[1]
    sd = np.concatenate([deviations, np.repeat(deviations[:, :1], paraphrases, axis=1)], axis=1)
    q = rates[asked]
    zero, one = contested[:, asked]
    dissent = panel["votes"].mean(axis=1)
    square = float(panel["odds"] @ dissent**2)
    mean_one, mean_zero = 1 - one * (1 - panel["yes"]), zero * panel["yes"]
    noise = q * (1 - one + one * square - mean_one**2) + (1 - q) * (zero * square - mean_zero**2)
    weights = mean_one - mean_zero
    variance = np.append(sd, people_sd) ** 2 - noise.sum(axis=1)
    states = np.full((*rates.shape[:2], 2 ** rates.shape[2]), np.nan)
    states[asked] = margins.joint_states(q, weights, np.maximum(variance, 0.01))
    return states


def _log_tokens(scores, deviations, samples, per_100):
    """log_tokens[model, 2]; per_100[model, (value, lo, hi)].

    Length and score are independent within a model, so
    E[score / tokens] = E[score] E[1 / tokens], and the squared coefficients of variation combine likewise."""
    mean = scores.mean(axis=1)
    variance = (deviations**2).mean(axis=1) + scores.var(axis=1)
    half_width = (per_100[:, 2] - per_100[:, 1]) / 2
    relative = (half_width * np.sqrt(samples) / TWO_SIDED_95 / per_100[:, 0]) ** 2
    spread = np.sqrt(np.log(np.maximum(1, (1 + relative) / (1 + variance / mean**2))))
    spread = np.clip(spread, SHORTEST_SPREAD, LONGEST_SPREAD)
    centre = spread**2 / 2 - np.log(per_100[:, 0] / (100 * mean))
    return np.concatenate([np.stack([centre, spread], axis=1), [[np.nan, np.nan]]])


def _printed() -> dict:
    """{(exhibit, row, column): (value, lo, hi)} of the exhibits used, in the file's order."""
    wanted = ("text-abstract", "table-3", "table-6", "table-7", "table-9-means", "table-11", "table-12")
    try:
        with PUBLISHED.open(encoding="utf-8", newline="") as file:
            return {
                (row["exhibit"], row["row"], row["column"]): tuple(
                    float(row[name] or "nan") for name in ("value", "lo", "hi")
                )
                for row in csv.DictReader(file)
                if row["exhibit"] in wanted
            }
    except OSError as error:
        raise ValueError(
            f"data/published/{PUBLISHED.name} cannot be read ({error.strerror}); "
            "the simulated models take their rates from it"
        ) from None


def _value(printed, exhibit, row, column):
    try:
        return printed[exhibit, row, column]
    except KeyError:
        raise ValueError(
            f"data/published/{PUBLISHED.name} lacks {exhibit}[{row}, {column}], "
            "which the simulated models need"
        ) from None
