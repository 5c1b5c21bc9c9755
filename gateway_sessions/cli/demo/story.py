"""The tour that `gateway-sessions demo` gives in a few seconds.

The stores, gateways and processes are real, in a temporary directory; the clock, the platforms and the model
are fakes. Nothing here needs a network, and every run prints the same.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gateway_sessions import SessionSource, SessionStore, build_session_key
from gateway_sessions.cli.demo.bot_process import BEGIN, LIVES, PAUSE
from gateway_sessions.cli.demo.busy_modes import compare_modes
from gateway_sessions.cli.demo.crashes import crash_and_recover
from gateway_sessions.cli.demo.night import CONFIG, live_through_the_night, show_explanation_of
from gateway_sessions.cli.demo.paint import begin_scene, code, dim, in_columns, note, say, strong
from gateway_sessions.testing import FakeClock

ADA = SessionSource(platform="telegram", chat_id="4711", user_id="4711", user_name="Ada")
TEAM = SessionSource(platform="telegram", chat_id="-100", chat_type="group", chat_name="Team")
ADA_IN_TEAM = replace(TEAM, user_id="4711", user_name="Ada")
BOB_IN_TEAM = replace(TEAM, user_id="4712", user_name="Bob")
TRICKSTER = SessionSource(platform="telegram", chat_id="-100:4711", chat_type="group")
KEY_WIDTHS = (18, 38)
QUERIES = (("ada", '"a taxi"'), ("ada", "night -good"), ("lin", "机场"), ("bob", "taxi"))
HIT_WIDTHS = (5, 13, 10)
POINTERS: Final = MappingProxyType(
    {
        "talk to it yourself": "gateway-sessions chat",
        "a bot in ten minutes": "docs/tutorial/a-bot.md",
        "in a bot that you have": "docs/how-to/embed-in-an-existing-bot.md",
        "when something breaks": "docs/explanation/failure-modes.md",
        "a night with one hour more": "examples/time_travel.py",
    }
)


async def _play_scenes() -> None:
    say("", strong("gateway_sessions: one lane, one session, one turn at a time, whatever happens"))
    note("Stores, gateways and processes are real, the clock, the platforms and the model are not.")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        show_keys()
        await compare_modes(place / "modes")
        await live_through_the_night(place / "store")
        await crash_and_recover(place)
        await search_and_explain(place / "store")
    begin_scene(6, "Where to go on")
    for what, where in POINTERS.items():
        say(in_columns(what, code(where), widths=(28,)))


async def play_demo() -> None:
    """Play the whole demo; `BrokenPipeError` if its reader has left."""
    logging.getLogger("gateway_sessions").addHandler(logging.NullHandler())
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal without these characters shows the rest
    seen_enough = False
    try:
        await _play_scenes()
    except* BrokenPipeError:
        seen_enough = True
    if seen_enough:
        raise BrokenPipeError


def show_keys() -> None:
    """Show the session keys of one person in two places, and of two people in one place."""
    begin_scene(
        1,
        "Every conversation has a lane, named by where the message came from",
        "One lane has one session at a time, one queue and one turn at a time.",
    )
    for who, source in (
        ("Ada, alone", ADA),
        ("Ada in group Team", ADA_IN_TEAM),
        ("Bob in group Team", BOB_IN_TEAM),
    ):
        say(in_columns(who, code(build_session_key(source)), widths=KEY_WIDTHS))
    shared = build_session_key(ADA_IN_TEAM, group_sessions_per_user=False)
    say(in_columns("Team as one lane", code(shared), dim("if so configured"), widths=KEY_WIDTHS))
    trick = build_session_key(TRICKSTER)
    say(in_columns("chat “-100:4711”", code(trick), dim("no part poses as two"), widths=KEY_WIDTHS))
    say("")
    compare_lanes("Ada and Ada", ADA, ADA_IN_TEAM)
    compare_lanes("Ada and Bob", ADA_IN_TEAM, BOB_IN_TEAM)


def compare_lanes(who: str, one: SessionSource, other: SessionSource) -> None:
    """Show why two sources are different lanes."""
    parts = ("chat_type", "chat_id", "user_id")
    names = [name for name in parts if getattr(one, name) != getattr(other, name)]
    kind = "same lane" if build_session_key(one) == build_session_key(other) else "different lanes"
    say(in_columns(who, f"{strong(kind)}: not the same {' and '.join(names)}", widths=KEY_WIDTHS))


async def search_and_explain(home: Path) -> None:
    """Search what people said, each within their own scope; then explain why Bob has a new session."""
    begin_scene(
        5,
        "Search what was said, in any language, and ask the store why",
        "The same store, after all that. Each person sees their own conversations only.",
    )
    async with SessionStore.open(home, CONFIG, clock=FakeClock(BEGIN + LIVES * PAUSE + PAUSE)) as store:
        for person, query in QUERIES:
            await show_search(store, person, query)
        key = store.key_for(source_of("bob"))
        await show_explanation_of(store, key, "explain: why Bob has a new session")


async def show_search(store: SessionStore, person: str, query: str) -> None:
    """Show the messages that a person finds."""
    scope = await store.scope_of(source_of(person))
    found = await store.db.search_messages(query, scope=scope, sort="oldest")
    who, what = person.capitalize(), code(query)
    for hit in found.hits:
        say(in_columns(who, what, dim(hit.role), highlight_matches(hit.snippet), widths=HIT_WIDTHS))
        who = what = ""
    if not found.hits:
        say(in_columns(who, what, dim("nothing"), widths=HIT_WIDTHS))


def highlight_matches(snippet: str) -> str:
    """Return a snippet with its matches in brackets."""
    line = snippet.replace("\n", " ").replace("<<<", ">>>")
    return "".join(
        strong(f"[{part}]") if number % 2 else part for number, part in enumerate(line.split(">>>"))
    )


def source_of(person: str) -> SessionSource:
    """Return the source of a person's messages."""
    return SessionSource(platform="telegram", chat_id=person, user_id=person)
