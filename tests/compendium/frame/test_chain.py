"""The chain itself, on a project of three tiny notebooks: what runs, what runs again, and what is said when it cannot."""

import json
import os
import resource
import shutil
import subprocess
import sys

import pytest

from compendium.frame.chain import ChainError, forget_removed, notebooks, read_notebook
from compendium.frame.files import TEMPORARY
from compendium.frame.paths import ROOT, STUDIES
from tests.small_project import BASE, COLUMNS, PAGE, small_project, write_notebook

BOOKS = {
    "01_a": (
        {"makes": ["alienbench/a.csv"]},
        "B = 10\n",
        'import pandas as pd\npage.save_csv(pd.DataFrame({"x": [B]}), "alienbench/a.csv")\npage.cell("t", "a", "x", B)',
    ),
    "02_b": (
        {"needs": {"a": "alienbench/a.csv"}},
        'a = ""\nseed = 1\n',
        'import pandas as pd\nfrom lib import numeric\npage.cell("t", "b", "x", pd.read_csv(a).x[0] + seed)',
    ),
    "03_c": ({}, "seed = 1\n", 'page.cell("t", "c", "x", seed)'),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of its own: this one's `lib` and Snakefile, three notebooks, two params keys."""
    folder = small_project(
        tmp_path_factory.mktemp("project"),
        {"alienbench": "B: 10\nseed: 1\n"},
        "alienbench,t,a,x,10,,,0,,Table 1,exact,,whole,number\n",
    )
    for name, (meta, parameters, code) in BOOKS.items():
        write_notebook(
            folder / "notebooks" / "alienbench" / f"{name}.ipynb",
            meta,
            parameters,
            PAGE.format(name=name, code=code),
        )
    return folder


def run(folder, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(folder), "COMPENDIUM_MIRROR": ""}
    return subprocess.run(
        [sys.executable, "-m", "compendium", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=200,
        check=False,
        **options,
    )


def stamps(folder):
    return {
        path.stem: path.stat().st_mtime_ns
        for path in (folder / "build/demo/notebooks/alienbench").glob("*.ipynb")
    }


def rerun(folder):
    """The notebooks that a run executes again."""
    before = stamps(folder)
    result = run(folder)
    assert result.returncode == 0, result.stderr
    return {name for name, stamp in stamps(folder).items() if stamp != before.get(name)}, result


def test_the_chain_runs_what_changed_and_nothing_else(project):
    ran, result = rerun(project)
    assert ran == {"01_a", "02_b", "03_c"}
    assert "alienbench: cells 3; printed 1: not computed 1 (other run 1)" in result.stdout
    cells = (project / "build/demo/cells.csv").read_text().splitlines()
    assert cells[2] == "alienbench,t,b,x,11,,,,,alienbench/02_b,code", (
        "a number carries the cell that made it"
    )
    assert "cell-id=code" in (project / "build/demo/notebooks/alienbench/02_b.html").read_text()

    ran, result = rerun(project)
    assert ran == set() and "Nothing to do: all 3 notebooks of profile demo are up to date." in result.stdout

    (project / "params/alienbench.yaml").write_text("B: 11\nseed: 1\n")
    ran, result = rerun(project)
    assert ran == {"01_a", "02_b"}, "a params key: who names it, and who needs its files"
    said = [line.strip() for line in result.stderr.splitlines() if "moved" in line]
    assert said == ["moved: alienbench/t[a, x] was 10, is 11", "moved: alienbench/t[b, x] was 11, is 12"], (
        "each number that moved, as its notebook ends"
    )

    module = project / "lib/numeric.py"
    code = module.read_text()
    module.write_text(code.replace("import numpy as np", "import numpy as np  # arrays"))
    assert rerun(project)[0] == set(), "a comment"
    module.write_text(code + "\n\ndef unused():\n    return 1\n")
    assert rerun(project)[0] == set(), "a function that nobody calls"
    module.write_text(code + "\n\nCHANGED = 1\n")
    assert rerun(project)[0] == {"02_b"}, "what a module does on import: who imports it"

    (project / "notebooks/alienbench/03_c.ipynb").touch()
    assert rerun(project)[0] == {"03_c"}, "a notebook: itself"


def test_a_failing_notebook_is_one_line_and_leaves_nothing_half(project):
    path = project / "notebooks/alienbench/04_d.ipynb"
    write_notebook(
        path,
        {},
        "seed = 1\n",
        PAGE.format(name="04_d", code='page.cell("t", "d", "x", 1)\nraise KeyError("lost")'),
    )
    result = run(project)
    path.unlink()
    assert result.returncode != 0
    assert "notebooks/alienbench/04_d.ipynb, cell code: KeyError: 'lost'" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (project / "build/demo/cells/alienbench/04_d.csv").exists()


def test_a_kernel_that_dies_is_one_line(project):
    path = project / "notebooks/alienbench/04_d.ipynb"
    write_notebook(path, {}, "seed = 1\n", "import os\nos._exit(3)")
    result = run(project)
    path.unlink()
    assert result.returncode != 0 and "Traceback" not in result.stderr
    assert "notebooks/alienbench/04_d.ipynb, cell code: its kernel died" in result.stderr
    assert len([line for line in result.stderr.splitlines() if not line.startswith("[")]) == 2, result.stderr


def test_a_cell_without_an_id_that_fails_is_one_line(project):
    path = project / "notebooks/alienbench/04_d.ipynb"
    write_notebook(path, {}, "seed = 1\n", "1 / 0")
    book = json.loads(path.read_text())
    for cell in book["cells"]:
        del cell["id"]
    path.write_text(json.dumps({**book, "nbformat_minor": 4}))
    result = run(project)
    path.unlink()
    assert "notebooks/alienbench/04_d.ipynb, cell ?: ZeroDivisionError: division by zero" in result.stderr
    assert "Traceback" not in result.stderr and "KeyError" not in result.stderr


def test_a_folder_may_have_any_name_but_one_with_a_colon(tmp_path, monkeypatch):
    """A blank, #, braces: in the project's own path, in its params; where results go elsewhere, no braces.

    Nobody's home can be written here: all that the tools keep there lies inside the project.
    """
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    folder = tmp_path / "papers #2" / "o{x}"
    folder.mkdir(parents=True)
    small_project(folder, {"alienbench": "B: '{x}'\n"})
    (folder / "params/types.yaml").write_text("profile: {source: text}\nalienbench: {B: text}\n")
    code = PAGE.format(name="01_a", code="page.cell('t', 'a', 'x', len(B))")
    write_notebook(folder / "notebooks/alienbench/01_a.ipynb", {}, "B = '{x}'\n", code)
    result = run(folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "build/demo/cells.csv").read_text().splitlines()[1].startswith("alienbench,t,a,x,3,")
    assert (folder / "build/home").is_dir()
    braced = run(folder, "--build", str(tmp_path / "y{z}"))
    assert braced.returncode == 2 and "should have no braces" in braced.stderr
    colon = folder.rename(tmp_path / "k: v")
    result = subprocess.run(
        [sys.executable, "-m", "compendium"],
        cwd=colon,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert result.returncode == 2 and "holds a ':', which separates folders" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_code_of_another_checkout_is_not_run(project, tmp_path):
    """An environment that carries one checkout, started in another: one line, and nothing written."""
    other = small_project(tmp_path / "other", {"alienbench": "B: 10\n"})
    for cwd in (other, other / "notebooks/alienbench"):
        result = subprocess.run(
            [sys.executable, "-P", "-m", "compendium"],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert (
            result.returncode == 2
            and f"{other} would run the code of another checkout, {project}" in result.stderr
        )
    code = PAGE.format(name="01_a", code="")
    for book, said in ((other, "PlaceError"), (project, "")):
        result = subprocess.run(
            [sys.executable, "-P", "-c", BASE + code],
            cwd=book / "notebooks/alienbench",
            env={**os.environ, "PYTHONPATH": str(project)},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert (said in result.stderr) if said else (result.returncode == 0), result.stderr
    assert not (other / "build").exists()


def test_a_full_disk_is_one_line_and_leaves_nothing_half(project):
    """No file may grow beyond 100 kB, as on a disk that is full: the page of a notebook does not fit."""
    out = project / "build" / "full"
    result = run(
        project,
        "--build",
        str(out),
        "--study",
        "alienbench",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert result.returncode != 0 and "Traceback" not in result.stderr
    assert (
        "notebooks/alienbench/01_a.ipynb: build/full/notebooks/alienbench/01_a.html: File too large"
        in result.stderr
    )
    assert not list((out / "notebooks").rglob("*.html")) and not list(out.rglob(f".*{TEMPORARY}*"))


def test_a_folder_that_cannot_be_written_is_said(project):
    (project / "build/taken").parent.mkdir(exist_ok=True)
    (project / "build/taken").write_text("")
    result = run(project, "--build", "build/taken")
    assert result.returncode == 2 and result.stderr == "error: build/taken: File exists\n"


def test_what_killed_runs_have_left_is_removed(project):
    left = project / f"build/tidy/notebooks/alienbench/.01_a.ipynb.x7{TEMPORARY}.ipynb"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    result = run(project, "--build", "build/tidy", "--", "-n")
    assert not left.exists() and f"{left.name}: left by a run that was killed, removed" in result.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--cores", "0"], "CORES=0 should be a whole number of at least 1"),
        (["--cores", "x"], "CORES=x should be a whole number of at least 1"),
        (["--cores", "-1"], "CORES=-1 should be a whole number of at least 1"),
        (["--study", "alien"], "STUDY=alien is not one of all, alienbench"),
        (["--study", "alien bench; ls"], "STUDY=alien bench; ls is not one of all, alienbench"),
        (["--profile", "dmo"], "PROFILE=dmo is not one of demo, released, live"),
    ],
)
def test_options_that_cannot_be_are_one_line(project, arguments, message):
    result = run(project, *(f"{name}={value}" for name, value in zip(arguments[::2], arguments[1::2])))
    assert (
        result.returncode == 2
        and result.stderr.startswith(f"error: {message}")
        and result.stderr.count("\n") == 1
    )


def test_make_hands_words_with_blanks_on_whole(project):
    """`make` quotes what it is given: a blank or a shell's sign in STUDY is part of a wrong name, no command."""
    shutil.copy(ROOT / "Makefile", project)
    result = subprocess.run(
        ["make", "tables", f"PYTHON={sys.executable}", "STUDY=a b; touch oops"],
        cwd=project,
        text=True,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        check=False,
    )
    assert result.returncode == 2 and "error: STUDY=a b; touch oops is not one of all" in result.stderr
    assert not (project / "oops").exists()


def test_one_broken_study_does_not_hide_that_the_others_are_sound(project):
    folder = project / "notebooks/stories"
    folder.mkdir()
    write_notebook(
        folder / "01_s.ipynb",
        {},
        "seed = 1\n",
        PAGE.format(name="01_s", code="").replace("alienbench", "stories"),
    )
    (project / "params/stories.yaml").write_text("seed: -1\n")
    result = run(project)
    shutil.rmtree(folder)
    (project / "params/stories.yaml").unlink()
    assert result.returncode == 2
    assert result.stderr == (
        "error: params/stories.yaml, line 1: `seed` should be a whole number of at least 0, not -1 "
        "(sound, and can be run alone: STUDY=alienbench)\n"
    )


def test_a_bad_row_of_printed_numbers_leaves_the_other_studies_their_report(project):
    folder, printed = project / "notebooks/stories", project / "data/published/stories.csv"
    folder.mkdir()
    book = PAGE.format(name="01_s", code="page.cell('t', 's', 'x', 4)").replace("alienbench", "stories")
    write_notebook(folder / "01_s.ipynb", {}, "seed = 1\n", book)
    (project / "params/stories.yaml").write_text("seed: 1\n")
    printed.write_text(f"{COLUMNS}stories,t,s,x,four,,,0,,Table 1,exact,,whole,number\n")
    result = run(project)
    assert result.returncode == 1
    assert (
        "error: stories is not verified: data/published/stories.csv, line 2: value is 'four', should be a number or empty"
        in result.stderr
    )
    assert "alienbench: cells 3; printed 1: " in result.stdout
    assert "stories" in (project / "build/demo/cells.csv").read_text(), (
        "what was computed is there all the same"
    )
    printed.write_text(f"{COLUMNS}stories,t,s,x,4,,,0,,Table 1,exact,,whole,number\n")
    mended = run(project)
    assert mended.returncode == 0 and "not verified" not in mended.stderr
    assert "stories: cells 1; printed 1: " in mended.stdout
    shutil.rmtree(folder)
    for path in (printed, project / "params/stories.yaml"):
        path.unlink()


def test_the_summary_is_printed_where_the_report_was_made(project):
    """Also with further options of Snakemake's; not where targets of one's own leave the report behind."""
    assert "alienbench: cells 3" in run(project, "--", "--printshellcmds").stdout
    (project / "notebooks/alienbench/03_c.ipynb").touch()
    target = str(project / "build/demo/cells/alienbench/03_c.csv")
    assert "alienbench: cells" not in run(project, "--", target).stdout


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "B: 10\nseed: 1\nsed: 2\n",
            "error: params/alienbench.yaml, line 3: unknown key `sed`; did you mean `seed`?",
        ),
        (
            "B: 10\n",
            "error: notebooks/alienbench/02_b.ipynb: its parameter 'seed' is no key of params/alienbench.yaml",
        ),
        ("B: 10\nseed: [\n", "error: params/alienbench.yaml: line 3"),
    ],
)
def test_bad_params_stop_the_chain_before_anything_runs(project, text, message):
    good = (project / "params/alienbench.yaml").read_text()
    (project / "params/alienbench.yaml").write_text(text)
    result = run(project)
    (project / "params/alienbench.yaml").write_text(good)
    assert result.returncode == 2 and result.stderr.startswith(message) and result.stderr.count("\n") == 1


def test_a_missing_mirror_is_said_before_anything_runs(project):
    environment = {**os.environ, "PYTHONPATH": str(project), "COMPENDIUM_MIRROR": "nowhere"}
    result = subprocess.run(
        [sys.executable, "-m", "compendium", "--profile", "released"],
        cwd=project,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 2 and "COMPENDIUM_MIRROR=nowhere: no such folder" in result.stderr


@pytest.mark.parametrize(
    "meta, parameters, message",
    [
        ({"neds": {}}, "", "unknown metadata key compendium.neds"),
        ({"needs": {"labels": "x.csv"}}, "", "should set 'labels'"),
        ({"study": "stories"}, "", "lacks `compendium: {study: alienbench"),
        ({"data": "published/alienbench.csv"}, "", "compendium.data should be a list"),
        ({"data": ["published/nowhere.csv"]}, "", "there is no data/published/nowhere.csv"),
        ({"makes": [3]}, "", "compendium.makes.0 should be text"),
        ({"needs": ["a.csv"]}, "", "compendium.needs should be a mapping"),
        (
            {"profiles": ["demo", "relesed"]},
            "",
            "compendium.profiles.1 should be one of .*did you mean `released`",
        ),
        ({"makes": ["/etc/made.csv"]}, "", "names '/etc/made.csv', should be a path below"),
        ({"needs": {"a": "../a.csv"}}, 'a = ""', "names '../a.csv', should be a path below"),
        ({"figures": ["x/../../y"]}, "", "should be a path below"),
        ({"tables": ["."]}, "", "should be a path below"),
        ({"data": ["../lib"]}, "", "should be a path below"),
        ({}, "B = (1\n", "01_x.ipynb, cell parameters, line 3: not valid Python: '\\(' was never closed"),
    ],
)
def test_malformed_metadata_names_the_notebook(tmp_path, meta, parameters, message):
    path = tmp_path / "alienbench" / "01_x.ipynb"
    path.parent.mkdir()
    write_notebook(path, meta, parameters, "1")
    with pytest.raises(ChainError, match=message) as caught:
        read_notebook(path)
    assert "01_x.ipynb" in str(caught.value)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "not a readable notebook"),
        (b"[" * 20_000, "nested too deeply"),
        (b"[" + b"7" * 5_000 + b"]", "not a readable notebook"),
        (b"[1]", "should hold `cells`"),
        (b"{}", "should hold `cells`"),
        (b'{"cells": [{"cell_type": "code"}]}', "should hold `cells`, each with cell_type and source"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_notebook_is_named(tmp_path, content, message):
    (tmp_path / "01_x.ipynb").write_bytes(content)
    with pytest.raises(ChainError, match="01_x.ipynb.*" + message):
        read_notebook(tmp_path / "01_x.ipynb")


def test_code_that_does_not_parse_is_named_with_cell_and_line(tmp_path):
    path = tmp_path / "alienbench" / "01_x.ipynb"
    path.parent.mkdir()
    write_notebook(path, {}, "", "%matplotlib inline\nif True:\n    !ls\nx = = 1\n")
    with pytest.raises(ChainError, match="01_x.ipynb, cell code, line 4: not valid Python"):
        read_notebook(path)
    write_notebook(
        tmp_path / "alienbench/02_x.ipynb",
        {},
        "",
        "%matplotlib inline\nif True:\n    !ls\nimport lib.ranks\n",
    )
    assert "lib.ranks" in read_notebook(tmp_path / "alienbench/02_x.ipynb").reach.modules


def test_every_committed_notebook_has_its_place(tmp_path):
    for study in STUDIES:
        for profile in ("demo", "released", "live"):
            books = notebooks(study, profile)
            own = [
                book.name for book in books if book.study == study
            ]  # one across the studies brings others along
            assert own == sorted(own)
            for book in books:
                assert all((ROOT / name).exists() for name in book.code_inputs(tmp_path)[:-1]), book.path


def test_a_notebook_that_is_no_more_leaves_nothing_behind(tmp_path):
    gone, here = ("alienbench", "03_renamed"), ("alienbench", "03_scores")
    for study, name in (gone, here):
        for path in (
            f"notebooks/{study}/{name}.ipynb",
            f"notebooks/{study}/{name}.html",
            f"cells/{study}/{name}.csv",
        ):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("{}")
    forget_removed("demo", tmp_path)
    assert {path.stem for path in tmp_path.rglob("*") if path.is_file()} == {"03_scores"}


def test_prose_about_another_profile_is_not_in_the_run(project):
    path = project / "notebooks/alienbench/03_c.ipynb"
    before = path.read_text()
    content = json.loads(before)
    content["cells"] += [
        {"cell_type": "markdown", "id": profile, "metadata": {"tags": [profile]}, "source": f"Of {profile}."}
        for profile in ("demo", "released")
    ]
    path.write_text(json.dumps(content))
    try:
        assert run(project).returncode == 0
        page = (project / "build/demo/notebooks/alienbench/03_c.html").read_text()
        assert "Of demo." in page and "Of released." not in page
    finally:
        path.write_text(before)
