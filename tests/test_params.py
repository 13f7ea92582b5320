import pytest

from lib import params
from lib.params import ParamsError, read_yaml, study_params


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(params, "PARAMS", tmp_path)
    (tmp_path / "demo.yaml").write_text("source: simulated\nalienbench:\n  B: 5\nsmoke:\n  alienbench: {B: 2}\n")
    (tmp_path / "alienbench.yaml").write_text("B: 10\nseed: 1\n")
    return tmp_path


def test_profile_and_smoke_override_the_study(folder):
    assert study_params("alienbench", "demo") == {"B": 5, "seed": 1}
    assert study_params("alienbench", "demo", smoke=True) == {"B": 2, "seed": 1}


@pytest.mark.parametrize("text, message", [
    ("B: [1, 2\nseed: 3\n", r"alienbench.yaml: line 2, column 5: not valid YAML"),
    ("B: 1\nB: 2\n", r"line 2, column 1: not valid YAML: the key 'B' is given twice"),
    ("- 1\n", r"should hold `key: value` lines, but holds a list"),
])
def test_malformed_yaml_names_file_and_line(folder, text, message):
    (folder / "alienbench.yaml").write_text(text)
    with pytest.raises(ParamsError, match=message):
        study_params("alienbench")


def test_unknown_override_names_key_line_and_the_nearest(folder):
    (folder / "demo.yaml").write_text("source: simulated\nalienbench:\n  sed: 5\n")
    with pytest.raises(ParamsError, match=r"demo.yaml, line 3: unknown key `alienbench.sed`; did you mean `seed`\?"):
        study_params("alienbench")


def test_unknown_profile_key_and_wrong_type(folder):
    (folder / "demo.yaml").write_text("source: simulated\nalienbnech: {}\n")
    with pytest.raises(ParamsError, match="did you mean `alienbench`"):
        study_params("alienbench")
    (folder / "demo.yaml").write_text("source: [simulated]\n")
    with pytest.raises(ParamsError, match="`source` should be a str"):
        study_params("alienbench")


def test_missing_file_and_unknown_names(folder):
    with pytest.raises(ParamsError, match="cannot be read"):
        read_yaml(folder / "none.yaml")
    with pytest.raises(ParamsError, match="study 'alien' is not one of"):
        study_params("alien")
    with pytest.raises(ParamsError, match="profile 'dmo' is not one of demo"):
        study_params("alienbench", "dmo")


def test_one_reading_of_smoke_and_one_place_for_a_run():
    assert [params.is_small(value) for value in ("1", 1, True, "yes", "0", 0, "", "false", False)] == [True] * 4 + [False] * 5
    assert params.run_folder("demo", "1").parts[-2:] == ("build", "demo-smoke")
    assert params.run_folder("live", "false").parts[-2:] == ("build", "live")
    assert params.run_folder("demo", 1, "build/x").name == "x"


def test_the_project_s_own_files_load():
    for study in ("alienbench",):
        for profile in params.PROFILES:
            assert study_params(study, profile, smoke=True)["seed"] == study_params(study)["seed"]
