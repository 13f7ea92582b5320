"""What happened in a stage, in counts: what came out (the same for every run) and how this run went."""
# Tested by tests/compendium/asking/test_stage.py.

import math
from collections import Counter
from dataclasses import dataclass, field

import pandas as pd

OUTCOMES = ("requests", "valid", "repaired", "re_asked", "void", "unanswered")
RUN = (
    "from_ledger",
    "replies",
    "calls",
    "faults",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost",
)


@dataclass
class StageReport:
    """Counts of one stage, by model.

    Outcomes: `requests`; those with a `valid` reply; those whose valid reply was `repaired`; re-asks made
    (`re_asked`); `void` ones (no valid reply in all attempts); `unanswered` ones (no reply in this run; the
    next run asks again). They depend on requests and replies alone. This run: requests found answered
    (`from_ledger`), `replies` received, `calls` made, `faults` met, tokens and cost (dollars, NaN where
    unknown) of the replies received.
    """

    label: str
    outcomes: dict = field(default_factory=dict)  # model -> Counter over OUTCOMES
    run: dict = field(default_factory=dict)  # model -> Counter over RUN
    voids: Counter = field(default_factory=Counter)  # (model, kind) -> requests
    repairs: Counter = field(default_factory=Counter)  # (model, what was mended) -> replies
    faults: Counter = field(default_factory=Counter)  # (model, kind) -> faults met in this run
    first_reasons: dict = field(
        default_factory=dict
    )  # model -> why its first unanswered request has no reply
    unreported: Counter = field(default_factory=Counter)  # model -> replies that did not say what they used
    reasons: dict = field(default_factory=dict)  # kind of void -> one example
    adapted: tuple = ()  # (model, what was changed for it)
    seconds: float = 0.0

    def count(self, model: str, name: str, amount=1) -> None:
        """Add to a count of a model."""
        table = self.outcomes if name in OUTCOMES else self.run
        table.setdefault(model, Counter())[name] += amount

    def total(self, name: str):
        """A count over all models."""
        table = self.outcomes if name in OUTCOMES else self.run
        return sum(counts[name] for counts in table.values())

    def frame(self, which: str = "all") -> pd.DataFrame:
        """Counts by model (rows, sorted) and in total (last row).

        which : "outcomes" (the same for every run that ends), "run" (this run) or "all".
        """
        names = {"outcomes": OUTCOMES, "run": RUN, "all": OUTCOMES + RUN}[which]
        models = sorted({*self.outcomes, *self.run})
        rows = [[self._of(model, name) for name in names] for model in models]
        frame = pd.DataFrame(rows, index=pd.Index(models, name="model"), columns=list(names))
        frame.loc["total"] = [sum(row[place] for row in rows) for place in range(len(names))]
        return frame.astype({name: float if name == "cost" else int for name in names})

    def void_frame(self) -> pd.DataFrame:
        """Void and unanswered requests by model (rows) and kind (columns)."""
        return _crossed(self.voids, "model", "kind")

    def repair_frame(self) -> pd.DataFrame:
        """Repaired replies by model (rows) and what was mended (columns)."""
        return _crossed(self.repairs, "model", "repair")

    def fault_frame(self) -> pd.DataFrame:
        """Faults met in this run by model (rows) and kind (columns)."""
        return _crossed(self.faults, "model", "fault")

    @property
    def warning(self) -> str | None:
        """One sentence, for tables and notebooks, where requests have no valid reply; else None."""
        void, unanswered, asked = self.total("void"), self.total("unanswered"), self.total("requests")
        if not void + unanswered:
            return None
        share = 100 * (void + unanswered) / asked
        kinds = Counter()
        for (_, kind), count in self.voids.items():
            kinds[kind] += count
        named = ", ".join(
            f"{kind} {count:,}" for kind, count in sorted(kinds.items(), key=lambda k: (-k[1], k[0]))
        )
        worst = max(self.outcomes, key=lambda model: (self._lost(model), model))
        return (
            f"{self.label}: {void + unanswered:,} of {asked:,} requests ({share:.1f} %) have no valid reply "
            f"({named}); most with {worst}: {self._lost(worst):,} of {self._of(worst, 'requests'):,}"
            + (
                f"; {unanswered:,} got no reply at all and are asked again by the next run"
                if unanswered
                else ""
            )
        )

    def __str__(self):
        cost = self.total("cost")
        parts = [
            f"{self.label}: {self.total('requests'):,} requests",
            f"{self.total('from_ledger'):,} from the ledger",
            f"{self.total('replies'):,} replies in {self.total('calls'):,} calls",
            f"{self.total('faults'):,} faults",
            f"{self.total('repaired'):,} repaired",
            f"{self.total('re_asked'):,} re-asked",
            f"{self.total('void'):,} void",
        ]
        if self.total("unanswered"):
            parts.append(f"{self.total('unanswered'):,} unanswered")
        if self.unreported.total():
            parts.append(f"{self.unreported.total():,} of unknown usage, counted at the most")
        return ", ".join(parts) + ("" if math.isnan(cost) else f", ${cost:,.2f}")

    def _repr_html_(self):
        lines = [self.frame().to_html(float_format="{:,.4f}".format, na_rep="unknown")]
        lines += [
            frame.to_html()
            for frame in (self.void_frame(), self.repair_frame(), self.fault_frame())
            if len(frame)
        ]
        lines += [f"<p>{model}: {what}</p>" for model, what in self.adapted]
        lines += [
            f"<p>{model}: {count:,} replies did not say what they used, and count at the most they could have</p>"
            for model, count in sorted(self.unreported.items())
            if count
        ]
        if self.warning:
            lines.append(f"<p><b>Warning.</b> {self.warning}</p>")
        return "\n".join(lines)

    def _of(self, model, name):
        table = self.outcomes if name in OUTCOMES else self.run
        return table.get(model, {}).get(name, 0)

    def _lost(self, model):
        return self._of(model, "void") + self._of(model, "unanswered")


def _crossed(counts, rows, columns) -> pd.DataFrame:
    """Counts {(row, column): n} as a frame of whole numbers, both axes sorted."""
    index = sorted({row for row, _ in counts})
    names = sorted({column for _, column in counts})
    frame = pd.DataFrame(
        [[counts[row, name] for name in names] for row in index], index=index, columns=names, dtype=int
    )
    frame.index.name, frame.columns.name = rows, columns
    return frame
