"""What the notebooks across the studies start from: each study's data, its panels of judges and its rankings.

Everything is read from files, by each study's own loader. A study that has nothing to give in a profile (world
models released no archive) is left out, and `absent` says so.
"""

from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pandas as pd

from compendium.frame.files import read_csv
from compendium.frame.params import study_params

ORDER = ("alienbench", "stories", "metanym", "worldmodels", "create")


@dataclass(frozen=True)
class Panel:
    """ratings[judge, unit] of one panel, NaN missing.

    study; name: unique below its study; label: for tables and figures; level: of Krippendorff's alpha; judges: who
    they are, in the order of the axis; unit: what they judge; main: shown in the figure by its own label.
    """

    study: str
    name: str
    label: str
    level: str
    judges: tuple
    unit: str
    ratings: np.ndarray = field(repr=False)
    main: bool = False

    @property
    def key(self) -> str:
        return f"{self.study}:{self.name}"


@dataclass(frozen=True)
class Ranking:
    """Who leads by one study's own estimator, and the data behind it.

    scores[unit, entrant] (frame, NaN missing), the highest first; paired: entrants met the same units; names: how
    tables call the entrants; strata[unit]: what the design fixes, where it fixes something. own: the study's own
    estimate by entrant where it is no mean of `scores`, with its replicates[b, entrant]. ratings[judge, item] and
    group_of[item] (place of the entrant): the judges behind the scores, where there are several.
    """

    study: str
    name: str
    label: str
    unit: str
    scores: pd.DataFrame = field(repr=False)
    paired: bool
    names: dict = field(repr=False, default_factory=dict)
    strata: np.ndarray | None = field(repr=False, default=None)
    own: pd.Series | None = field(repr=False, default=None)
    replicates: np.ndarray | None = field(repr=False, default=None)
    ratings: np.ndarray | None = field(repr=False, default=None)
    group_of: np.ndarray | None = field(repr=False, default=None)

    @property
    def key(self) -> str:
        return f"{self.study}:{self.name}"

    @property
    def estimates(self) -> pd.Series:
        """The study's own estimate by entrant."""
        return self.scores.mean() if self.own is None else self.own


class Studies:
    """The five studies' data under a profile.

    files : the chain's files by name: labels, generations (AlienBench); story_texts, story_ratings,
        story_judgements (stories); game_ratings (Metanym); candidates, documents, matches (world models);
        judgements, utility (CREATE). A study of which one is empty is left out.
    """

    def __init__(self, profile: str = "demo", **files):
        self.profile = profile
        self.files = {name: path for name, path in files.items() if path}

    def params(self, study: str) -> SimpleNamespace:
        """A study's params under this profile."""
        return SimpleNamespace(**study_params(study, self.profile))

    def absent(self, *names) -> bool:
        """Whether some of these files are not there."""
        return not all(name in self.files for name in names)

    @cached_property
    def alienbench(self):
        """`compendium.studies.alienbench.data.Labels` of the models (no people), or None."""
        from compendium.studies.alienbench import data as alienbench

        if self.absent("labels", "generations"):
            return None
        p = self.params("alienbench")
        files = self.files["labels"], self.files["generations"]
        return alienbench.load(*files, judges=p.judges, features=p.features).of(p.subjects, p.conditions)

    @cached_property
    def stories(self):
        """`compendium.studies.stories.data.Stories` with ratings and judgements, or None."""
        from compendium.studies.stories.load import load

        if self.absent("story_texts", "story_ratings", "story_judgements"):
            return None
        return load(
            self.files["story_texts"],
            ratings=self.files["story_ratings"],
            judgements=self.files["story_judgements"],
        )

    @cached_property
    def metanym(self):
        """`compendium.studies.metanym.game.Game`, or None."""
        from compendium.studies.metanym.load import load_game

        if self.absent("game_ratings"):
            return None
        return load_game(self.files["game_ratings"], self.params("metanym"))

    @cached_property
    def worldmodels(self):
        """First passes of the game track with lane1 and f1 against the reference (frame), or None."""
        from compendium.studies.worldmodels.scores import first_pass
        from compendium.studies.worldmodels.tables import read_table

        if self.absent("candidates", "documents", "matches"):
            return None
        game = first_pass(read_table(self.files["candidates"]), "game")
        return game.merge(read_table(self.files["matches"])[["id", "f1"]], on="id", how="left")

    @cached_property
    def judgements(self):
        """CREATE's judgements by triple (frame), or None."""
        return None if self.absent("judgements") else read_csv(self.files["judgements"])

    def utility(self):
        """CREATE's utility at patience 1 by (source, query) of the base prompts (series), or None."""
        from compendium.studies.create import data as create_data

        if self.absent("utility"):
            return None
        found = create_data.load_utility(self.files["utility"])
        return found.loc[create_data.base_sources(found.index.get_level_values("source").unique()), "1.0"]
