"""`python -m compendium.reader.book --profile demo`: build the book of a finished run. What `make book` calls."""
# Tested by tests/compendium/reader/book/test_book.py.

import argparse
import sys
import time

from compendium.frame.params import PROFILES, run_folder
from compendium.frame.paths import shown
from compendium.reader.book.gather import gather


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="make book", description="Build the book of a finished run.")
    parser.add_argument("--profile", default="demo", choices=PROFILES)
    parser.add_argument("--smoke", default="0", help="1: of the small run")
    parser.add_argument("--build", default="", help="the run's folder (default: build/<profile>)")
    options = parser.parse_args(arguments)
    out = run_folder(options.profile, options.smoke, options.build)
    start = time.monotonic()
    try:
        run = gather(options.profile, out)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    from compendium.reader.book.site import build  # after the check: Sphinx is slow to import

    built = build(run)
    for line in built.warnings:
        print(f"warning: {line}", file=sys.stderr)
    print(f"Book: {shown(built.index)} ({built.pages} pages, {time.monotonic() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
