"""Every module has a test: a file of its name, a test that imports it or runs it, or the one that its `# Tested by` names."""

import re
from pathlib import Path

from compendium.frame.paths import ROOT
from compendium.frame.reach import parsed, uses_of

MODULES = [
    path
    for room in ("lib", "compendium")
    for path in sorted((ROOT / room).rglob("*.py"))
    if len(path.read_text(encoding="utf-8").splitlines()) > 1  # more than a package's docstring
]
TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if "bench" not in path.parts]


def name_of(path: Path) -> str:
    return (
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        .removesuffix(".__init__")
        .removesuffix(".__main__")
    )


def named(path: Path) -> set[str]:
    """What a test imports, and every module that it names in a string."""
    uses = uses_of(parsed(path.read_text(encoding="utf-8"), path.name).body)
    targets = {target for found in uses.imports.values() for target in found}
    return (
        {module for module, _ in targets}
        | {".".join(filter(None, target)) for target in targets}
        | uses.strings
    )


def mirror(path: Path) -> Path:
    return ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.stem}.py")


def test_every_module_has_a_test():
    said = set().union(*map(named, TESTS))
    assert sum(mirror(path).is_file() for path in MODULES) > 50
    alone = [path for path in MODULES if name_of(path) not in said and not mirror(path).is_file()]
    told = {
        path: re.search(r"^# Tested by (\S+)\.$", path.read_text(encoding="utf-8"), re.M) for path in alone
    }
    untold = [name_of(path) for path, found in told.items() if not found or not (ROOT / found[1]).is_file()]
    assert not untold, (
        f"no test: {untold}; write one, or say in the module which covers it: # Tested by tests/…"
    )
