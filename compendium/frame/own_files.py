"""Files of one's own that params name: a file, a folder or a pattern; the chain follows what they lead to."""

import glob
import hashlib
from pathlib import Path

from compendium.frame import param_types
from compendium.frame.files import TEMPORARY
from compendium.frame.paths import from_root


def files_at(place: str) -> list[Path]:
    """The file at `place`, every file below the folder there, or all that the pattern (`*`, `?`, `**`) matches,
    sorted; relative to the project's root. [] where there is none. Hidden files never count.
    """
    path = from_root(place)
    if path.is_file():
        return [path]
    found = path.rglob("*") if path.is_dir() else ()
    if not path.is_dir() and glob.has_magic(place):
        found = map(Path, glob.glob(str(path), recursive=True))
    files = (each for each in found if each.is_file() and TEMPORARY not in each.name)
    base = path if path.is_dir() else from_root("")
    return sorted(each for each in files if not _hidden(each, base))


def followed(study: str, values: dict) -> list[Path]:
    """The files that a notebook's params keys lead to: those with `files: true` in params/types.yaml."""
    rules = param_types.table().get(study, {})
    rules = {key: rule for key, rule in rules.items() if isinstance(rule, dict)}
    named = (value for key, value in values.items() if rules.get(key, {}).get("files"))
    places = [place for value in named for place in (value if isinstance(value, list) else [value]) if place]
    return [path for place in dict.fromkeys(places) for path in files_at(place)]


def state(files) -> str:
    """One short text that is another when a file comes, goes or changes ("" for no files). The chain compares it from
    run to run: as an input, a name with braces would be a pattern to Snakemake."""
    told = [f"{path}\0{path.stat().st_size}\0{path.stat().st_mtime_ns}\n" for path in files]
    return hashlib.sha256("".join(told).encode()).hexdigest() if told else ""


def _hidden(path: Path, base: Path) -> bool:
    below = path.relative_to(base).parts if path.is_relative_to(base) else (path.name,)
    return any(part.startswith(".") for part in below)
