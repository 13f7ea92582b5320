"""A stage in a process of its own, for the tests that kill it: `stage_child.py URL LEDGER`."""

import sys

from stage_requests import parse, requests

from compendium.asking.endpoint import Endpoint
from compendium.asking.ledger import Ledger
from compendium.asking.stage import run_stage

if __name__ == "__main__":
    with Ledger(sys.argv[2]) as ledger:
        run_stage(requests(), Endpoint(sys.argv[1], None, concurrency=8), ledger, parse=parse)
