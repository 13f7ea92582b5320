"""Text metrics of creativity: Creativity Index, perplexity, syntactic templates, lexical and semantic
diversity.

One module an idea; each takes text, words, tags or vectors and gives numbers, and none knows which study
asks. Sources: Lu et al. (2025) for the Creativity Index and DJ Search; Shaib et al. (2024, 2025) for
templates and CR-POS; Liu et al. (2022) for EAD; Kirk et al. (2024) for SBERT-Div.
"""

import importlib


class TextError(ValueError):
    """A text that a metric cannot be computed on, or a tool that is not there; the message says what would be
    right.
    """


def needed(module: str, package: str | None = None) -> None:
    """Raise TextError, in one line that says what to install, where a metric's own library is absent.

    >>> needed("json")
    """
    try:
        importlib.import_module(module)
    except ImportError:
        raise TextError(
            f"this metric needs the package {package or module}: pip install {package or module}"
        ) from None
