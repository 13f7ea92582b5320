"""Terminal escapes out of what becomes a page: a title, a link (OSC 8) or a cursor's move has no business there."""

import copy

from compendium.frame.files import without_escapes


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
