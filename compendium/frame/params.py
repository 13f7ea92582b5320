"""Parameters: one YAML file a study, one a profile; looked up by name, checked, never read on import."""

import ast
import difflib
from pathlib import Path

import yaml

from compendium.frame import files, param_types
from compendium.frame.paths import PARAMS, STUDIES, from_root, shown

PROFILES = ("demo", "released", "live")
ACCEPT_MISSING = "COMPENDIUM_ACCEPT_MISSING"  # with it a stage that lacks replies goes on without them
OWN_DATA = "COMPENDIUM_OWN_DATA"  # set where a run has data of one's own: a notebook that they do not serve is folded away
MISSING = "missing"  # the folder of marks that such a stage leaves in its run's
SOURCES = ("simulated", "archive", "endpoint")  # where replies come from
LEDGERS_ONLY = (
    "COMPENDIUM_LEDGERS_ONLY"  # the variable with which no endpoint is asked: ledgers hold every reply
)
SECTION = {"type": "mapping", "empty": True, "or_null": True}  # what a profile may set of one study


class ParamsError(ValueError):
    """A params file that cannot be used: the message names file, key or line, and what would be right."""


def read_yaml(path) -> dict:
    """The mapping in a YAML file. Raises ParamsError as `compendium.frame.files.read_yaml` says."""
    return files.read_yaml(path, ParamsError, dict)


def check_source(source: str) -> str:
    """`source` itself. Raises ParamsError where it is not one of `SOURCES`."""
    if source not in SOURCES:
        raise ParamsError(
            f"source {source!r} is not one of {', '.join(SOURCES)} (params/<profile>.yaml, `source`)"
        )
    return source


def is_small(smoke) -> bool:
    """Whether SMOKE asks for the small run: anything but empty, 0, false, no or off does."""
    return str(smoke).lower() not in ("", "0", "false", "no", "off")


def run_folder(profile: str, smoke=0, build: str = "") -> Path:
    """Where a run writes: `build` where it is named, else build/<profile>, with -smoke for the small run."""
    return from_root(build or f"build/{profile}{'-smoke' if is_small(smoke) else ''}")


def profile_params(profile: str) -> dict:
    """The content of params/<profile>.yaml, keys and types checked; an empty section is an empty mapping.

    Raises ParamsError for an unknown profile or key, a missing `source`, or a value that cannot be.
    """
    if profile not in PROFILES:
        raise ParamsError(f"profile {profile!r} is not one of {', '.join(PROFILES)}")
    path = PARAMS / f"{profile}.yaml"
    content, rules = read_yaml(path), param_types.table()["profile"]
    if "source" not in content:
        raise ParamsError(f"{shown(path)}: lacks the key `source`: {param_types.wanted(rules['source'])}")
    for key in content:
        if key not in (*rules, "smoke", *STUDIES):
            raise ParamsError(unknown_key(path, (key,), [*rules, "smoke", *STUDIES]))
        if key != "source" and content[key] is None:  # everything below it is commented out
            content[key] = {}
    for key, value in content.items():
        _check(path, (key,), value, rules.get(key) or SECTION, content)
    for study, section in content.get("smoke", {}).items():
        if study not in STUDIES:
            raise ParamsError(unknown_key(path, ("smoke", study), STUDIES))
        _check(path, ("smoke", study), section, SECTION, content)
    return content


def study_params(study: str, profile: str = "demo", smoke: bool = False) -> dict:
    """The parameters of a study under a profile: params/<study>.yaml, overridden by the profile's own
    `<study>:` section and, for a small run, by its `smoke: {<study>: ...}` section.

    Raises ParamsError naming file, key and line for a key that the study does not have or that params/types.yaml
    does not list, and for a value that its type there does not allow.
    """
    if study not in STUDIES:
        raise ParamsError(f"study {study!r} is not one of {', '.join(STUDIES)}")
    file, profile_file = PARAMS / f"{study}.yaml", PARAMS / f"{profile}.yaml"
    params, content = read_yaml(file), profile_params(profile)
    stands = [
        (file, (key,), value) for key, value in params.items()
    ]  # every value, also one that is overridden
    rules = param_types.table().get(study, {})
    for where, path, _ in stands:  # first, lest an override of the right name be blamed for a wrong one here
        _check_name(where, path, rules, study)
    own = dict(params)
    sections = {(study,): content.get(study)}
    if smoke:
        sections["smoke", study] = content.get("smoke", {}).get(study)
    for path, section in sections.items():
        for key, value in (section or {}).items():
            if key not in params:
                raise ParamsError(unknown_key(profile_file, (*path, key), params))
            params[key] = value
            stands.append((profile_file, (*path, key), value))
    for where, path, value in stands:  # one that is overridden, beside the other values of its own file
        _check(where, path, value, rules[path[-1]], params if params[path[-1]] is value else own)
    return params


def check_given(study: str, profile: str, ran: list) -> None:
    """Check what papermill put into a notebook (`-p B 500`), before anything is computed with it.

    `ran` holds the sources of the cells that ran, in order; papermill's follows the parameters cell and begins with
    `# Parameters`. Raises ParamsError for a name that the parameters cell does
    not have, and for a value that params/types.yaml does not allow.
    """
    rules = param_types.table().get(study, {})
    for before, source in zip(ran, ran[1:], strict=False):
        if not source.startswith("# Parameters\n"):
            continue
        there = _assigned(before)
        given = _assigned(source)
        values = study_params(study, profile) | given
        for name in given:
            if name not in there:
                near = difflib.get_close_matches(name, list(there), n=1) or [
                    other for other in there if other.lower() == name.lower()
                ]
                hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(there)}"
                raise ParamsError(f"-p {name}: the notebook has no such parameter; {hint}")
            # what should be among another key's entries is checked with that key alone: a small run has its own
            if name in rules and given[name] is not None and _among(rules[name]) <= given.keys():
                found = param_types.problem(values[name], rules[name], values, (name,))
                if found:
                    raise ParamsError(f"-p {name}: `{'.'.join(map(str, found[0]))}` {found[1]}")


def _among(rule) -> set:
    """The keys whose entries a rule of params/types.yaml asks for, at any depth."""
    if not isinstance(rule, dict):
        return set()
    inner = set().union(*map(_among, rule.values()))
    return inner | {rule["among"]} if isinstance(rule.get("among"), str) else inner


def _assigned(source: str) -> dict:
    """{name: value} of a cell's plain assignments; None for a value that is no literal."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                found[node.targets[0].id] = None
    return found


def unknown_key(file, path: tuple, known) -> str:
    """One sentence for a key nobody knows (the last of `path`), with its line and the nearest known one."""
    near = difflib.get_close_matches(str(path[-1]), list(known), n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(sorted(known))}"
    return f"{_where(file, path)}: unknown key `{'.'.join(map(str, path))}`; {hint}"


def _check_name(file, path: tuple, rules, study: str) -> None:
    if path[-1] in rules:
        return
    if difflib.get_close_matches(str(path[-1]), rules, n=1):
        raise ParamsError(unknown_key(file, path, rules))
    raise ParamsError(
        f"{_where(file, path)}: `{path[-1]}` has no type yet; add a line for it to "
        f"params/types.yaml, below `{study}:`"
    )


def _check(file, path: tuple, value, rule, params: dict) -> None:
    found = param_types.problem(value, rule, params, path)
    if found:
        raise ParamsError(f"{_where(file, found[0])}: `{'.'.join(map(str, found[0]))}` {found[1]}")


def _where(file, path: tuple) -> str:
    """`params/x.yaml, line 3`: where the key that `path` names stands (or the nearest of its parents)."""
    node, line = yaml.compose(files.read_utf8(file, ParamsError), Loader=yaml.SafeLoader), None
    for name in path:
        if isinstance(node, yaml.MappingNode):
            key, node = next(
                ((key, value) for key, value in node.value if key.value == str(name)), (None, None)
            )
        elif isinstance(node, yaml.SequenceNode) and isinstance(name, int) and name < len(node.value):
            key = node = node.value[name]
        else:
            key = None
        if key is None:
            break
        line = key.start_mark.line + 1
    return f"{shown(file)}, line {line}" if line else shown(file)
