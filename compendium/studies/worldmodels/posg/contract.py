"""The contract's quick check: whether a document satisfies posg.schema.json, without saying what is wrong.

The schema's validator explains, but takes many milliseconds a model and a slow import; nearly every document is
fine. So this plain reading of the schema goes first, and `schema_problems` of `posg.model` asks the validator only
where it says no. A test holds the two to the same verdict.
"""

REQUIRED = {"players", "states", "initial_state", "terminal_states", "actions", "transitions", "observations"}
LABEL, SEEN = 200, 400  # most characters of a name, of an observation
TRANSITIONS = 50_000  # most entries of `transitions`


def satisfies_schema(document) -> bool:
    """True where the document is certain to satisfy the schema (and every probability is a number in [0, 1], and
    every text can be written down)."""
    if not isinstance(document, dict) or not REQUIRED <= document.keys() <= REQUIRED | {"name"}:
        return False
    name = document.get("name", "")
    return (
        _text(name, LABEL)
        and _labels(document["players"], 1, 8)
        and _labels(document["states"], 1, 2000)
        and _label(document["initial_state"])
        and _labels(document["terminal_states"], 0, 2000)
        and _mapping(
            document["actions"], lambda choices: _mapping(choices, lambda mine: _labels(mine, 1, 64))
        )
        and _transitions(document["transitions"])
        and _mapping(document["observations"], lambda told: _mapping(told, _seen))
    )


def writable(text: str) -> bool:
    """Whether a text has a UTF-8 form: JSON can spell half a surrogate pair, which no file can hold."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(value, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and writable(value)


def _label(value) -> bool:
    return _text(value, LABEL) and value != ""


def _seen(value) -> bool:
    return _text(value, SEEN)


def _labels(values, least: int, most: int) -> bool:
    return (
        isinstance(values, list)
        and least <= len(values) <= most
        and all(map(_label, values))
        and len(set(values)) == len(values)
    )


def _mapping(value, fits) -> bool:
    return isinstance(value, dict) and all(map(writable, value)) and all(map(fits, value.values()))


def _transitions(rows) -> bool:
    return (
        isinstance(rows, list)
        and len(rows) <= TRANSITIONS
        and all(
            isinstance(row, dict)
            and row.keys() == {"state", "joint_action", "outcomes"}
            and _label(row["state"])
            and _mapping(row["joint_action"], _label)
            and isinstance(row["outcomes"], list)
            and row["outcomes"]
            and all(map(_outcome, row["outcomes"]))
            for row in rows
        )
    )


def _outcome(entry) -> bool:
    if not isinstance(entry, dict) or not {"state", "probability"} <= entry.keys() <= {
        "state",
        "probability",
        "observations",
    }:
        return False
    weight = entry["probability"]
    number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    return (
        number
        and 0 <= weight <= 1
        and _label(entry["state"])
        and _mapping(entry.get("observations", {}), _seen)
    )
