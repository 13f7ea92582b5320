"""Text metrics of creativity: Creativity Index, perplexity, syntactic templates, lexical and semantic
diversity.

One module an idea; each takes text, words, tags or vectors and gives numbers, and none knows which study
asks. Sources: Lu et al. (2025) for the Creativity Index and DJ Search; Shaib et al. (2024, 2025) for
templates and CR-POS; Liu et al. (2022) for EAD; Kirk et al. (2024) for SBERT-Div.
"""


class TextError(ValueError):
    """A text that a metric cannot be computed on, or a tool that is not there; the message says what would be
    right.
    """
