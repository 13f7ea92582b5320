import errno

import pandas as pd
import pytest

from compendium.frame.files import (
    TEMPORARY,
    FileError,
    atomic_write,
    parse_json,
    read_jsonl,
    read_utf8,
    read_yaml,
    remove_leftovers,
    said,
    write_csv_atomic,
    write_jsonl,
    write_text_atomic,
)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_finished_write_replaces_and_is_readable_by_others(tmp_path):
    target = write_text_atomic(tmp_path / "new" / "note.txt", "a\r\nb\n")
    assert target.read_bytes() == b"a\r\nb\n"
    assert target.stat().st_mode & 0o044


def test_csv_hides_the_last_bits(tmp_path):
    first, second = (
        write_csv_atomic(tmp_path / name, pd.DataFrame({"x": [value]}))
        for name, value in (("a", 0.1 + 0.2), ("b", 0.3))
    )
    assert first.read_bytes() == second.read_bytes() == b"x\n0.3\n"


def test_a_full_disk_is_said_with_the_file_s_own_name(tmp_path):
    """The system names no file, or the temporary one; a reader knows neither."""
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(OSError) as caught, atomic_write(target):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert said(caught.value) == f"{target}: No space left on device"
    with pytest.raises(OSError) as caught, atomic_write(target) as temporary:
        raise OSError(errno.ENOSPC, "No space left on device", str(temporary))
    assert said(caught.value) == f"{target}: No space left on device"
    with pytest.raises(OSError) as caught, atomic_write(target):
        (tmp_path / "another").read_text()
    assert said(caught.value) == f"{tmp_path / 'another'}: No such file or directory"
    assert target.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_leftovers_are_removed_and_nothing_else(tmp_path):
    kept = [tmp_path / "a" / ".lock", tmp_path / "a" / f"x{TEMPORARY}", tmp_path / "cells.csv"]
    left = [tmp_path / f".cells.csv.k3{TEMPORARY}", tmp_path / "a" / f".01_x.ipynb.q9{TEMPORARY}.ipynb"]
    (tmp_path / "a").mkdir()
    for path in (*kept, *left):
        path.write_text("")
    assert remove_leftovers(tmp_path) == left
    assert all(path.exists() for path in kept) and not any(path.exists() for path in left)
    with atomic_write(tmp_path / "new.png", suffix=".png") as temporary:
        temporary.write_text("")
        assert remove_leftovers(tmp_path) == [temporary], "what atomic_write leaves is what is removed"
        temporary.write_text("")


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_bytes("uno\nperché\n".encode("latin-1"))
    with pytest.raises(
        FileError, match=r"prompts.txt: not UTF-8 \(byte 10 is 0xe9\) in line 2; it should be a text file"
    ):
        read_utf8(path)
    for bad in (tmp_path, tmp_path / "missing.txt"):
        with pytest.raises(FileError, match="cannot be read .*; it should be a list of prompts"):
            read_utf8(bad, what="a list of prompts")
    path.write_bytes(b"\xef\xbb\xbfperch\xc3\xa9\r\n")
    assert read_utf8(path) == "perché\n", "a byte order mark and Windows' line ends are passed over"


def test_yaml_of_another_kind_is_named(tmp_path):
    path = tmp_path / "features.yaml"
    for text, kind, message in (
        ("a: 1", list, "should hold a list"),
        ("- 1", dict, "should hold `key: value` lines"),
        ("5", (dict, list), "holds a int"),
        ("", (dict, list), "holds nothing"),
        ("a: 1\na: 2", dict, "line 2, column 1: .*given twice"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match="features.yaml.*" + message):
            read_yaml(path, kind=kind)
    path.write_text("")
    assert read_yaml(path, kind=dict) == {} and read_yaml(path, kind=list) == []


def laughs(levels: int, form: str = "[{}]") -> str:
    """A billion laughs: each level names the one before nine times, and the first names `a`."""
    names = ["a", *(f"l{level}" for level in range(levels))]
    return "\n".join(
        f"{name}: &{name} {form.format(', '.join([f'*{before}'] * 9))}"
        for before, name in zip(names, names[1:])
    )


@pytest.mark.parametrize(
    "text, says",
    [
        ("[" * 20_000, "line 1, column 51: not valid YAML: more than 50 levels"),
        ("a: " + "[" * 20_000 + "]" * 20_000, "more than 50 levels of nesting"),
        ("- " * 20_000 + "1", "more than 50 levels"),
        ("a: 1\nseed: " + "7" * 5_000, "line 2, column 7: not valid YAML: a number of 5000 digits"),
        ("seed: 0x" + "f" * 5_000, "a number of 5002 digits"),
        ("seed: 1." + "0" * 5_000, "a number of 5002 digits"),
        ("day: 2026-13-45", "line 1, column 6: not valid YAML: a value that is no timestamp"),
        ('a: !!int ""', "a value that is no int"),
        ("a: !!bool maybe", "a value that is no bool"),
        ("a: &a [*a]", r"the alias \*a stands inside what it names"),
        ("a: &a [" + "1, " * 99 + "]\n" + laughs(6), "more than 1000000 values"),
        ("a: &a {x: 1, y: 2}\n" + laughs(30, "{{<<: [{}]}}"), "more than 1000000 values"),
    ],
)
def test_yaml_that_no_machine_should_follow_is_one_line(tmp_path, text, says):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(
        FileError, match="params.yaml: " + ("" if says.startswith("line") else ".*") + says
    ) as told:
        read_yaml(path)
    assert "\n" not in str(told.value)


def test_an_alias_within_bounds_is_what_it_stands_for(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text("a: &a [1, 2]\nb: *a\nc: {d: *a}\n")
    assert read_yaml(path) == {"a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}}


@pytest.mark.parametrize("text", ["[" * 20_000, '{"a": ' + "7" * 5_000 + "}", "{", '{"metadata": ' * 20_000])
def test_json_that_no_machine_should_follow_is_one_line(text):
    with pytest.raises(FileError, match="01_a.ipynb: ") as told:
        parse_json(text, "01_a.ipynb")
    assert "\n" not in str(told.value)


def test_json_lines_go_out_and_come_back(tmp_path):
    rows = [{"b": 1, "a": "a line\nbreak, and\u2028another\x85kind"}, {"é": None}]
    path = write_jsonl(tmp_path / "new" / "rows.jsonl", iter(rows))
    assert read_jsonl(path) == rows
    assert write_jsonl(path, rows, ascii=True).read_bytes().isascii()
    assert read_jsonl(path) == rows


@pytest.mark.parametrize(
    "line, words",
    [
        ('{"a": 1', "rows.jsonl, line 2: not a whole JSON object"),
        ("[1]", "rows.jsonl, line 2: should be a JSON object, is a list"),
        ('{"b": 1}', "rows.jsonl, line 2: lacks 'a'"),
        ("[" * 100_000, "rows.jsonl, line 2: not a whole JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "rows.jsonl, line 2: not a whole JSON object"),
    ],
)
def test_a_line_that_is_no_row_names_file_and_line(tmp_path, line, words):
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n' + line + "\n")
    with pytest.raises(FileError, match=words):
        read_jsonl(tmp_path / "rows.jsonl", keys=("a",))
