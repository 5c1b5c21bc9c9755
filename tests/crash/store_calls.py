"""Every public call of a store, on the lanes `a` and `b`."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

from gateway_sessions import Scope, SessionResetPolicy, SessionStore
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from tests.crash.kills.store_workload import START, key, source
from tests.crash.stores import SteppedClock

Call = Callable[[SessionStore], Awaitable[object]]
OPERATOR: Final = Scope.operator()
SAID: Final = {"role": "user", "content": "hello"}


_numbers = itertools.count()


async def bring_along(store: SessionStore) -> object:
    return await store.import_hermes(hermes_home(store.home.with_name(f"{store.home.name}-hermes")))


def hermes_home(home: Path) -> Path:
    """A home with another session than at the last call."""
    home.mkdir(exist_ok=True)
    with closing(sqlite3.connect(home / "state.db")) as database:
        database.execute("PRAGMA synchronous = OFF")  # on a slow disk it is the package that must not wait
        database.executescript(
            "DROP TABLE IF EXISTS sessions; DROP TABLE IF EXISTS messages;"
            "CREATE TABLE sessions (id TEXT, source TEXT, started_at REAL);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT);"
        )
        name = f"hermes-{next(_numbers)}"
        database.execute("INSERT INTO sessions VALUES (?, 'cli', 1.0)", (name,))
        database.execute("INSERT INTO messages (session_id, role) VALUES (?, 'user')", (name,))
        database.commit()
    return home


async def switch(store: SessionStore) -> object:
    target = await store.peek_session_id(key("b"))
    return await store.switch_session(key("a"), target or "gone", scope=OPERATOR, move=True)


async def split(store: SessionStore) -> object:
    session_id = await store.peek_session_id(key("b"))
    summary = [{"role": "user", "content": "what was said"}]
    return await store.split_session(key("b"), session_id or "gone", summary)


async def resume(store: SessionStore) -> object:
    target = await store.peek_session_id(key("b"))
    return await store.resume_session(key("a"), target or "gone", scope=OPERATOR)


async def spoken(store: SessionStore) -> str:
    return await store.peek_session_id(key("b")) or "gone"


async def append(store: SessionStore) -> object:
    return await store.append_to_transcript(await spoken(store), SAID)


async def rewrite(store: SessionStore) -> object:
    return await store.rewrite_transcript(await spoken(store), [SAID])


async def load(store: SessionStore) -> object:
    return await store.load_transcript(await spoken(store))


async def rewind(store: SessionStore) -> object:
    return await store.rewind_session(await spoken(store))


def message(name: str) -> InboundMessage:
    """One that was never sent before."""
    return InboundMessage(source=source(name), text="hello", message_id=f"m{next(_numbers)}")


async def first(store: SessionStore) -> int:
    waiting = [one.seq for one in await store.list_queued(key("q")) if not one.running]
    return min(waiting, default=0)


async def cancel(store: SessionStore) -> object:
    return await store.cancel_queued(key("q"), await first(store))


async def move(store: SessionStore) -> object:
    return await store.move_queued(key("q"), await first(store), 2)


async def requeue(store: SessionStore) -> object:
    letters = await store.dead_letters(limit=1)
    return await store.requeue(letters[0].item_id) if letters else None


async def retry(store: SessionStore) -> object:
    replies = await store.dead_replies(limit=1)
    return await store.retry_reply(replies[0].reply_id) if replies else None


CALLS: Final[dict[str, Call]] = {
    "get_or_create_session": lambda store: store.get_or_create_session(source("a")),
    "update_session": lambda store: store.update_session(key("a"), 5),
    "reset_session": lambda store: store.reset_session(key("a")),
    "undo_reset": lambda store: store.undo_reset(key("a")),
    "switch_session": switch,
    "split_session": split,
    "branch_session": lambda store: store.branch_session(key("a")),
    "resume_session": resume,
    "suspend_session": lambda store: store.suspend_session(key("a")),
    "mark_resume_pending": lambda store: store.mark_resume_pending(key("a")),
    "clear_resume_pending": lambda store: store.clear_resume_pending(key("a")),
    "suspend_recently_active": lambda store: store.suspend_recently_active(),
    "prune_old_entries": lambda store: store.prune_old_entries(1),
    "set_model_override": lambda store: store.set_model_override(key("a"), {"model": "m"}),
    "set_busy_mode": lambda store: store.set_busy_mode(key("a"), BusyMode.REJECT),
    "set_reset_policy": lambda store: store.set_reset_policy(key("a"), SessionResetPolicy()),
    "set_zone": lambda store: store.set_zone(key("a"), "Europe/Vienna"),
    "append_to_transcript": append,
    "rewrite_transcript": rewrite,
    "load_transcript": load,
    "rewind_session": rewind,
    "assign_lanes": lambda store: store.assign_lanes(),
    "adopt_lanes": lambda store: store.adopt_lanes([("slack", "sales")]),  # nobody has a lane there
    "erase": lambda store: store.erase(source("a")),
    "was_erased": lambda store: store.was_erased(source("a"), START),
    "import_hermes": bring_along,
    "list_sessions": lambda store: store.list_sessions(scope=OPERATOR),
    "scope_of": lambda store: store.scope_of(source("a")),
    "lookup_by_session_id": lambda store: store.lookup_by_session_id("x", scope=OPERATOR),
    "get_session": lambda store: store.get_session(key("a")),
    "peek_session_id": lambda store: store.peek_session_id(key("a")),
    "has_any_sessions": lambda store: store.has_any_sessions(),
    "enqueue": lambda store: store.enqueue(message("a")),
    "claim": lambda store: store.claim(key("q")),
    "stop_turn": lambda store: store.stop_turn(key("q")),
    "queue_depth": lambda store: store.queue_depth(key("q")),
    "list_queued": lambda store: store.list_queued(key("q")),
    "cancel_queued": cancel,
    "clear_queue": lambda store: store.clear_queue(key("q")),
    "move_queued": move,
    "dead_letters": lambda store: store.dead_letters(),
    "requeue": requeue,
    "dead_replies": lambda store: store.dead_replies(),
    "retry_reply": retry,
    "explain": lambda store: store.explain(key("a")),
    "flush": lambda store: store.flush(),
}


QUEUE: Final = frozenset({"claim", "stop_turn", "cancel_queued", "clear_queue", "move_queued", "requeue"})
"""The calls that need something to wait on the lane `q`."""
APART: Final = BusyRules(debounce=timedelta(0))


async def prepare_for_call(store: SessionStore, clock: SteppedClock, call: str = "") -> None:
    """Give the calls something to work on."""
    clock.advance(minutes=1)
    for name in "ab":
        await store.get_or_create_session(source(name))
    await store.append_to_transcript(await spoken(store), SAID)
    await store.reset_session(key("a"))
    if call in QUEUE:
        await store.stop_turn(key("q"))
        for _ in range(2):
            await store.enqueue(message("q"), rules=APART)
    if call == "requeue":
        turn = await store.claim(key("q"))
        assert turn is not None
        await turn.fail("no power")
