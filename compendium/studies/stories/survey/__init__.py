"""The form that collects human ratings: one random story at a time, eleven qualities, in English or Italian.

    python -m compendium.studies.stories.survey serve --texts build/demo/stories/texts.jsonl --db survey.sqlite
    python -m compendium.studies.stories.survey export --db survey.sqlite --out ratings.xlsx

Blind (no page and no answer says who wrote a story), anonymous (a rater is a random number; no address or
device is kept), resumable (the page keeps the rater's token and unsent ratings). `store` is the database,
`app` the web side.
"""


class SurveyError(ValueError):
    """An answer that cannot be taken; `field` names what is wrong, the message what would be right."""

    def __init__(self, message: str, field: str = "", status: int = 400):
        super().__init__(message)
        self.field, self.status = field, status
