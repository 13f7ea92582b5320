"""What can go wrong between a study and a model: five errors, each a ValueError with one clear sentence."""


class RequestError(ValueError):
    """A request that cannot be sent as it is written; the message names the field and what would be right."""


class LedgerError(ValueError):
    """A ledger that cannot be used (damaged, of another version, read-only, held by another process)."""


class EndpointError(ValueError):
    """An endpoint that cannot serve the stage: no key, key refused, model unknown, nothing answers.

    Whatever was answered before is in the ledger; `report` is the stage's report up to that moment, or None.
    """

    report = None


class MissingReplies(ValueError):
    """A stage that ended with requests unanswered, or without one valid reply; the message names model and reason."""


class BudgetError(ValueError):
    """The next call could pass a ceiling, so it was not made.

    Attributes: `scope` ("total" or a model), `unit` ("dollars", "tokens" or "calls"), `ceiling`, `spent`
    (what is known to be spent), `at_risk` (calls that ended without a reply and may still be charged),
    `needed` (the most the refused call could add), `report` (the stage's report up to that moment, or None).
    """

    def __init__(
        self, message, *, scope=None, unit=None, ceiling=None, spent=None, at_risk=None, needed=None
    ):
        super().__init__(message)
        self.scope, self.unit, self.ceiling = scope, unit, ceiling
        self.spent, self.at_risk, self.needed = spent, at_risk, needed
        self.report = None


class InvalidReply(ValueError):
    """A reply that is not what was asked for.

    `kind` is one word for the counts ("truncated", "missing", ...); `detail` says what is wrong with this
    reply.
    """

    def __init__(self, kind: str, detail: str = ""):
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind, self.detail = kind, detail
