"""Everything that was said in this demo is searched, by whoever may; and the store says why things are so."""

from __future__ import annotations

from pathlib import Path

from gateway_sessions import SessionSource, SessionStore
from gateway_sessions.cli.demo.lives import BEGIN, LIVES, PAUSE
from gateway_sessions.cli.demo.night import CONFIG, explain
from gateway_sessions.cli.demo.paint import code, dim, row, say, scene, strong
from gateway_sessions.testing import FakeClock

QUERIES = (
    ("ada", '"a taxi"'),
    ("ada", "night -good"),
    ("lin", "机场"),
    ("bob", "taxi"),
)
WIDTHS = (5, 13, 10)


async def search_and_explain(home: Path) -> None:
    """Look for what people said, each as far as they may see; then ask why Bob has a new session."""
    scene(
        5,
        "Search what was said, in any language, and ask the store why",
        "The same store, after all that. Each person sees their own conversations only.",
    )
    async with SessionStore.open(home, CONFIG, clock=FakeClock(BEGIN + LIVES * PAUSE + PAUSE)) as store:
        for person, query in QUERIES:
            await search(store, person, query)
        key = store.key_for(source_of("bob"))
        await explain(store, key, "explain: why Bob has a new session")


async def search(store: SessionStore, person: str, query: str) -> None:
    """Show the messages that a person finds."""
    scope = await store.scope_of(source_of(person))
    found = await store.db.search_messages(query, scope=scope, sort="oldest")
    who, what = person.capitalize(), code(query)
    for hit in found.hits:
        say(row(who, what, dim(hit.role), highlighted(hit.snippet), widths=WIDTHS))
        who = what = ""
    if not found.hits:
        say(row(who, what, dim("nothing"), widths=WIDTHS))


def highlighted(snippet: str) -> str:
    """A snippet whose match can be seen."""
    line = snippet.replace("\n", " ").replace("<<<", ">>>")
    return "".join(
        strong(f"[{part}]") if number % 2 else part for number, part in enumerate(line.split(">>>"))
    )


def source_of(person: str) -> SessionSource:
    """Where that person writes from."""
    return SessionSource(platform="telegram", chat_id=person, user_id=person)
