"""The graph of the chain, read from the notebooks themselves.

Each notebook says in its metadata (`compendium`) what it needs and makes; its `parameters` cell names the
params keys it reads; the names that its code uses lead to every definition it depends on
(`compendium.frame.reach`). The Snakefile turns each into one rule, so a change re-runs exactly what depends on it.
"""

import ast
import functools
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from compendium.frame import param_types
from compendium.frame.files import parse_json, read_utf8, write_text_atomic
from compendium.frame.params import PROFILES, ParamsError, profile_params, study_params, unknown_key
from compendium.frame.paths import ACROSS, DATA, NOTEBOOKS, PARAMS, ROOT, STUDIES, figures_folder, shown
from compendium.frame.reach import Reach, ReachError, parsed

NUMBERED = re.compile(r"\d\d_\w+\.ipynb")
LIST, MAPPING = ({"type": kind, "empty": True, "or_null": True, "of": "text"} for kind in ("list", "mapping"))
METADATA = {  # what a notebook may say of itself, as params/types.yaml says it of params
    "study": "text",
    "title": "text",
    "long": "text",  # why it has more words or cells than `claims` lets pass
    "section": "any",
    "needs": MAPPING,
    "wants": MAPPING,
    "makes": LIST,
    "figures": LIST,
    "tables": LIST,
    "data": LIST,
    "profiles": {**LIST, "of": {"one_of": PROFILES}},
}
# The one door to models: it refuses a profile whose source is an archive, so nothing behind it can move a run there.
DOOR = "compendium.asking.study"
FRAME_NAMES = ("profile", "out", "source", "mirror", "cells")  # parameters that the runner itself supplies


class ChainError(ValueError):
    """A notebook that cannot take its place in the chain; the message names it and what would be right."""


@dataclass(frozen=True)
class Notebook:
    """One numbered notebook: where it lies, what it reads and writes (paths below build/<profile>/)."""

    path: Path
    study: str
    section: str = ""
    needs: dict = field(default_factory=dict)
    wants: dict = field(
        default_factory=dict
    )  # as needs, where a notebook of the profile makes it, else left out
    makes: tuple = ()
    figures: tuple = ()
    tables: tuple = ()
    profiles: tuple = PROFILES
    data: tuple = ()
    parameters: tuple = ()
    sources: tuple = field(default=(), repr=False)  # (where, source) of its code cells
    closed: tuple = ()  # modules that it never opens under the profile
    own: dict = field(default_factory=dict)  # as needs: files of one's own, in place of what notebooks make

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def rule(self) -> str:
        return f"{self.study}_{self.name}"

    @functools.cached_property
    def reach(self) -> Reach:
        """Every definition that its code can reach. Raises ReachError for code that does not parse."""
        return Reach(self.sources, self.study, self.closed)

    def code_inputs(self, out: Path) -> list[str]:
        """Files whose change makes the notebook stale: itself, the data it names, the stamp of its code."""
        files = [self.path]
        for entry in self.data:
            place = DATA / entry
            files += sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
        return [*(path.relative_to(ROOT).as_posix() for path in files), stamp(out, self.rule)]

    def inputs(self, out: Path) -> list[Path]:
        """The files below `out` that it needs."""
        return [out / relative for relative in self.needs.values()]

    def outputs(self, out: Path) -> list[Path]:
        """Every file it makes: the executed notebook, its page, its cells, and what its metadata lists."""
        base = out / "notebooks" / self.study / self.name
        drawn = figures_folder(out) / self.study
        return [
            base.with_suffix(".ipynb"),
            base.with_suffix(".html"),
            out / "cells" / self.study / f"{self.name}.csv",
            *(out / relative for relative in self.makes),
            *(drawn / f"{name}.{ending}" for name in self.figures for ending in ("png", "svg")),
            *(
                out / "tables" / self.study / f"{name}.{ending}"
                for name in self.tables
                for ending in ("html", "tex", "csv")
            ),
        ]

    def values(self, params: dict) -> dict:
        """The value of each params key that its `parameters` cell names.

        Raises ChainError for a name that neither the runner, nor `needs`, nor the study's params file knows.
        """
        given = {*FRAME_NAMES, *self.needs, *self.wants, *self.own}
        wanted = [name for name in self.parameters if name not in given]
        for name in wanted:
            if name not in params:
                raise ChainError(
                    f"{shown(self.path)}: its parameter {name!r} is no key of "
                    f"params/{self.study}.yaml: add the key there or drop the parameter"
                )
        return {name: params[name] for name in wanted}


def notebooks(study: str = "all", profile: str = "demo") -> list[Notebook]:
    """The numbered notebooks of a study (or of all), in order, that run under `profile`.

    The chapter across the studies brings along the notebooks of the studies whose files it takes, and theirs.
    Raises ChainError for an unknown study, a notebook with malformed metadata, two makers of one file, or a
    needed file that nobody makes.
    """
    if study not in ("all", *STUDIES):
        raise ChainError(f"STUDY={study} is not one of all, {', '.join(STUDIES)}")
    paths = [
        path for name in STUDIES if study in ("all", name) or study == ACROSS for path in _numbered(name)
    ]
    found = [book for book in map(read_notebook, paths) if profile in book.profiles]
    if profile_params(profile)["source"] == "archive":
        found = [replace(book, closed=(DOOR,)) for book in found]
    makers = {}
    for book in found:
        for made in (*book.makes, f"cells/{book.study}/{book.name}.csv"):
            if made in makers:
                raise ChainError(f"{shown(book.path)} and {shown(makers[made].path)} both make {made}")
            makers[made] = book
    found = [
        replace(
            book,
            needs={**book.needs, **{name: wanted for name, wanted in book.wants.items() if wanted in makers}},
        )
        for book in found
    ]
    for book in found:
        for name, needed in book.needs.items():
            if needed not in makers:
                raise ChainError(
                    f"{shown(book.path)}: needs {needed} ({name}), which no notebook makes in {profile}"
                )
    mine = [book for book in found if study in ("all", book.study)]
    return _with_makers(mine, found, makers)


def _with_makers(chosen, books, makers) -> list[Notebook]:
    """`chosen` and the makers of what they need, in turn, in the order of `books`."""
    wanted, queue = set(), list(chosen)
    while queue:
        book = queue.pop()
        if book.rule not in wanted:
            wanted.add(book.rule)
            queue.extend(makers[needed] for needed in book.needs.values())
    return [book for book in books if book.rule in wanted]


def _numbered(study: str) -> list[Path]:
    return [path for path in sorted((NOTEBOOKS / study).glob("*.ipynb")) if NUMBERED.fullmatch(path.name)]


@functools.cache
def read_notebook(path: Path) -> Notebook:
    """One notebook's place in the chain. Raises ChainError naming the notebook and what is wrong with it: no JSON,
    no cells, metadata that it lacks, misspells or cannot have, code that does not parse."""
    content = _content(path)
    meta = content.get("metadata", {}).get("compendium")
    if not isinstance(meta, dict) or meta.get("study") != path.parent.name:
        raise ChainError(f"{shown(path)}: its metadata lacks `compendium: {{study: {path.parent.name}, …}}`")
    for key, value in meta.items():
        if key not in METADATA:
            raise ChainError(
                f"{shown(path)}: unknown metadata key compendium.{key}; known: {', '.join(sorted(METADATA))}"
            )
        found = param_types.problem(value, METADATA[key], {}, (key,))
        if found:
            raise ChainError(
                f"{shown(path)}: its metadata compendium.{'.'.join(map(str, found[0]))} {found[1]}"
            )
    lists = {key: tuple(meta.get(key) or ()) for key in ("makes", "figures", "tables", "data")}
    needs, wants = dict(meta.get("needs") or {}), dict(meta.get("wants") or {})
    for place in (
        *needs.values(),
        *wants.values(),
        *(place for places in lists.values() for place in places),
    ):
        if Path(place).is_absolute() or ".." in Path(place).parts or not Path(place).parts:
            raise ChainError(
                f"{shown(path)}: its metadata names {place!r}, should be a path below the folder it "
                "belongs to: not absolute, without `..`"
            )
    for place in lists["data"]:
        if not (DATA / place).exists():
            raise ChainError(
                f"{shown(path)}: its metadata names the data {place!r}, but there is no data/{place}"
            )
    code = [(cell, "".join(cell["source"])) for cell in content["cells"] if cell["cell_type"] == "code"]
    tagged = [source for cell, source in code if "parameters" in cell.get("metadata", {}).get("tags", [])]
    if len(tagged) != 1:
        raise ChainError(f"{shown(path)}: has {len(tagged)} cells tagged `parameters`, should have one")
    sources = tuple((f"{shown(path)}, cell {cell.get('id', '?')}", source) for cell, source in code)
    try:
        for where, source in sources:
            parsed(source, where)
    except ReachError as error:
        raise ChainError(str(error)) from None
    names = _assigned(tagged[0])
    for name in ("profile", "out", *needs, *wants):
        if name not in names:
            raise ChainError(f"{shown(path)}: its `parameters` cell should set {name!r}")
    return Notebook(
        path=path,
        study=meta["study"],
        section=str(meta.get("section", "")),
        needs=needs,
        wants=wants,
        profiles=tuple(meta.get("profiles") or PROFILES),
        parameters=tuple(names),
        sources=sources,
        **lists,
    )


def _content(path: Path) -> dict:
    """What the notebook's file holds; its cells are there and have the keys that are read here."""
    content = parse_json(read_utf8(path, ChainError, "a notebook"), path, ChainError, "a readable notebook")
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(
        isinstance(cell, dict) and {"cell_type", "source"} <= cell.keys() for cell in cells
    ):
        raise ChainError(
            f"{shown(path)}: not a notebook: it should hold `cells`, each with cell_type and source"
        )
    return content


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
            raise ParamsError(unknown_key(PARAMS / f"{study}.yaml", (key,), sorted(used)))
    return params


def stamp(out: Path, rule: str) -> str:
    """The file that stands for the code a rule reaches: as old as the last change of it."""
    return str(out / "code" / f"{rule}.txt")


def write_stamps(books: list[Notebook], out: Path) -> None:
    """Renew the stamps of notebooks, and of verification, whose code is not what it was.

    Raises ReachError for code that does not parse.
    """
    verification = Reach([("Snakefile", "import compendium.frame.verify")])
    for rule, reach in [*((book.rule, book.reach) for book in books), ("verify", verification)]:
        path = Path(stamp(out, rule))
        text = "".join(f"{name} {digest}\n" for name, digest in reach.definitions.items())
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text_atomic(path, text)


def forget_removed(profile: str, out: Path) -> None:
    """Remove from `out` what notebooks left that the project no longer has: the book would go on showing them."""
    known = {(book.study, book.name) for book in notebooks("all", profile)}
    for path in sorted((out / "notebooks").glob("*/*.ipynb")):
        study = path.parent.name
        if (study, path.stem) not in known:
            cells = out / "cells" / study / f"{path.stem}.csv"
            for left in (path, path.with_suffix(".html"), cells):
                left.unlink(missing_ok=True)


def _assigned(source: str) -> list[str]:
    """Names that a `parameters` cell assigns."""
    return [
        target.id
        for node in ast.parse(source).body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
