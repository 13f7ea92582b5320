import pandas as pd
import pytest

from lib.files import atomic_write, write_csv_atomic, write_text_atomic


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
    first, second = (write_csv_atomic(tmp_path / name, pd.DataFrame({"x": [value]}))
                     for name, value in (("a", 0.1 + 0.2), ("b", 0.3)))
    assert first.read_bytes() == second.read_bytes() == b"x\n0.3\n"
