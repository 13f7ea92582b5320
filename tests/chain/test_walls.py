"""The walls between the rooms, as the import graph shows them (imports inside functions count)."""

from pathlib import Path

import pytest

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
