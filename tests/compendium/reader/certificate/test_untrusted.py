"""A certificate from a stranger: whatever it holds, one line, and nothing outside its own folder is touched."""

import os
import random
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from compendium.frame.files import sha256
from compendium.frame.params import LEDGERS_ONLY
from compendium.reader.certificate import bundle, untrusted
from compendium.reader.certificate.bundle import main, verify
from compendium.reader.certificate.facts import CertificateError
from compendium.reader.certificate.untrusted import NAME, inside, opened, plain, read

EXHIBIT = "study,exhibit,row,column,value,lo,hi,decimals,note\n"


def sound() -> dict:
    """Facts with everything that a verification uses."""
    return {
        "manifest": [{"file": "cells/create/01_a.csv", "sha256": "", "comment": "", "bytes": 0}],
        "run": {
            "name": "released",
            "profile": "released",
            "smoke": False,
            "studies": ["create"],
            "coverage": {"create": {"notebooks": 1, "executed": 1}},
        },
        "verdicts": {},
        "code": {"files": {}},
        "parameters": {},
        "environment": {},
        "machine": {},
        "archives": [],
    }


@pytest.fixture
def written(tmp_path):
    """write(facts) -> the folder of a certificate that holds what `facts` list."""

    def write(facts=None, text=None):
        folder = tmp_path / "bundle"
        held = folder / "cells/create/01_a.csv"
        held.parent.mkdir(parents=True, exist_ok=True)
        held.write_text(EXHIBIT)
        facts = sound() if facts is None else facts
        if isinstance(facts, dict) and isinstance(facts.get("manifest"), list):
            for entry in facts["manifest"]:
                if isinstance(entry, dict) and entry.get("sha256") == "":
                    entry["sha256"] = sha256(held)
        (folder / NAME).write_text(yaml.safe_dump(facts) if text is None else text)
        return folder

    return write


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A root whose `build` and `figures` may be spoilt; no chain is run in it."""
    root = tmp_path / "project"
    for name in ("build/kept", "figures/kept"):
        (root / name).mkdir(parents=True)
        (root / name / "precious.txt").write_text("mine")
    ran = []

    def start(command, env, **_):
        ran.append((command, env))
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(bundle, "from_root", lambda path: root / path)
    monkeypatch.setattr(bundle, "figures_folder", lambda out: root / "figures" / out.name)
    monkeypatch.setattr(bundle.subprocess, "run", start)
    return root, ran


def test_a_sound_bundle_is_read_and_its_chain_started_in_a_folder_of_its_own(written, place):
    folder = written()
    assert read(folder)["run"]["name"] == "released"
    with pytest.raises(CertificateError, match="the chain stopped"):
        verify(folder)
    (command, env) = place[1][0]
    fresh = Path(command[command.index("--build") + 1])
    assert fresh == place[0] / "build" / f"verify-{sha256(folder / NAME)[:16]}"
    assert LEDGERS_ONLY not in env


@pytest.mark.parametrize(
    "name",
    [
        "demo/../../kept",
        "..",
        "../kept",
        "/tmp",
        "kept/",
        "a\\b",
        "",
        ".",
        "~",
        "a\nb",
        "x" * 101,
        5,
        None,
        ["a"],
    ],
)
def test_no_name_of_a_run_leads_anywhere(written, place, name, capsys):
    facts = sound()
    facts["run"]["name"] = name
    assert main(["verify", str(written(facts))]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: codecheck.yml: run.name should be one name") and said.count("\n") == 1
    assert not place[1] and all(
        (place[0] / kind / "kept/precious.txt").exists() for kind in ("build", "figures")
    )


def test_the_folder_of_a_rerun_is_emptied_only_where_it_is_its_own(written, place, tmp_path):
    folder, root = written(), place[0]
    with pytest.raises(CertificateError, match="kept: should be a new or an empty folder"):
        verify(folder, build="build/kept")
    fresh = root / "build" / f"verify-{sha256(folder / NAME)[:16]}"
    fresh.symlink_to(root / "build" / "kept")
    with pytest.raises(CertificateError, match="is a link; remove it"):
        verify(folder)
    assert (root / "build/kept/precious.txt").exists()
    fresh.unlink()
    fresh.mkdir()
    (fresh / "old.txt").write_text("left by the last verification")
    with pytest.raises(CertificateError, match="the chain stopped"):
        verify(folder)
    assert not fresh.exists()


@pytest.mark.parametrize(
    "file",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "cells/../../x.csv",
        "cells/create/.hidden",
        "cells//x.csv",
        "cells\\create\\x.csv",
        "C:x",
        "notes.txt",
        "codecheck.yml",
        "cells/a/b/c/d.csv",
        "cells/\x1b[31m.csv",
        7,
        None,
    ],
)
def test_no_name_of_an_exhibit_leads_anywhere(written, file, capsys):
    facts = sound()
    facts["manifest"].append({"file": file, "sha256": "0" * 64})
    assert main(["verify", str(written(facts))]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: codecheck.yml: ") and said.count("\n") == 1 and "\x1b" not in said


def test_an_exhibit_that_is_a_link_out_of_the_bundle_or_no_file_is_refused(written, tmp_path):
    folder = written()
    held = folder / "cells/create/01_a.csv"
    outside = tmp_path / "outside.csv"
    shutil.copy(held, outside)
    held.unlink()
    held.symlink_to(outside)
    with pytest.raises(CertificateError, match="01_a.csv: is not in the bundle"):
        read(folder)
    held.unlink()
    os.mkfifo(held)  # reading it would wait for ever
    with pytest.raises(CertificateError, match="01_a.csv: is not in the bundle"):
        read(folder)
    (folder / NAME).unlink()
    (folder / NAME).symlink_to(outside)
    with pytest.raises(CertificateError, match="codecheck.yml: is not in the bundle"):
        read(folder)


def test_whatever_shape_it_has_the_answer_is_one_line(written):
    """Every part of a sound certificate in turn replaced by values of other kinds, or left out."""
    odd = [
        None,
        True,
        5,
        -1,
        1.5,
        "",
        "x",
        [],
        {},
        [[]],
        [None],
        [{}],
        {"a": 1},
        {1: 2},
        ["create"] * 2,
        "\x1b[2J",
    ]
    tried = 0

    def spots(value, at=()):
        yield at
        inner = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, part in inner:
            yield from spots(part, (*at, key))

    for at in list(spots(sound())):
        for value in odd:
            facts = sound()
            spot = facts
            for key in at[:-1]:
                spot = spot[key]
            if at:
                spot[at[-1]] = value
            else:
                facts = value
            try:
                for line in bundle._differences(read(written(facts)), sound()):
                    assert line
            except CertificateError as error:
                assert "\n" not in str(error) and str(error)
            tried += 1
    assert tried > 350


@pytest.mark.parametrize(
    "text, says",
    [
        ("[" * 20_000, "more than 50 levels"),
        ("manifest: " + "7" * 5_000, "a number of 5000 digits"),
        ("manifest: *nothing", "undefined alias"),
        ("manifest: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("a: 1\na: 2", "given twice"),
        ("\x00", "special characters are not allowed"),
        ("# " + "x" * (8 * 2**20), "a certificate's has at most"),
        ("", "lacks manifest"),
    ],
)
def test_a_certificate_that_no_machine_should_follow_is_one_line(written, text, says, capsys):
    assert main(["verify", str(written(text=text))]) == 2
    said = capsys.readouterr().err
    assert says in said and said.startswith("error: ") and said.count("\n") == 1


def packed(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted, "MOST_BYTES", 2**20)
    monkeypatch.setattr(untrusted, "MOST_FILES", 50)
    bomb = packed(tmp_path / "bomb.zip", [(f"cells/create/{n}.csv", bytes(2**18)) for n in range(5)])
    many = packed(tmp_path / "many.zip", [(f"cells/create/{n}.csv", b"") for n in range(51)])
    fine = packed(tmp_path / "fine.zip", [(f"cells/create/{n}.csv", bytes(2**18)) for n in range(3)])
    monkeypatch.setattr(untrusted.tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    with (
        pytest.raises(CertificateError, match="bomb.zip: 1310720 bytes unpacked, at most 1048576"),
        opened(bomb),
    ):
        pass
    with pytest.raises(CertificateError, match="many.zip: 51 files, at most 50"), opened(many):
        pass
    assert not list((tmp_path / "t").iterdir()), "what was refused leaves nothing"
    with opened(fine) as folder:
        assert len(list(folder.rglob("*.csv"))) == 3


def test_a_zip_that_states_a_small_size_unpacks_no_more_than_that(tmp_path):
    path = packed(tmp_path / "liar.zip", [("cells/create/a.csv", bytes(2**22))])
    data = path.read_bytes().replace(struct.pack("<L", 2**22), struct.pack("<L", 10))
    path.write_bytes(data)
    with pytest.raises(CertificateError, match="liar.zip: a damaged zip"), opened(path):
        pass


def test_a_directory_of_gigabytes_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted, "LONGEST_READ", 1000)
    path = packed(tmp_path / "long.zip", [(f"cells/create/{n}.csv", b"") for n in range(100)])
    with pytest.raises(CertificateError, match="its directory is too long"), opened(path):
        pass


@pytest.mark.parametrize(
    "name",
    [
        "../x.csv",
        "/x.csv",
        "a/../../x",
        "cells/.x",
        "a\\..\\x",
        "C:/x",
        "a" * 400,
        "cells/\x1b.csv",
        "a b",
        " ",
    ],
)
def test_a_member_that_would_land_elsewhere_is_refused(tmp_path, name):
    with (
        pytest.raises(CertificateError, match="is no certificate's"),
        opened(packed(tmp_path / "z.zip", [(name, b"")])),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["z.zip"]


def test_links_twins_and_other_packings(tmp_path):
    link = zipfile.ZipInfo("cells/create/a.csv")
    link.external_attr = 0o120777 << 16
    with opened(packed(tmp_path / "link.zip", [(link, b"/etc/passwd")])) as folder:
        assert not (folder / "cells/create/a.csv").is_symlink()
    with pytest.warns(UserWarning, match="Duplicate name"):
        packed(tmp_path / "twin.zip", [("a.csv", b"1"), ("a.csv", b"2")])
    packed(tmp_path / "both.zip", [("a", b""), ("a/b", b"")])
    for name in ("twin.zip", "both.zip"):
        with pytest.raises(CertificateError, match="damaged zip"), opened(tmp_path / name):
            pass
    packing = packed(tmp_path / "x.zip", [("a.csv", b"1")], zipfile.ZIP_LZMA)
    with pytest.raises(CertificateError, match="in another way than deflate"), opened(packing):
        pass


def test_a_zip_with_any_bytes_changed_is_one_line(tmp_path, written):
    folder = written()
    sound_zip = packed(
        tmp_path / "sound.zip",
        [
            (path.relative_to(folder).as_posix(), path.read_bytes())
            for path in folder.rglob("*")
            if path.is_file()
        ],
    )
    data, rng, refused = sound_zip.read_bytes(), random.Random(16), 0
    for _ in range(300):
        spoilt = bytearray(data)
        for _ in range(rng.randint(1, 6)):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        (tmp_path / "spoilt.zip").write_bytes(spoilt[: rng.choice([len(spoilt), rng.randrange(len(spoilt))])])
        try:
            with opened(tmp_path / "spoilt.zip") as inner:
                read(inner)
        except CertificateError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 200


def test_what_is_no_zip_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe.zip")  # opening it would wait for ever
    with pytest.raises(CertificateError, match="pipe.zip: is no certificate"), opened(tmp_path / "pipe.zip"):
        pass


def test_a_live_certificate_is_checked_from_its_ledgers_without_a_key(written, place, monkeypatch):
    root, ran = place
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-canary")
    facts = sound()
    facts["run"].update(name="live", profile="live")
    facts["ledgers"] = [{"ledger": "create.sqlite", "replies": 1, "sha256": "a" * 64}]
    folder = written(facts)
    with pytest.raises(
        CertificateError, match="a live run is verified from its ledgers, and they are not here"
    ):
        verify(folder)
    (root / "build/live/ledgers").mkdir(parents=True)
    with pytest.raises(CertificateError, match="not the replies that the certificate states"):
        verify(folder)
    assert not ran, "nothing was started"
    monkeypatch.setattr(bundle, "ledgers_of", lambda out: facts["ledgers"])
    with pytest.raises(CertificateError, match="the chain stopped"):
        verify(folder)
    assert ran[0][1][LEDGERS_ONLY] == "1" and "sk-canary" not in ran[0][1].values()


def test_what_a_stranger_wrote_is_shown_as_it_is():
    assert plain("a\x1b[31m\n\u202eb") == r"a\x1b[31m\n\u202eb"
    assert plain("x" * 600) == "x" * 500 + " …"
    with pytest.raises(CertificateError, match="is not in the bundle"):
        inside(Path(__file__).parent, "../test_certificate.py")
