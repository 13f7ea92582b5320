"""What a piece of code can reach, definition by definition: the names it uses, what those use, to the last helper.

A notebook is stale when something that it can reach has changed, and a comment, a docstring or a line break is
no change. A module's statements that run on import count for everyone who uses any part of it; a class counts
whole. What cannot be followed by reading counts whole as well: a module that is handed about as a value, and
one that is named in a string (`import_module("a.b")`, `python -m a.b`); `Reach.dynamic` lists where.
"""

import ast
import functools
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from compendium.frame.files import read_utf8
from compendium.frame.paths import ROOT, shown

ROOMS = ("lib", "compendium")  # the packages that are followed
MODULE_NAME = re.compile(rf"(?:{'|'.join(ROOMS)})(?:\.\w+)+")
HOLE = "\0"  # stands for what an f-string puts in
TOP = ""  # the node of what runs when a module is imported
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class ReachError(ValueError):
    """Code that does not parse; the message names file or cell and line."""


@dataclass(frozen=True)
class Uses:
    """What a piece of code refers to.

    names : plain names; dotted : (name, first attribute) of each `name.attribute`.
    imports : local name -> {(module, name there or None for the module itself)}: one name may be imported twice.
    strings : modules named in strings, HOLE where an f-string puts something in.
    """

    names: frozenset
    dotted: frozenset
    imports: dict
    strings: frozenset


@dataclass(frozen=True)
class Definition:
    """A top-level function or class, or (TOP) a module's statements that run on import."""

    digest: str
    uses: Uses


@dataclass(frozen=True)
class Module:
    name: str
    definitions: dict = field(repr=False)


def uses_of(nodes) -> Uses:
    """What statements refer to, without their docstrings."""
    names, dotted, imports, strings, bases = set(), set(), {}, set(), set()
    for node in (found for root in nodes for found in ast.walk(root)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            dotted.add((node.value.id, node.attr))
            bases.add(id(node.value))
        elif isinstance(node, ast.Name) and id(node) not in bases:
            names.add(node.id)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.split(".")[0]
                target = alias.name if alias.asname else alias.name.split(".")[0]
                imports.setdefault(local, set()).add((target, None))
                if alias.name.split(".")[0] in ROOMS:
                    strings.add(alias.name)  # `import a.b` makes a.b whole: its parts are not told apart
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                imports.setdefault(alias.asname or alias.name, set()).add((node.module, alias.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings |= {node.value} if MODULE_NAME.fullmatch(node.value) else set()
        elif isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else HOLE for part in node.values)
            if MODULE_NAME.fullmatch(text.replace(HOLE, "x")):
                strings.add(text)
    return Uses(frozenset(names), frozenset(dotted), imports, frozenset(strings))


def parsed(source: str, where: str) -> ast.Module:
    """The syntax tree of plain Python or a notebook's cell (IPython magics become `pass`).

    Raises ReachError naming `where` and the line.
    """
    code = re.sub(r"^([ \t]*)[%!].*$", r"\1pass", source, flags=re.M)
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte
        line = f", line {error.lineno}" if getattr(error, "lineno", None) else ""
        raise ReachError(f"{where}{line}: not valid Python: {getattr(error, 'msg', error)}") from None


def bare(node: ast.AST) -> ast.AST:
    """`node` with its own and all inner docstrings taken out, in place."""
    for each in ast.walk(node):
        body = getattr(each, "body", None)
        if (
            isinstance(each, (ast.Module, ast.ClassDef, *FUNCTIONS))
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
            and isinstance(body[0].value.value, str)
        ):
            each.body = body[1:] or [ast.Pass()]
    return node


def _definition(nodes) -> Definition:
    text = "\n".join(ast.dump(node) for node in nodes)
    return Definition(hashlib.sha256(text.encode()).hexdigest()[:16], uses_of(nodes))


@functools.cache
def read_module(name: str) -> Module | None:
    """A module of the project by its dotted name; None where there is none of that name."""
    path = module_path(name)
    return None if path is None else _read(path, name)


def forget() -> None:
    """Read every file anew from now on: for who edits code while this process runs."""
    for kept in (read_module, module_path, _matching):
        kept.cache_clear()


def _read(path: Path, name: str) -> Module:
    tree = bare(parsed(read_utf8(path, ReachError, "Python code"), shown(path)))
    found, top = {}, []
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            found.setdefault(node.name, []).append(node)
            # decorators, bases and defaults run on import
            top += [*node.decorator_list, *getattr(node, "bases", ())]
        else:
            top.append(node)
    definitions = {each: _definition(nodes) for each, nodes in found.items()}
    return Module(name, {**definitions, TOP: _definition(top)})


@functools.cache
def module_path(name: str) -> Path | None:
    """The file of a module or package of the project; None where there is none."""
    if name.split(".")[0] not in ROOMS:
        return None
    place = ROOT.joinpath(*name.split("."))
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


class Reach:
    """Everything that some pieces of code can reach.

    Parameters
    ----------
    sources : (where, source) of each piece, e.g. a notebook's code cells in order; names carry over.
    study : what an f-string's hole is taken for in a module's name, where such a module exists (else: all).
    closed : modules that are never opened where this code runs, and so are not followed.

    definitions : {"lib.ranks.spearman": digest}, a module's import under its own name; digest : of them all.
    dynamic : {definition: modules that it names in strings or hands about}, which count whole.
    Raises ReachError for code that does not parse.
    """

    def __init__(self, sources, study: str = "", closed: tuple = ()):
        self._closed = closed
        self._study, self._found, self._asked, self.dynamic = study, {}, set(), {}
        trees = [bare(parsed(source, where)) for where, source in sources]
        uses = uses_of([node for tree in trees for node in tree.body])
        self._queue = []
        self._follow("notebook", uses, uses.imports, None)
        while self._queue:
            module, name = self._queue.pop()
            definition = module.definitions[name]
            top = module.definitions[TOP].uses.imports
            where = f"{module.name}.{name}" if name else module.name
            own = definition.uses.imports
            both = {local: top.get(local, set()) | own.get(local, set()) for local in {*top, *own}}
            self._follow(where, definition.uses, both, module)

    @property
    def definitions(self) -> dict:
        return dict(sorted(self._found.items()))

    @property
    def modules(self) -> list[str]:
        """The modules that any of it lies in."""
        return sorted({self._modules[name] for name in self._found})

    @functools.cached_property
    def _modules(self) -> dict:
        return {name: name if read_module(name) else name.rpartition(".")[0] for name in self._found}

    @property
    def digest(self) -> str:
        text = "\n".join(f"{name} {digest}" for name, digest in self.definitions.items())
        return hashlib.sha256(text.encode()).hexdigest()

    def _module(self, name: str) -> Module | None:
        return None if name in self._closed else read_module(name)

    def _follow(self, where: str, uses: Uses, imports: dict, home: Module | None):
        """Queue what `uses` refers to, seen from inside `home` with these imports."""
        for targets in uses.imports.values():  # importing runs a module, used or not
            for module, name in targets:
                self._run(module)
                self._run(f"{module}.{name}")
        for name in uses.names:
            for target in imports.get(name, ()):
                self._name(where, *target)
        for name, attribute in uses.dotted:
            for module, inside in imports.get(name, ()):
                inner = module if inside is None else f"{module}.{inside}"
                self._name(where, *((inner, attribute) if self._module(inner) else (module, inside)))
        for name in {*uses.names, *(name for name, _ in uses.dotted)}:
            if home and name in home.definitions:
                self._add(home, name)
        for text in uses.strings:
            for module in self._named(text):
                self._whole(where, module)

    def _run(self, name: str):
        """Importing a module runs it and the packages that it lies in."""
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            module = self._module(".".join(parts[:count]))
            if module:
                self._add(module, TOP)

    def _name(self, where: str, module: str, name: str | None):
        """`name` of a module: a definition, a module of a package, what the module imports from elsewhere."""
        if (where, module, name) in self._asked:
            return None
        self._asked.add((where, module, name))
        found = self._module(module)
        if name is None:
            return self._whole(where, module)
        inner = self._module(f"{module}.{name}")
        if inner:
            return self._whole(where, inner.name)
        if found is None:
            return None
        self._run(module)
        if name in found.definitions:
            return self._add(found, name)
        for onward in found.definitions[TOP].uses.imports.get(name, ()):
            self._name(where, *onward)
        return None

    def _add(self, module: Module, name: str):
        full = f"{module.name}.{name}" if name else module.name
        if full not in self._found:
            self._found[full] = module.definitions[name].digest
            self._queue.append((module, name))
            if name:
                self._run(module.name)

    def _whole(self, where: str, name: str):
        module = self._module(name)
        if module:
            self.dynamic.setdefault(where, set()).add(name)
            self._run(name)
            for each in module.definitions:
                self._add(module, each)
            main = self._module(f"{name}.__main__")
            if main:
                self._whole(where, main.name)

    def _named(self, text: str) -> list[str]:
        """The modules that a string names; a hole stands for the study, or for any word."""
        if HOLE not in text:
            return [text] if module_path(text) else []
        mine = text.replace(HOLE, self._study)
        if self._study and module_path(mine):
            return [mine]
        return [] if self._study else _matching(text)


@functools.cache
def _matching(text: str) -> list[str]:
    pattern = text.replace(".", "/").replace(HOLE, "*")
    modules = (place for place in ROOT.glob(f"{pattern}.py") if not place.stem.startswith("__"))
    places = [*modules, *ROOT.glob(f"{pattern}/__init__.py")]
    names = (place.relative_to(ROOT).with_suffix("").as_posix() for place in places)
    return sorted(name.removesuffix("/__init__").replace("/", ".") for name in names)
