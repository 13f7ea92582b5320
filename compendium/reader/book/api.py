"""The library as its sources describe it: modules, public functions and classes, docstrings (nothing is
imported).
"""

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path

from compendium.frame.paths import ROOT
from compendium.frame.reach import ROOMS


@dataclass(frozen=True)
class Function:
    """A public function, class or method: where it stands, how it is called, what it says of itself."""

    name: str  # lib.agreement.krippendorff_alpha
    module: str  # lib.agreement
    kind: str  # function, class, method
    signature: str
    doc: str
    source: str
    line: int

    @property
    def anchor(self) -> str:
        """Its place on its module's page."""
        return self.name.removeprefix(f"{self.module}.")


@dataclass(frozen=True)
class Module:
    """A module: its own docstring and its public functions and classes, in the order of the file."""

    name: str
    path: Path
    doc: str
    functions: tuple

    @property
    def page(self) -> str:
        """The page's name in the book, without ending: `api/compendium/asking/client`."""
        place = self.name.replace(".", "/")
        return f"api/{place}/index" if self.path.name == "__init__.py" else f"api/{place}"


class Library:
    """Every module of the packages below `root`, and names to find their functions by."""

    def __init__(self, root: Path = ROOT):
        self.modules, self.functions, self.methods, self._exports = {}, {}, {}, {}
        for path in (path for room in ROOMS for path in sorted((root / room).rglob("*.py"))):
            if path.name != "__main__.py":
                self._read(path, root)

    def find(self, name: str) -> str | None:
        """The full name of a public function or class, through re-exports of a package; None where there is
        none.
        """
        for _ in range(4):
            if name in self.functions:
                return name
            if name not in self._exports:
                return None
            name = self._exports[name]
        return None

    def link(self, name: str) -> str:
        """`api/lib/agreement.html#krippendorff_alpha`, from the root of the book."""
        function = self.functions[name]
        return f"{self.modules[function.module].page}.html#{function.anchor}"

    def _read(self, path: Path, root: Path):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines = text.splitlines()
        found = []
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._exports.update(
                    {
                        f"{name}.{alias.asname or alias.name}": f"{node.module}.{alias.name}"
                        for alias in node.names
                    }
                )
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found += self._definition(node, name, lines)
        self.modules[name] = Module(name, path, ast.get_docstring(tree) or "", tuple(found))

    def _definition(self, node, module: str, lines, owner: str = "") -> list:
        """A public function or class, and a class's public methods."""
        if node.name.startswith("_"):
            return []
        is_class = isinstance(node, ast.ClassDef)
        full = f"{module}.{owner}{node.name}"
        start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        source = textwrap.dedent("\n".join(lines[start - 1 : node.end_lineno]))
        function = Function(
            full,
            module,
            "class" if is_class else "method" if owner else "function",
            _signature(node),
            ast.get_docstring(node) or "",
            source,
            node.lineno,
        )
        self.functions[full] = function
        if owner:
            self.methods.setdefault(node.name, []).append(full)
        found = [function]
        if is_class:
            for inner in node.body:
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found += self._definition(inner, module, lines, f"{node.name}.")
        return found


def _signature(node) -> str:
    """How it is called: `name(a, b=1) -> float`; a class by its constructor or its fields."""
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
                return f"{node.name}({', '.join(ast.unparse(inner.args).split(', ')[1:])})"
        fields = [ast.unparse(inner) for inner in node.body if isinstance(inner, ast.AnnAssign)]
        return f"{node.name}({', '.join(fields)})"
    decorated = {ast.unparse(decorator) for decorator in node.decorator_list}
    arguments = ast.unparse(node.args)
    if arguments.split(",")[0] in ("self", "cls"):
        arguments = ", ".join(arguments.split(", ")[1:])
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if decorated & {"property", "functools.cached_property", "cached_property"}:
        return f"{node.name}{returns}"
    return f"{node.name}({arguments}){returns}"
