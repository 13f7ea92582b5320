"""pyproject.toml, environment.yml and requirements.lock speak of the same packages."""

import re
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from compendium.frame.paths import ROOT

# what conda-forge calls otherwise
CONDA_NAMES = {"pytorch": "torch"}
# back ends a user may choose and then installs: their data or wheels are not for every machine
OPTIONAL = {"infini_gram"}


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def declared() -> list[Requirement]:
    """What the project needs, the estimators and every extra."""
    extras = project()["optional-dependencies"]
    return [Requirement(line) for lines in (project()["dependencies"], *extras.values()) for line in lines]


def wanted():
    return {canonicalize_name(r.name): str(r.specifier) for r in declared()}


def test_the_estimators_need_three_packages_and_every_extra_is_listed_once():
    assert {r.name for r in map(Requirement, project()["dependencies"])} == {"numpy", "scipy", "pandas"}
    assert set(project()["optional-dependencies"]) == {"chain", "live", "text", "book", "dev"}
    assert len(declared()) == len(wanted())


def conda():
    found = {}
    for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]:
        for line in entry["pip"] if isinstance(entry, dict) else [entry]:
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            found[CONDA_NAMES.get(name, name)] = str(requirement.specifier)
    return found


def locked():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return {
        canonicalize_name(name): version
        for name, version in (line.split("==") for line in lines if line and not line.startswith("#"))
    }


def test_environment_yml_lists_what_pyproject_lists():
    found = conda()
    python = found.pop("python")
    assert found.pop("make") == found.pop("pip") == ""
    assert python == project()["requires-python"]
    assert found == wanted()


def test_the_lock_pins_every_dependency_but_torch_within_its_range():
    pins = locked()
    ranges = {canonicalize_name(r.name): r for r in declared()}
    assert set(ranges) - set(pins) == {"torch"}, (
        "torch is chosen by setup: users must not be forced to one build"
    )
    for name in set(ranges) & set(pins):
        assert ranges[name].specifier.contains(pins[name]), name


def test_what_lib_imports_is_declared():
    import ast
    import sys
    from importlib.metadata import packages_distributions

    owners = packages_distributions()
    declared = set(wanted())
    for path in (*(ROOT / "lib").rglob("*.py"), *(ROOT / "compendium").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            for name in (
                {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"lib", "compendium"}
            ):
                candidates = {canonicalize_name(owner) for owner in owners.get(name, [name])}
                assert name in OPTIONAL or candidates & declared, (
                    f"{path.name} imports {name}, which pyproject.toml does not list"
                )


def test_no_registry_host_or_machine_path_is_named():
    listed = [
        ROOT / name
        for name in ("pyproject.toml", "environment.yml", "requirements.lock", "Makefile", "Snakefile")
    ]
    for path in listed:
        assert not re.search(r"pypi\.org|files\.pythonhosted|--index-url|file://", path.read_text()), (
            path.name
        )
