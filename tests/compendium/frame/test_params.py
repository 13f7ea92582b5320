import pytest

from compendium.frame import param_types, params
from compendium.frame.params import ParamsError, read_yaml, study_params
from compendium.frame.paths import STUDIES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(params, "PARAMS", tmp_path)
    (tmp_path / "demo.yaml").write_text(
        "source: simulated\nalienbench:\n  B: 5\nsmoke:\n  alienbench: {B: 2}\n"
    )
    (tmp_path / "alienbench.yaml").write_text("B: 10\nseed: 1\n")
    return tmp_path


def test_profile_and_smoke_override_the_study(folder):
    assert study_params("alienbench", "demo") == {"B": 5, "seed": 1}
    assert study_params("alienbench", "demo", smoke=True) == {"B": 2, "seed": 1}


@pytest.mark.parametrize(
    "text, message",
    [
        ("B: [1, 2\nseed: 3\n", r"alienbench.yaml: line 2, column 5: not valid YAML"),
        ("B: 1\nB: 2\n", r"line 2, column 1: not valid YAML: the key 'B' is given twice"),
        ("- 1\n", r"should hold `key: value` lines, but holds a list"),
        ("seed: 3\nB 10\n\n# two lines on\nn: 3\n", r"line 4, column 1: not valid YAML: .*begins in line 2$"),
    ],
)
def test_malformed_yaml_names_file_and_line(folder, text, message):
    (folder / "alienbench.yaml").write_text(text)
    with pytest.raises(ParamsError, match=message):
        study_params("alienbench")


def test_unknown_override_names_key_line_and_the_nearest(folder):
    (folder / "demo.yaml").write_text("source: simulated\nalienbench:\n  sed: 5\n")
    with pytest.raises(
        ParamsError, match=r"demo.yaml, line 3: unknown key `alienbench.sed`; did you mean `seed`\?"
    ):
        study_params("alienbench")


def test_a_misspelt_key_is_blamed_where_it_stands_and_not_on_its_override(folder):
    (folder / "alienbench.yaml").write_text("seed: 1\nBb: 10\n")
    with pytest.raises(ParamsError, match=r"alienbench.yaml, line 2: unknown key `Bb`; did you mean `B`\?"):
        study_params("alienbench")


def test_unknown_profile_key_and_wrong_type(folder):
    (folder / "demo.yaml").write_text("source: simulated\nalienbnech: {}\n")
    with pytest.raises(ParamsError, match="did you mean `alienbench`"):
        study_params("alienbench")
    (folder / "demo.yaml").write_text("source: [simulated]\n")
    with pytest.raises(
        ParamsError,
        match=r"demo.yaml, line 1: `source` should be one of simulated, archive, endpoint, not \[simulated\]",
    ):
        study_params("alienbench")


def test_missing_file_and_unknown_names(folder):
    with pytest.raises(ParamsError, match="cannot be read"):
        read_yaml(folder / "none.yaml")
    with pytest.raises(ParamsError, match="study 'alien' is not one of"):
        study_params("alien")
    with pytest.raises(ParamsError, match="profile 'dmo' is not one of demo"):
        study_params("alienbench", "dmo")


def test_one_reading_of_smoke_and_one_place_for_a_run():
    assert [
        params.is_small(value) for value in ("1", 1, True, "yes", "0", 0, "", "false", False, "no", "Off")
    ] == [True] * 4 + [False] * 7
    assert params.run_folder("demo", "1").parts[-2:] == ("build", "demo-smoke")
    assert params.run_folder("live", "false").parts[-2:] == ("build", "live")
    assert params.run_folder("demo", 1, "build/x").name == "x"


GOOD = {
    "demo.yaml": "source: simulated\nsmoke:\n  alienbench:\n    B: 4\nalienbench:\n  seed: 2\n",
    "alienbench.yaml": "# a comment\nB: 10\nseed: 1\nn_samples: 3\npower: 0.8\njudges: {a/b: A, e/f: E}\n"
    "features:\n  {symmetry: Symmetry, habitat: Habitat}\nconditions: {baseline: B, departure_primed: D}\n"
    "subjects:\n  x/y: {label: Y, weights: open}\n  p/q: {label: Q, weights: proprietary}\n",
    "metanym.yaml": "anchors: [5, 7]\nproduction: 7\ncouncil: [m]\nplayers: {m: {label: M, vendor: v, slug: v/m}}\n",
    "stories.yaml": "vocabulary: null\nwords: [2, 5]\ntranslate: true\nprompts_file: ''\n",
}


@pytest.mark.parametrize(
    "study, file, old, new, message",
    [
        # numbers: kind, sign, bounds
        (
            "alienbench",
            "alienbench.yaml",
            "B: 10",
            "B: -5",
            "line 2: `B` should be a whole number of at least 2, not -5",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "B: 10",
            'B: "many"',
            "line 2: `B` should be a whole number of at least 2, not many",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "B: 10",
            "B: true",
            "line 2: `B` should be a whole number of at least 2, not true",
        ),
        ("alienbench", "alienbench.yaml", "B: 10", "B: 10.5", "line 2: `B` should be a whole number"),
        (
            "alienbench",
            "alienbench.yaml",
            "n_samples: 3",
            "n_samples: 0",
            "line 4: `n_samples` should be a whole number of at least 1",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "seed: 1",
            "seed: null",
            "line 3: `seed` should be a whole number of at least 0, not null",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "power: 0.8",
            "power: 3",
            "line 5: `power` should be a number of more than 0 and less than 1",
        ),
        ("alienbench", "alienbench.yaml", "power: 0.8", "power: .nan", "line 5: `power` should be a number"),
        # lists and mappings: empty, of another kind, of another length, with an entry too many or too few
        (
            "alienbench",
            "alienbench.yaml",
            "judges: {a/b: A, e/f: E}",
            "judges: []",
            r"line 6: `judges` should be a mapping of at least 2",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "judges: {a/b: A, e/f: E}",
            "judges: {a/b: A}",
            r"line 6: `judges` should be a mapping of at least 2 `key: value`, not",
        ),
        (
            "stories",
            "stories.yaml",
            "[2, 5]",
            "[2]",
            r"line 2: `words` should be a list of 2 entries, not \[2\]",
        ),
        (
            "stories",
            "stories.yaml",
            "[2, 5]",
            "[2, 0]",
            r"line 2: `words.1` should be a whole number of at least 1, not 0",
        ),
        (
            "stories",
            "stories.yaml",
            "translate: true",
            "translate: maybe",
            "line 3: `translate` should be yes or no",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "weights: open",
            "weigths: open",
            "line 11: `subjects.x/y.weigths` unknown key; there are label",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            ", weights: open",
            "",
            "line 11: `subjects.x/y` lacks the key `weights`",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "weights: open",
            "weights: opne",
            "line 11: .* not opne; did you mean `open`",
        ),
        # two of one name
        (
            "alienbench",
            "alienbench.yaml",
            "  x/y:",
            "  v/w: {label: Y, weights: open}\n  x/y:",
            "line 12: `subjects.x/y.label` should be another than that of `v/w`: Y would name both",
        ),
        (
            "alienbench",
            "alienbench.yaml",
            "{a/b: A, ",
            "{a/b: A, c/d: A, ",
            "line 6: `judges.c/d` should be another than that of `a/b`",
        ),
        (
            "metanym",
            "metanym.yaml",
            "[5, 7]",
            "[5, 7, 5]",
            "line 1: `anchors.2` should be another than that of `0`: 5",
        ),
        # ids that an instrument or another key does not have
        (
            "alienbench",
            "alienbench.yaml",
            "symmetry:",
            "symetry:",
            "line 8: `features.symetry` .*; did you mean `symmetry`",
        ),
        ("alienbench", "alienbench.yaml", "{baseline:", "{basline:", "line 9: .*did you mean `baseline`"),
        ("metanym", "metanym.yaml", "[m]", "[n]", "line 3: `council.0` should be one of m, not n"),
        (
            "metanym",
            "metanym.yaml",
            "production: 7",
            "production: 6",
            "line 2: `production` should be one of 5, 7, not 6",
        ),
        # the profile's own sections
        (
            "alienbench",
            "demo.yaml",
            "    B: 4",
            "    B: 0",
            "demo.yaml, line 4: `smoke.alienbench.B` should be a whole number",
        ),
        (
            "alienbench",
            "demo.yaml",
            "  seed: 2",
            "  seed: -2",
            "demo.yaml, line 6: `alienbench.seed` should be a whole number",
        ),
        (
            "alienbench",
            "demo.yaml",
            "alienbench:\n  seed: 2",
            "alienbench: 5",
            r"demo.yaml, line 5: `alienbench` should be a mapping",
        ),
        (
            "alienbench",
            "demo.yaml",
            "  alienbench:\n    B: 4",
            "  alienbench: [B]",
            r"demo.yaml, line 3: `smoke.alienbench` should be a mapping",
        ),
        (
            "alienbench",
            "demo.yaml",
            "  alienbench:\n    B: 4",
            "  alien: {B: 4}",
            r"demo.yaml, line 3: unknown key `smoke.alien`; did you mean",
        ),
        (
            "alienbench",
            "demo.yaml",
            "smoke:\n  alienbench:\n    B: 4",
            "smoke: 4",
            "demo.yaml, line 2: `smoke` should be a mapping",
        ),
        ("alienbench", "demo.yaml", "source: simulated", "", "demo.yaml: lacks the key `source`"),
        # a key of one's own
        (
            "alienbench",
            "alienbench.yaml",
            "seed: 1",
            "seed: 1\nmine: 2",
            "line 4: `mine` has no type yet; add a line .* params/types.yaml",
        ),
    ],
)
def test_a_value_that_cannot_be_is_named_with_file_and_line(
    tmp_path, monkeypatch, study, file, old, new, message
):
    monkeypatch.setattr(params, "PARAMS", tmp_path)
    for name, text in GOOD.items():
        (tmp_path / name).write_text(text)
    assert study_params(study, smoke=True)
    assert old in GOOD[file]
    (tmp_path / file).write_text(GOOD[file].replace(old, new))
    with pytest.raises(ParamsError, match=message):
        study_params(study, smoke=True)


def test_a_section_whose_lines_are_commented_out_is_empty(folder):
    (folder / "demo.yaml").write_text("source: simulated\nalienbench:\n  # B: 5\nsmoke:\n")
    assert study_params("alienbench", "demo", smoke=True) == {"B": 10, "seed": 1}


@pytest.mark.parametrize(
    "line, message",
    [
        ("B: 0400", "line 1.*`B` should not be 0400, which YAML 1.1 reads as 256"),
        ("B: 5\nseed: 010", "line 2.*`seed` should not be 010, which YAML 1.1 reads as 8"),
        ("B: 1:30", "line 1.*`B` should not be 1:30, which YAML 1.1 reads as 90"),
        ("B: -1:30.5", "line 1.*`B` should not be -1:30.5, which YAML 1.1 reads as -90.5"),
        ("seed: 1\nB:\n  - 007", "line 3.*should not be 007, which YAML 1.1 reads as 7"),
    ],
)
def test_a_number_in_another_base_than_it_looks_is_refused(folder, line, message):
    (folder / "alienbench.yaml").write_text(line + "\n")
    with pytest.raises(ParamsError, match="alienbench.yaml.*" + message):
        study_params("alienbench")


def test_numbers_that_are_what_they_look_like_are_read(tmp_path):
    (tmp_path / "x.yaml").write_text("a: [0, -0, 10, 1_000, 0.5, 00.5, '0400', 0x1F, 2026-01-01]\n")
    assert params.read_yaml(tmp_path / "x.yaml")["a"][:8] == [0, 0, 10, 1000, 0.5, 0.5, "0400", 31]


@pytest.mark.parametrize(
    "content, message",
    [
        (
            "B: perché".encode("latin-1"),
            r"not UTF-8 \(byte 9 is 0xe9\) in line 1; it should be a YAML file saved as UTF-8",
        ),
        (b"B: 1\nseed: \x00\n", "not valid YAML"),
        (None, "cannot be read .*; it should be a YAML file"),
    ],
)
def test_files_that_are_no_yaml_are_named(folder, content, message):
    (folder / "alienbench.yaml").unlink()
    if content is None:
        (folder / "alienbench.yaml").mkdir()
    else:
        (folder / "alienbench.yaml").write_bytes(content)
    with pytest.raises(ParamsError, match="alienbench.yaml.*" + message):
        study_params("alienbench")


def test_a_byte_order_mark_is_passed_over(folder):
    (folder / "alienbench.yaml").write_bytes(b"\xef\xbb\xbfB: 10\nseed: 1\n")
    assert study_params("alienbench")["B"] == 5


@pytest.mark.parametrize("study", STUDIES)
def test_the_project_s_own_files_load(study):
    """Every key has a type that its value, in every profile, small or not, meets; and the table lists no other key."""
    for profile in params.PROFILES:
        for smoke in (False, True):
            found = study_params(study, profile, smoke)
            assert found.keys() == param_types.table()[study].keys()
            assert found["seed"] == study_params(study)["seed"]


PARAMETERS = 'profile = "demo"\nB = None\nruns = None\nn_queries = None\njudge = "x"  # …'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("b = 500", "-p b: the notebook has no such parameter; did you mean B?"),
        ("n_querys = 3", "-p n_querys: .* did you mean n_queries?"),
        ("colour = 3", "-p colour: .* it has profile, B, runs, n_queries, judge"),
        ('B = "many"', "-p B: `B` should be a whole number of at least 1, not many"),
        ("B = 0", "-p B: `B` should be a whole number"),
        ("n_queries = 2.5", "-p n_queries: "),
    ],
)
def test_what_papermill_hands_over_is_checked(given, message):
    with pytest.raises(ParamsError, match=message.replace("?", r"\?")):
        params.check_given("create", "demo", [PARAMETERS, f"# Parameters\n{given}\n"])


@pytest.mark.parametrize(
    "given",
    [
        "B = 500",
        "B = None",
        'profile = "live"\nB = 7',
        'runs = {"of a small run": {"original": 2}}',
        "B = 2 * 3",
    ],
)
def test_what_may_be_handed_over(given):
    params.check_given("create", "demo", ["1 + 1", PARAMETERS, f"# Parameters\n{given}\n", "B"])
    params.check_given("create", "demo", [PARAMETERS, given])  # not by papermill
