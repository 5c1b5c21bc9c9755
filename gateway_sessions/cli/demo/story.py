"""All that the package is for, in a few seconds.

The stores, gateways and processes are real, in a temporary directory; the clock, the platforms and the model
are fakes. Nothing here needs a network, and every run prints the same.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gateway_sessions.cli.demo.bursts import compare_modes
from gateway_sessions.cli.demo.crashes import crash_and_recover
from gateway_sessions.cli.demo.finding import search_and_explain
from gateway_sessions.cli.demo.keys import show_keys
from gateway_sessions.cli.demo.night import live_through_the_night
from gateway_sessions.cli.demo.paint import code, note, row, say, scene, strong

POINTERS: Final = MappingProxyType(
    {
        "talk to it yourself": "gateway-sessions chat",
        "a bot in ten minutes": "docs/tutorial/a-bot.md",
        "in a bot that you have": "docs/how-to/embed-in-an-existing-bot.md",
        "when something breaks": "docs/explanation/failure-modes.md",
        "a night with one hour more": "examples/time_travel.py",
    }
)


async def _scenes() -> None:
    """Play all scenes."""
    say("", strong("gateway_sessions: one lane, one session, one turn at a time, whatever happens"))
    note("Stores, gateways and processes are real, the clock, the platforms and the model are not.")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        show_keys()
        await compare_modes(place / "modes")
        await live_through_the_night(place / "store")
        await crash_and_recover(place)
        await search_and_explain(place / "store")
    scene(6, "Where to go on")
    for what, where in POINTERS.items():
        say(row(what, code(where), widths=(28,)))


async def play() -> None:
    """The whole; `BrokenPipeError` if whoever looks on has seen enough."""
    logging.getLogger("gateway_sessions").addHandler(logging.NullHandler())
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal without these characters shows the rest
    seen_enough = False
    try:
        await _scenes()
    except* BrokenPipeError:
        seen_enough = True
    if seen_enough:
        raise BrokenPipeError
