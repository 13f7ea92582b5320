"""The walls between the rooms, as the import graph shows them (imports inside functions count)."""

import ast
import statistics
import sys
from pathlib import Path

import pytest

from compendium.frame.chain import notebooks
from compendium.frame.params import PROFILES
from compendium.frame.paths import ACROSS, ROOT, STUDIES, shown
from compendium.frame.reach import parsed, uses_of

FILES = [path for room in ("lib", "compendium") for path in sorted((ROOT / room).rglob("*.py"))]
ROOMS = ("lib", "compendium.frame", "compendium.asking", "compendium.studies", "compendium.reader")
OPEN = {  # room: the other rooms that it may import
    "lib": (),
    "compendium.frame": ("lib",),
    "compendium.asking": ("lib", "compendium.frame"),
    "compendium.studies": ("lib", "compendium.frame", "compendium.asking"),
    "compendium.reader": ("lib", "compendium.frame", "compendium.asking"),  # a certificate hashes the ledgers
}


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_by(path: Path) -> set[str]:
    """Every module of the project, or name in one, that a file imports, also inside its functions."""
    uses = uses_of(parsed(path.read_text(encoding="utf-8"), shown(path)).body)
    targets = {target for found in uses.imports.values() for target in found}
    return {".".join(filter(None, target)) for target in targets}


def room_of(name: str) -> str | None:
    return next((room for room in ROOMS if name == room or name.startswith(f"{room}.")), None)


def study_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[2] if parts[:2] == ["compendium", "studies"] and len(parts) > 2 else None


def crossing(name: str, imported) -> list[str]:
    """What the module `name` imports though a wall stands between."""
    room, study = room_of(name), study_of(name)
    across = [other for other in imported if room_of(other) not in (None, room, *OPEN.get(room, ()))]
    if study not in (None, ACROSS):
        across += [other for other in imported if study_of(other) not in (None, study)]
    return sorted(across)


def test_every_module_stands_in_a_room():
    assert len(FILES) > 100
    assert [shown(path) for path in FILES if room_of(module(path)) is None] == [
        "compendium/__init__.py",
        "compendium/__main__.py",  # puts the rooms together
    ]
    assert {study_of(module(path)) for path in FILES} - {None} == set(STUDIES)


@pytest.mark.parametrize("room", ROOMS)
def test_no_import_crosses_a_wall(room):
    found = {
        shown(path): crossed
        for path in FILES
        if room_of(module(path)) == room and (crossed := crossing(module(path), imported_by(path)))
    }
    assert not found


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        ("lib.ranks", "compendium.frame.files"),
        ("compendium.frame.run", "compendium.asking.live"),
        ("compendium.asking.live", "compendium.studies.create.stages"),
        ("compendium.studies.create.data", "compendium.studies.stories.data"),
        ("compendium.studies.create.data", "compendium.studies.across.data"),
        ("compendium.reader.book.site", "compendium.studies.create.data"),
    ],
)
def test_a_crossing_is_found(name, imported):
    assert crossing(name, {imported, "lib.ranks" if room_of(name) != "lib" else "numpy"}) == [imported]


def test_across_alone_looks_into_every_study():
    assert not crossing(
        "compendium.studies.across.data", {f"compendium.studies.{name}.data" for name in STUDIES}
    )


def test_lib_is_imported_with_three_packages():
    """What else an estimator needs (torch, spaCy) it imports inside the function that needs it."""
    for path in FILES:
        if room_of(module(path)) == "lib":
            names = {
                name.split(".")[0]
                for node in parsed(path.read_text(encoding="utf-8"), shown(path)).body
                if isinstance(node, (ast.Import, ast.ImportFrom))
                for name in (
                    [node.module]
                    if isinstance(node, ast.ImportFrom)
                    else [alias.name for alias in node.names]
                )
            }
            assert names <= {"lib", "numpy", "scipy", "pandas", *sys.stdlib_module_names}, shown(path)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_notebook_that_does_not_ask_reaches_no_client_and_no_simulator(profile):
    """Those of the demo alone may know what was planted, which they compare with; across shows simulated people."""
    for book in notebooks("all", profile):
        if "source" in book.parameters or book.profiles == ("demo",) or book.study == ACROSS:
            continue
        reached = book.reach.modules
        asking = [name for name in reached if name.startswith("compendium.asking.") and "simulated" in name]
        planted = [name for name in reached if study_of(name) and "simulated" in name.split(".")]
        assert not asking + planted, book.rule
        assert not {"compendium.asking.client", "compendium.asking.study"} & set(reached), book.rule


def test_a_run_from_archives_hangs_on_little():
    reached = [book.reach.modules for book in notebooks("all", "released")]
    assert not any("compendium.asking.client" in modules for modules in reached)
    assert statistics.median(map(len, reached)) <= 25
