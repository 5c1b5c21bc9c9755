"""All that the package is for, in a few seconds: run it with `make demo`, or `python examples/demo.py`.

The stores, gateways and processes are real, in a temporary directory; the clock, the platforms and the model
are fakes. Nothing here needs a network, and every run prints the same.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
import tempfile
from pathlib import Path

from demo.bursts import compare_modes
from demo.crashes import crash_and_recover
from demo.finding import search_and_explain
from demo.keys import show_keys
from demo.lives import live
from demo.night import live_through_the_night
from demo.paint import code, note, row, say, scene, strong

POINTERS = {
    "a bot in ten minutes": "docs/tutorial/a-bot.md",
    "in a bot that you have": "docs/how-to/embed-in-an-existing-bot.md",
    "when something breaks": "docs/explanation/failure-modes.md",
    "a night with one hour more": "examples/time_travel.py",
}


async def main() -> None:
    """Play all scenes."""
    say("", strong("gateway_sessions: one lane, one session, one turn at a time, whatever happens"))
    note("Stores, gateways and processes are real, the clock, the platforms and the model are not.")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        show_keys()
        await compare_modes(place / "modes")
        await live_through_the_night(place / "store")
        await crash_and_recover(Path(__file__), place)
        await search_and_explain(place / "store")
    scene(6, "Where to go on")
    for what, where in POINTERS.items():
        say(row(what, code(where), widths=(28,)))


def play() -> None:
    """The whole, for whoever looks on as long as they like."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without these characters shows the rest
    try:
        asyncio.run(main())
    except* BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    logging.getLogger("gateway_sessions").addHandler(logging.NullHandler())
    if "--life" in sys.argv:
        asyncio.run(live(Path(sys.argv[-2]), int(sys.argv[-1])))
    else:
        play()
