"""Replies are property: written to a file, read from one, and what they cost.

python -m compendium.asking.property export FILE    every reply of a run as JSON lines (and Parquet, with pyarrow)
python -m compendium.asking.property import FILE    such a file into a run's ledgers: nothing in it is asked again
python -m compendium.asking.property spent          what the profile's account says, by model
"""

import argparse
import hashlib
import importlib.util
import sys
from pathlib import Path

from compendium.asking.account import AccountFile
from compendium.asking.errors import LedgerError
from compendium.asking.ledger import COLUMNS, Ledger
from compendium.asking.request import canonical_json
from compendium.asking.sources import account_path
from compendium.frame.files import atomic_write, read_jsonl, write_jsonl
from compendium.frame.params import PROFILES, run_folder
from compendium.frame.paths import from_root, shown

BATCH = 500  # replies a transaction


def export_replies(ledgers: Path, path: Path) -> int:
    """Every reply of a folder's ledgers as JSON lines: `ledger`, what was sent (`content`), and the ledger's `COLUMNS`,
    among them model, text, tokens and cost. Where pyarrow is at hand also as Parquet, beside it, what was sent as text.

    Returns how many. Raises LedgerError where there is no ledger.
    """
    files = sorted(Path(ledgers).glob("*.sqlite"))
    if not files:
        raise LedgerError(f"{shown(ledgers)}: holds no ledger; a run that asks models makes one")
    count = 0

    def rows():
        nonlocal count
        for file in files:
            with Ledger(file, readonly=True) as ledger:
                for row in ledger.rows():
                    count += 1
                    content = ledger.content(row["request"])
                    yield {"ledger": file.stem, **row, "request": row["request"].hex(), "content": content}

    write_jsonl(path, rows())
    if count and importlib.util.find_spec("pyarrow"):
        _write_parquet(path)
    return count


def _write_parquet(path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(read_jsonl(path))
    frame["content"] = frame["content"].map(canonical_json)
    with atomic_write(path.with_suffix(".parquet"), suffix=".parquet") as temporary:
        frame.to_parquet(temporary, engine="pyarrow", index=False)


def import_replies(path: Path, ledgers: Path) -> int:
    """Put the replies of such a file into the ledgers of those names; how many were new.

    Raises LedgerError naming file and line for a row that lacks a column, and for one whose request is not what its
    name says.
    """
    found = {}
    for number, row in enumerate(read_jsonl(path, LedgerError, ("ledger", "content", *COLUMNS)), 1):
        digest = hashlib.sha256(f"{canonical_json(row['content'])}\n{row['sample']}".encode()).digest()
        name = str(row["ledger"])
        if digest.hex() != row["request"] or not name.replace("_", "").replace("-", "").isalnum():
            raise LedgerError(
                f"{shown(path)}, row {number}: `request` is not the name of what was sent, or `ledger` is none"
            )
        found.setdefault(name, []).append(
            ({**{column: row[column] for column in COLUMNS}, "request": digest}, row["content"])
        )
    return sum(_put(rows, Path(ledgers) / f"{name}.sqlite") for name, rows in sorted(found.items()))


def _put(rows, path) -> int:
    new = 0
    with Ledger(path) as ledger, ledger.writing():
        for start in range(0, len(rows), BATCH):
            some = rows[start : start + BATCH]
            stored = ledger.lookup({row["request"] for row, _ in some})
            held = {(request, row["attempt"]) for request, kept in stored.items() for row in kept}
            fresh = [
                ("reply", row, content)
                for row, content in some
                if (row["request"], row["attempt"]) not in held
            ]
            ledger.commit(fresh)
            new += len(fresh)
    return new


def spent_lines(profile: str) -> list[str]:
    """What a profile's account says, a line a model and the total."""
    path = account_path(profile)
    if not path.is_file():
        return [f"{shown(path)}: no account; nothing was asked under a ceiling yet"]
    with AccountFile(path) as account:
        spent = account.spent()
    total = spent.pop("total")
    lines = [f"{'model':<44} {'dollars':>10} {'calls':>8} {'tokens':>12} {'at risk':>10}"]
    for name, entry in [*sorted(spent.items()), ("total", total)]:
        lines.append(
            f"{name:<44} {entry['dollars']:>10,.4f} {entry['calls']:>8,.0f} {entry['tokens']:>12,.0f} "
            f"{entry['risk_dollars']:>10,.4f}"
        )
    if total["risk_calls"]:
        lines.append(
            f"{total['risk_calls']:,.0f} calls ended without a reply and may have been billed: at risk until known "
            "(KNOWN=dollars takes the providers' own bill)"
        )
    return lines


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="make replies, make spent", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("export", "import", "spent"))
    parser.add_argument("file", nargs="?", default="")
    parser.add_argument("--profile", default="live", choices=PROFILES)
    parser.add_argument("--smoke", default="0")
    parser.add_argument("--build", default="")
    parser.add_argument("--known", default="", help="what the providers billed so far, in dollars")
    options = parser.parse_args(arguments)
    ledgers = from_root(run_folder(options.profile, options.smoke, options.build)) / "ledgers"
    try:
        if options.what == "spent":
            if options.known:
                with AccountFile(account_path(options.profile)) as account:
                    account.set_known(_dollars(options.known))
            print("\n".join(spent_lines(options.profile)))
            return 0
        if not options.file:
            raise LedgerError("name the file: make replies EXPORT=replies.jsonl, or IMPORT=replies.jsonl")
        path = Path(options.file).resolve()
        if options.what == "export":
            print(f"{shown(path)}: {export_replies(ledgers, path):,} replies")
        else:
            print(f"{shown(ledgers)}: {import_replies(path, ledgers):,} replies are new")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _dollars(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise LedgerError(f"KNOWN={text} should be a number of dollars of at least 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
