"""`python -m gateway_sessions`: the command line."""

import sys

from gateway_sessions.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
