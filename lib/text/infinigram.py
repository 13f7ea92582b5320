"""infini-gram as the reference corpus of the Creativity Index: its public interface, or an index on this
machine.

Both answer one question, how often a phrase occurs, which is what `creativity_index.dj_search` asks. Counts
are exact. Neither folds capitals, blanks or quotes, so a phrase is sent as its text writes it (the words of
`creativity_index.split` know how). Source: Liu et al. (2024), "Infini-gram"; the interface is described at infini-gram.io.
"""

import functools
import time

from lib.text import TextError, needed
from lib.text.creativity_index import phrase as as_written

API = "https://api.infini-gram.io/"
REDPAJAMA = "v4_rpj_llama_s4"  # RedPajama, the reference corpus of the Stories paper
RETRIES = 4


class InfiniGramAPI:
    """The public interface. A phrase is sent as text; each is asked once and then remembered.

    Parameters
    ----------
    index : which corpus (RedPajama by default).
    client : an `httpx.Client`; None makes one.
    wait : seconds before the first retry, doubled each time (the interface limits its rate).
    """

    def __init__(self, index: str = REDPAJAMA, url: str = API, client=None, wait: float = 1.0):
        needed("httpx")
        import httpx

        self.index, self.url, self.wait = index, url, wait
        self._client = client or httpx.Client(timeout=60)
        self.count = functools.lru_cache(maxsize=None)(self._count)

    def contains(self, words) -> bool:
        """Whether the phrase occurs in the corpus. Raises TextError where the interface does not answer.

        >>> import httpx
        >>> transport = httpx.MockTransport(lambda request: httpx.Response(200, json={"count": 3}))
        >>> InfiniGramAPI(client=httpx.Client(transport=transport)).contains(["a", "cat"])
        True
        """
        return self.count(as_written(words)) > 0

    def _count(self, phrase: str) -> int:
        import httpx

        problem = ""
        for attempt in range(RETRIES + 1):
            if attempt:
                time.sleep(self.wait * 2 ** (attempt - 1))
            try:
                answer = self._client.post(
                    self.url, json={"index": self.index, "query_type": "count", "query": phrase}
                )
                content = answer.json()
            except (httpx.HTTPError, ValueError) as error:
                problem = type(error).__name__
                continue
            if isinstance(content, dict) and isinstance(content.get("count"), int):
                return content["count"]
            problem = str(content.get("error", content) if isinstance(content, dict) else content)[:120]
            if answer.status_code < 429:  # a question it will not take is not worth repeating
                break
        raise TextError(f"infini-gram ({self.index}) gave no count for {phrase[:60]!r}: {problem}")


class InfiniGramEngine:
    """An infini-gram index on this machine, through the package `infini-gram` (Linux, x86-64).

    Parameters
    ----------
    folder : where the index lies.
    tokenize : text -> list of token numbers; the tokenizer that the index was made with.
    end : the tokenizer's number for the end of a text.
    """

    def __init__(self, folder, tokenize, end: int, **options):
        try:
            from infini_gram.engine import InfiniGramEngine as Engine
        except ImportError:
            raise TextError(
                "the package infini-gram is not installed: pip install infini-gram, or use LocalCorpus"
            ) from None
        self.tokenize = tokenize
        self._engine = Engine(index_dir=str(folder), eos_token_id=end, **options)

    def contains(self, words) -> bool:
        """Whether the phrase occurs in the index. Raises TextError where the engine refuses it.

        >>> InfiniGramEngine("index", tokenize, end=2).contains(["a", "cat"])  # doctest: +SKIP
        """
        answer = self._engine.count(input_ids=list(self.tokenize(as_written(words))))
        if "error" in answer:
            raise TextError(f"infini-gram: {answer['error']}")
        return answer["count"] > 0
