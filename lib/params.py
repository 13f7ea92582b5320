"""Parameters: one YAML file a study, one a profile; looked up by name, checked, never read on import."""

import difflib
from pathlib import Path

import yaml

from lib.paths import PARAMS, STUDIES, from_root, shown

PROFILES = ("demo", "released", "live")
PROFILE_KEYS = {"source": str, "endpoint": dict, "budget": dict, "prices": dict, "expected_tokens": dict,
                "smoke": dict}


class ParamsError(ValueError):
    """A params file that cannot be used: the message names file, key or line, and what would be right."""


def read_yaml(path) -> dict:
    """The mapping in a YAML file.

    Raises ParamsError for a missing file, malformed YAML (with its line), a repeated key, or a file that
    holds anything but a mapping.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ParamsError(f"{shown(path)}: cannot be read ({error.strerror}); it should be a YAML file") from None
    try:
        content = yaml.load(text, Loader=_UniqueKeys)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ParamsError(f"{shown(path)}:{where}: not valid YAML: {problem}") from None
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise ParamsError(f"{shown(path)}: should hold `key: value` lines, but holds a {type(content).__name__}")
    return content


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key given twice is an error: the second would silently win."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key if isinstance(key, str) else id(key_node))
        return super().construct_mapping(node, deep)


def is_small(smoke) -> bool:
    """Whether SMOKE asks for the small run: anything but empty, 0 or false does."""
    return str(smoke) not in ("", "0", "false", "False")


def run_folder(profile: str, smoke=0, build: str = "") -> Path:
    """Where a run writes: `build` where it is named, else build/<profile>, with -smoke for the small run."""
    return from_root(build or f"build/{profile}{'-smoke' if is_small(smoke) else ''}")


def profile_params(profile: str) -> dict:
    """The content of params/<profile>.yaml, its keys checked.

    Raises ParamsError for an unknown profile or key.
    """
    if profile not in PROFILES:
        raise ParamsError(f"profile {profile!r} is not one of {', '.join(PROFILES)}")
    path = PARAMS / f"{profile}.yaml"
    content = read_yaml(path)
    for key, value in content.items():
        if key in PROFILE_KEYS:
            if not isinstance(value, PROFILE_KEYS[key]):
                raise ParamsError(
                    f"{shown(path)}: `{key}` should be a {PROFILE_KEYS[key].__name__}, not {value!r}"
                )
        elif key not in STUDIES:
            raise ParamsError(unknown_key(path, key, [*PROFILE_KEYS, *STUDIES]))
    return content


def study_params(study: str, profile: str = "demo", smoke: bool = False) -> dict:
    """The parameters of a study under a profile: params/<study>.yaml, overridden by the profile's own
    `<study>:` section and, for a small run, by its `smoke: {<study>: ...}` section.

    Raises ParamsError where a file is malformed or an override names a key that the study does not have.
    """
    if study not in STUDIES:
        raise ParamsError(f"study {study!r} is not one of {', '.join(STUDIES)}")
    params = read_yaml(PARAMS / f"{study}.yaml")
    content = profile_params(profile)
    overrides = [content.get(study)] + ([(content.get("smoke") or {}).get(study)] if smoke else [])
    for section in overrides:
        for key, value in (section or {}).items():
            if key not in params:
                raise ParamsError(unknown_key(PARAMS / f"{profile}.yaml", f"{study}.{key}", params))
            params[key] = value
    return params


def unknown_key(path, key: str, known) -> str:
    """One sentence for a key nobody knows, with its line and the nearest known one."""
    last = key.split(".")[-1]
    near = difflib.get_close_matches(last, list(known), n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(sorted(known))}"
    line = next(
        (i for i, text in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1)
         if text.strip().startswith(f"{last}:")),
        None,
    )
    where = f"{shown(path)}, line {line}" if line else shown(path)
    return f"{where}: unknown key `{key}`; {hint}"
