"""`python -m compendium.reader.certificate write|verify …`."""

import sys

from compendium.reader.certificate.bundle import main

if __name__ == "__main__":
    sys.exit(main())
