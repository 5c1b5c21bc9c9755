"""All that the package is for, in a few seconds: run it with `make demo`, or `python examples/demo.py`.

It is the same as `gateway-sessions demo`; its scenes are in `gateway_sessions/cli/demo/`.
"""

from __future__ import annotations

import sys

from gateway_sessions.cli.app import main

if __name__ == "__main__":
    sys.exit(main(["demo"]))
