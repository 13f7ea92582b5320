"""The requests and the parser that the stage's tests and their child process share."""

from compendium.asking.errors import InvalidReply
from compendium.asking.request import Request


def requests(count=150):
    """Questions, with samples, two models and one question asked twice."""
    asked = [
        Request(
            f"model-{i % 2}",
            [{"role": "user", "content": f"question {i // 3}"}],
            seed=i,
            sample=i % 3,
            tag={"question": i // 3},
        )
        for i in range(count - 1)
    ]
    return [*asked, asked[4]]


def parse(text):
    """A third of the replies is invalid, so that there are re-asks and voids."""
    number = int(text.split()[-1][:4], 16)
    if number % 3 == 0:
        raise InvalidReply("odd", f"{number} is a multiple of three")
    return number
