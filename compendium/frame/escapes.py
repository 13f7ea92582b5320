"""Terminal escapes out of what becomes a page: a title, a link (OSC 8) or a cursor's move has no business there."""

import copy
import re

# strings to the terminal (OSC, DCS, SOS, PM, APC) to their end; then sequences, those of colour told apart; then the rest
_STRING = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\x1b|\n|$))"
)
_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def without_escapes(text: str, colours: bool = False) -> str:
    """`text` without terminal escapes, control characters and marks that turn the direction of writing; `colours`
    keeps the sequences of colour, which a page shows as colours."""
    text = _SEQUENCE.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", _STRING.sub("", text))
    if not colours:
        return _CONTROL.sub("", _COLOUR.sub("", text))
    pieces = re.split(f"({_COLOUR.pattern})", text)
    return "".join(piece if place % 2 else _CONTROL.sub("", piece) for place, piece in enumerate(pieces))


def clean_notebook(content: dict) -> dict:
    """A copy of a notebook (nbformat 4, as JSON has it) whose sources and outputs hold no escapes; colours stay where
    an output is shown as a terminal would show it."""
    content = copy.deepcopy(content)
    for cell in content["cells"]:
        cell["source"] = _text(cell["source"])
        for output in cell.get("outputs", ()):
            for key in ("text", "ename", "evalue"):
                if key in output:
                    output[key] = _text(output[key], colours=key == "text")
            if "traceback" in output:
                output["traceback"] = [without_escapes(line, colours=True) for line in output["traceback"]]
            for kind, value in output.get("data", {}).items():
                if isinstance(value, (str, list)):
                    output["data"][kind] = _text(value, colours=kind == "text/plain")
    return content


def _text(value, colours: bool = False) -> str:
    return without_escapes(value if isinstance(value, str) else "".join(map(str, value)), colours)
