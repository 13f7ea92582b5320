"""From a reply's text to a list of items, each with a name and numbers."""

from collections.abc import Mapping, Sequence

from compendium.asking.errors import InvalidReply
from compendium.asking.json_text import Parsed, extract_json
from compendium.asking.replies import as_number, is_placeholder, plain


def items_from_reply(
    text: str,
    count: int,
    fields: Mapping,
    *,
    name: str = "name",
    about_all: Sequence[str] = (),
    whole: bool = False,
) -> Parsed:
    """A list of `count` items, each with a name and numbers: `values` is [{name: str, field: number, ...}].

    Parameters
    ----------
    fields : {field: (lo, hi)}.
    name : key of an item's name.
    about_all : keys of numbers that are said of the whole list; found beside the list or as an item of it,
        they come back in `details` as they were said.

    Order is the reply's. Raises InvalidReply: what `extract_json` raises, "count", "repeated", "placeholder",
    "missing", and what `as_number` raises.
    """
    answer = extract_json(text)
    items, details = _list_in(answer.values, name)
    repairs, kept, seen = set(answer.repairs), [], set()
    for item in items:
        own = {key: item[key] for key in about_all if isinstance(item, dict) and key in item}
        if own and not (isinstance(item, dict) and name in item and any(field in item for field in fields)):
            details.update(own)
            repairs.add("field of the whole list moved out")
            continue
        kept.append(item)
    if len(kept) != count:
        raise InvalidReply("count", f"{len(kept)} items where {count} were asked")
    values = []
    for place, item in enumerate(kept, 1):
        if not isinstance(item, dict) or name not in item:
            raise InvalidReply("missing", f"item {place}: {name}")
        given = item[name]
        if is_placeholder(given) or all(is_placeholder(item.get(field)) for field in fields):
            raise InvalidReply("placeholder", f"item {place}: {str(given)[:40]!r}")
        if plain(given) in seen:
            raise InvalidReply("repeated", f"item {place}: {str(given)[:40]!r}")
        seen.add(plain(given))
        numbers = {}
        for field, (lo, hi) in fields.items():
            if is_placeholder(item.get(field)):
                raise InvalidReply("missing", f"item {place}: {field}")
            numbers[field] = as_number(item[field], lo, hi, whole)
            repairs |= {"number respelled"} if isinstance(item[field], str) else set()
        values.append({name: str(given), **numbers})
    return Parsed(values, tuple(sorted(repairs)), details)


def _list_in(value, name):
    """(the list of items, what stands beside it)."""
    if isinstance(value, list):
        return value, {}
    lists = {key: item for key, item in value.items() if isinstance(item, list)}
    if len(lists) == 1:
        ((key, items),) = lists.items()
        return items, {other: item for other, item in value.items() if other != key}
    named = {key: item for key, item in value.items() if isinstance(item, dict)}
    if not lists and named:  # {"first": {...}, "second": {...}}
        return [{name: key, **item} for key, item in named.items()], {
            other: item for other, item in value.items() if other not in named
        }
    raise InvalidReply("missing", "a list of items")
