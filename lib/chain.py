"""The graph of the chain, read from the notebooks themselves.

Each notebook says in its metadata (`compendium`) what it needs and makes; its `parameters` cell names the
params keys it reads; its imports name the `lib` modules it depends on. The Snakefile turns each into one rule,
so a change re-runs exactly what depends on it.
"""

import ast
import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from lib.page import figures_folder
from lib.params import PROFILES, ParamsError, study_params, unknown_key
from lib.paths import DATA, NOTEBOOKS, PARAMS, ROOT, STUDIES, shown

NUMBERED = re.compile(r"\d\d_\w+\.ipynb")
METADATA_KEYS = {"study", "title", "section", "needs", "makes", "figures", "tables", "profiles", "data", "exhibits"}
FRAME_NAMES = ("profile", "out", "source", "mirror", "cells")  # parameters that the runner itself supplies


class ChainError(ValueError):
    """A notebook that cannot take its place in the chain; the message names it and what would be right."""


@dataclass(frozen=True)
class Notebook:
    """One numbered notebook: where it lies, what it reads and writes (paths below build/<profile>/)."""

    path: Path
    study: str
    title: str = ""
    section: str = ""
    needs: dict = field(default_factory=dict)
    makes: tuple = ()
    figures: tuple = ()
    tables: tuple = ()
    profiles: tuple = PROFILES
    data: tuple = ()
    parameters: tuple = ()
    modules: tuple = ()

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def rule(self) -> str:
        return f"{self.study}_{self.name}"

    def code_inputs(self) -> list[str]:
        """Files whose change makes the notebook stale: itself, its `lib` modules, the data it names."""
        files = [self.path, *map(Path, self.modules)]
        for entry in self.data:
            place = DATA / entry
            files += sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
        return [path.relative_to(ROOT).as_posix() for path in files]

    def inputs(self, out: Path) -> list[Path]:
        """The files below `out` that it needs."""
        return [out / relative for relative in self.needs.values()]

    def outputs(self, out: Path) -> list[Path]:
        """Every file it makes: the executed notebook, its page, its cells, and what its metadata lists."""
        base = out / "notebooks" / self.study / self.name
        drawn = figures_folder(out) / self.study
        return [
            base.with_suffix(".ipynb"), base.with_suffix(".html"), out / "cells" / self.study / f"{self.name}.csv",
            *(out / relative for relative in self.makes),
            *(drawn / f"{name}.{ending}" for name in self.figures for ending in ("png", "svg")),
            *(out / "tables" / self.study / f"{name}.{ending}" for name in self.tables
              for ending in ("html", "tex", "csv")),
        ]

    def values(self, params: dict) -> dict:
        """The value of each params key that its `parameters` cell names.

        Raises ChainError for a name that neither the runner, nor `needs`, nor the study's params file knows.
        """
        wanted = [name for name in self.parameters if name not in FRAME_NAMES and name not in self.needs]
        for name in wanted:
            if name not in params:
                raise ChainError(f"{shown(self.path)}: its parameter {name!r} is no key of params/{self.study}.yaml: "
                                 "add the key there or drop the parameter")
        return {name: params[name] for name in wanted}


def notebooks(study: str = "all", profile: str = "demo") -> list[Notebook]:
    """The numbered notebooks of a study (or of all), in order, that run under `profile`.

    Raises ChainError for an unknown study, a notebook with malformed metadata, two makers of one file, or a
    needed file that nobody makes.
    """
    if study not in ("all", *STUDIES):
        raise ChainError(f"STUDY={study} is not one of all, {', '.join(STUDIES)}")
    paths = [path for name in STUDIES if study in ("all", name) for path in _numbered(name)]
    found = [book for book in map(read_notebook, paths) if profile in book.profiles]
    makers = {}
    for book in found:
        for made in (*book.makes, f"cells/{book.study}/{book.name}.csv"):
            if made in makers:
                raise ChainError(f"{shown(book.path)} and {shown(makers[made].path)} both make {made}")
            makers[made] = book
    for book in found:
        for name, needed in book.needs.items():
            if needed not in makers:
                raise ChainError(f"{shown(book.path)}: needs {needed} ({name}), which no notebook makes in {profile}")
    return found


def _numbered(study: str) -> list[Path]:
    return [path for path in sorted((NOTEBOOKS / study).glob("*.ipynb")) if NUMBERED.fullmatch(path.name)]


@functools.cache
def read_notebook(path: Path) -> Notebook:
    """One notebook's place in the chain. Raises ChainError naming what its metadata lacks or misspells."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ChainError(f"{shown(path)}: not a readable notebook ({error})") from None
    meta = content.get("metadata", {}).get("compendium")
    if not isinstance(meta, dict) or meta.get("study") != path.parent.name:
        raise ChainError(f"{shown(path)}: its metadata lacks `compendium: {{study: {path.parent.name}, …}}`")
    for key in meta:
        if key not in METADATA_KEYS:
            raise ChainError(f"{shown(path)}: unknown metadata key compendium.{key}; "
                             f"known: {', '.join(sorted(METADATA_KEYS))}")
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    tagged = [cell for cell in code if "parameters" in cell.get("metadata", {}).get("tags", [])]
    if len(tagged) != 1:
        raise ChainError(f"{shown(path)}: has {len(tagged)} cells tagged `parameters`, should have one")
    names = _assigned("".join(tagged[0]["source"]))
    for name in (*("profile", "out"), *meta.get("needs", {})):
        if name not in names:
            raise ChainError(f"{shown(path)}: its `parameters` cell should set {name!r}")
    imported = set()
    for cell in code:
        imported |= _imports("".join(cell["source"]))
    lists = {key: tuple(meta.get(key) or ()) for key in ("makes", "figures", "tables", "data")}
    return Notebook(path=path, study=meta["study"], title=meta.get("title", path.stem),
                    section=str(meta.get("section", "")), needs=dict(meta.get("needs") or {}),
                    profiles=tuple(meta.get("profiles") or PROFILES), parameters=tuple(names),
                    modules=tuple(sorted(module_files(frozenset(imported)))), **lists)


def check_params(study: str, books: list[Notebook], profile: str, smoke: bool) -> dict:
    """The study's params, checked against its notebooks.

    Raises ParamsError for a key that no notebook reads, ChainError for a parameter that has no key.
    """
    params = study_params(study, profile, smoke)
    for book in books:
        book.values(params)
    # a key may serve a notebook of another profile alone
    used = {name for path in _numbered(study) for name in read_notebook(path).parameters}
    for key in params:
        if key not in used:
            raise ParamsError(unknown_key(PARAMS / f"{study}.yaml", key, sorted(used)))
    return params


def module_files(modules: frozenset) -> set[str]:
    """The files of `lib` modules and of every `lib` module they import in turn (absolute paths)."""
    found, queue = set(), list(modules)
    while queue:
        path = _module_path(queue.pop())
        if path is not None and str(path) not in found:
            found.add(str(path))
            queue.extend(_file_imports(path))
    return found


@functools.cache
def _file_imports(path: Path) -> frozenset:
    return frozenset(_imports(path.read_text(encoding="utf-8")))


def _imports(source: str) -> set[str]:
    """Names of `lib` modules that a piece of code imports, anywhere in it (IPython magics are passed over)."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    found = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    packages = {".".join(name.split(".")[:i]) for name in found for i in range(1, len(name.split(".")))}
    return {name for name in found | packages if name == "lib" or name.startswith("lib.")}


def _module_path(name: str) -> Path | None:
    place = ROOT.joinpath(*name.split("."))
    for candidate in (place.with_suffix(".py"), place / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _assigned(source: str) -> list[str]:
    """Names that a `parameters` cell assigns."""
    return [target.id for node in ast.parse(source).body if isinstance(node, (ast.Assign, ast.AnnAssign))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)]
