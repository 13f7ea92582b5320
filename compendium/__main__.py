"""Run the chain, a live run only after its key and its price are checked: `python -m compendium --profile live`.

What `make tables` calls; options as of `compendium.frame.run`.
"""
# Tested by tests/compendium/frame/test_chain.py.

import sys

from compendium.frame.run import main


def check(study: str, *, smoke: bool, out) -> None:
    """Refuse a live run that cannot end well (`compendium.asking.live.check_live`)."""
    from compendium.asking.live import check_live  # only live needs the client

    check_live(study, smoke=smoke, out=out)


if __name__ == "__main__":
    sys.exit(main(check_live=check))
