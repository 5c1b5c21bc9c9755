"""One value in a table that no program wrote: whoever meets it is told, and nobody else is disturbed."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from gateway_sessions import (
    Accepted,
    Config,
    GatewaySessionsError,
    InboundMessage,
    Scope,
    SessionFinalized,
    SessionSource,
    SessionStore,
)
from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.config import Durability, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.operator import check_store, repair_store
from gateway_sessions.queue import Owed
from tests.crash.stores import SteppedClock
from tests.raw_sql import execute_sql

START: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
CONFIG: Final = Config(
    timezone="UTC",
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
    sessiondb=SessionDBConfig(durability=Durability.OS),
)
OPERATOR: Final = Scope.operator()
VALUES: Final[Mapping[str, Sequence[object]]] = {
    "TEXT": ("{", "", "[1]", b"\xff", "null", '{"a": {"a": 7}}', "9" * 30),
    "INTEGER": (1 << 62, -(1 << 62), -1),
    "REAL": (float("inf"), -1.0),
    "ANY": ("{", 1 << 62, b"\xff"),
}
"""What may stand in a column of each kind; bytes are stored as a text that is none."""
STEP: Final = 80
"""One in so many is tried in a normal run."""
ABOUT_ALL: Final = {"meta"}
"""Tables of which a store may need every row to open at all."""


class Damage(NamedTuple):
    """What stands in a column, in the first row of its table that is not about bob."""

    table: str
    column: str
    value: object


def person(name: str) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=name, user_id=name, user_name=name.title())


def said(name: str, text: str) -> InboundMessage:
    return InboundMessage(source=person(name), text=text, message_id=f"{name}-{text}")


class Hook:
    """Answers for bob only; so the call for ann stays owed."""

    def __init__(self) -> None:
        self.called: set[str] = set()

    async def __call__(self, event: SessionFinalized) -> None:
        if event.session_key.endswith("ann"):
            raise ConnectionError(event.session_key)
        self.called.add(event.session_key)

    async def knows(self, session_key: str) -> None:
        """Wait until a session has ended in time, and that was told."""
        async with asyncio.timeout(20):
            while session_key not in self.called:  # noqa: ASYNC110 -- nobody tells a test
                await asyncio.sleep(0.005)


@asynccontextmanager
async def opened(
    home: Path, hook: Hook | None = None, clock: SteppedClock | None = None
) -> AsyncGenerator[SessionStore]:
    hooks = {"hook": hook or Hook()}
    async with SessionStore.open(home, CONFIG, clock=clock or SteppedClock(START), hooks=hooks) as store:
        yield store


async def furnish(home: Path) -> None:
    """Something in every table, by way of what users do."""
    target = ReplyTarget(platform="telegram", chat_id="ann")
    before = home.with_name("before")
    async with opened(before) as store:
        db = store.db
        entry = await store.get_or_create_session(person("ann"))
        await db.append_messages(
            entry.session_id,
            [
                {"role": "user", "content": "hello there", "platform_message_id": "m1"},
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "let me look"}],
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                    ],
                    "reasoning_details": [{"a": 1}],
                },
                {"role": "tool", "content": "found", "tool_call_id": "c1", "tool_name": "look"},
                {"role": "assistant", "content": "there it is"},
                {"role": "user", "content": "thanks", "platform_message_id": "m2"},
            ],
        )
        await db.edit_message(entry.session_id, "m1", [{"type": "text", "text": "hello you"}])
        await db.set_session_title(entry.session_id, "Looking")
        await db.update_session_model(entry.session_id, "m", {"temperature": 1})
        await db.record_usage(entry.session_id, "e1", model="m", input_tokens=7, estimated_cost_usd=0.1)
        await db.branch_session(entry.session_id, "branched")
        await db.create_session("extra", "telegram", user_id="ann", extra={"a": 1})
        await store.reset_session(entry.session_key)
        await store.hooks.sweep()
        await store.get_or_create_session(person("bob"))
        await store.get_or_create_session(person("eve"))
        await store.erase(person("eve"))
        for text in ("one", "two", "three"):
            await store.enqueue(said("ann", text), solo=True)
        turn = await store.claim(store.key_for(person("ann")))
        assert turn is not None
        await turn.append({"role": "assistant", "content": "as far as it came"})
        await turn.commit(
            replies=[
                Owed(owner="user:telegram:ann", target=target, message=OutboundMessage(text="here you are"))
            ]
        )
        turn = await store.claim(store.key_for(person("ann")))
        assert turn is not None
        await turn.fail("it broke")
        async with await store.claim(store.key_for(person("ann"))) as turn:
            shutil.copytree(before, home, ignore=shutil.ignore_patterns("*.sock", "*.lock", "*.owner.json"))
            await turn.release()


def readings(store: SessionStore, home: Path) -> dict[str, Callable[[], Awaitable[object]]]:
    """Everything that can be asked of a store without changing it."""
    db, key, ann = store.db, store.key_for(person("ann")), person("ann")

    async def of_session(ask: Callable[[str], Awaitable[object]]) -> None:
        for session_id in (await store.peek_session_id(key), "branched", "extra"):
            if session_id is not None:
                await ask(session_id)

    async def old() -> str:
        return (await db.get_compression_lineage("branched"))[0]

    async def all_of(found: Any) -> list[Any]:
        return [one async for one in found]

    async def around() -> None:
        for row in await db.get_messages("branched"):
            await db.get_messages_around("branched", row.message_id)
            await db.get_anchored_view("branched", row.message_id)
            await db.get_message_versions("branched", row.message_id)

    return {
        "entries": lambda: store.list_sessions(scope=OPERATOR),
        "entry": lambda: store.get_session(key),
        "explain": lambda: store.explain(key),
        "queue": lambda: store.list_queued(key),
        "depth": lambda: store.queue_depth(key),
        "dead letters": store.dead_letters,
        "dead replies": store.dead_replies,
        "dead hooks": store.hooks.dead_letters,
        "transcript": lambda: of_session(store.load_transcript),
        "record": lambda: of_session(db.get_session),
        "messages": lambda: of_session(lambda one: db.get_messages(one, include_hidden=True)),
        "conversation": lambda: of_session(
            lambda one: db.get_messages_as_conversation(one, include_ancestors=True)
        ),
        "around": around,
        "recent": lambda: of_session(db.list_recent_user_messages),
        "count": lambda: db.session_count(scope=OPERATOR),
        "listing": lambda: db.list_sessions_rich(scope=OPERATOR, include_children=True),
        "browsing": lambda: db.recent_sessions(scope=OPERATOR),
        "by id": lambda: db.search_sessions_by_id("a", scope=OPERATOR),
        "family": lambda: of_session(db.get_session_family),
        "root": lambda: of_session(db.get_conversation_root),
        "tip": lambda: of_session(db.get_compression_tip),
        "resume": lambda: of_session(db.resolve_resume_session_id),
        "title": lambda: db.resolve_session("Looking", scope=OPERATOR),
        "next title": lambda: db.get_next_title_in_lineage("Looking", scope=OPERATOR),
        "usage": lambda: of_session(db.usage_of_session),
        "spent": lambda: of_session(db.spent),
        "insights": lambda: db.insights(365, scope=OPERATOR),
        "search": lambda: db.search_messages("hello", scope=OPERATOR),
        "search sessions": lambda: db.search_sessions("there", scope=OPERATOR),
        "check index": db.check_search_index,
        "export one": lambda: of_session(lambda one: db.export_session(one, scope=OPERATOR)),
        "export": lambda: all_of(db.export_all(scope=OPERATOR)),
        "write export": lambda: db.write_export(home / "export.html", scope=OPERATOR, format="html"),
        "export person": lambda: all_of(store.export_person(ann)),
        "was erased": lambda: store.was_erased(person("eve"), START),
        "prunable": lambda: db.prune_sessions(older_than_days=0, dry_run=True, now=START + timedelta(days=9)),
        "unfinished": db.unfinished_erasures,
        "back up": db.back_up,
    }


def doings(store: SessionStore) -> dict[str, Callable[[], Awaitable[object]]]:
    """What changes something, the gentlest first."""
    db, key, ann = store.db, store.key_for(person("ann")), person("ann")

    async def a_turn() -> None:
        await store.enqueue(said("ann", "four"))
        turn = await store.claim(key)
        if turn is not None:
            await turn.transcript()
            await turn.commit([{"role": "assistant", "content": "yes"}])

    async def again() -> None:
        for letter in await store.dead_letters():
            await store.requeue(letter.item_id)
        for reply in await store.dead_replies():
            await store.retry_reply(reply.reply_id)

    async def rewind() -> None:
        await db.rewind_session("branched")
        await db.restore_rewound("branched")

    return {
        "sweep": store.watcher.sweep,
        "hooks": store.hooks.sweep,
        "message": lambda: store.get_or_create_session(ann),
        "answered": lambda: store.update_session(key, 7),
        "turn": a_turn,
        "any turn": store.claim,
        "again": again,
        "stop": lambda: store.stop_turn(key),
        "clear": lambda: store.clear_queue(key),
        "usage": lambda: db.record_usage("branched", "e2", model="m", input_tokens=1),
        "title": lambda: db.set_session_title("branched", "Other"),
        "edit": lambda: db.edit_message("branched", "m2", "never mind"),
        "retract": lambda: db.retract_message("branched", "m2"),
        "rewind": rewind,
        "compact": lambda: db.archive_and_compact("branched", [{"role": "user", "content": "short"}]),
        "split": lambda: db.split_session("branched", "split", []),
        "end": lambda: db.end_session("extra", "done"),
        "reopen": lambda: db.reopen_session("extra"),
        "suspend": lambda: store.suspend_session(key),
        "pending": lambda: store.mark_resume_pending(key),
        "cleared": lambda: store.clear_resume_pending(key),
        "cut off": store.suspend_recently_active,
        "zone": lambda: store.set_zone(key, "Europe/Berlin"),
        "reset": lambda: store.reset_session(key),
        "undo": lambda: store.undo_reset(key),
        "catch up": db.catch_up_search_index,
        "prune lanes": lambda: store.prune_old_entries(0.0001),
        "prune": lambda: db.prune_sessions(older_than_days=0, now=START + timedelta(days=9)),
        "delete": lambda: db.delete_session("extra"),
        "erase": lambda: store.erase(ann),
        "flush": store.flush,
    }


async def tried(what: Awaitable[object]) -> bool:
    """Whether it went well; whatever else happens than an error that is foreseen is one of this test."""
    try:
        async with asyncio.timeout(30):
            await what
    except GatewaySessionsError:
        return False
    return True


async def do_everything(home: Path) -> None:
    """Do all that can be done, on the lane that is damaged."""
    async with opened(home, clock=SteppedClock(START + timedelta(minutes=9))) as store:
        for name, read in readings(store, home).items():
            await named(name, tried(read()))
        for name, change in doings(store).items():
            await named(name, tried(change()))


async def live_beside(home: Path) -> None:
    """Do what a neighbour of the damaged lane wants."""
    hook, clock = Hook(), SteppedClock(START + timedelta(minutes=9))
    async with opened(home, hook, clock) as store:
        bob = await store.get_or_create_session(person("bob"))
        assert isinstance(await store.enqueue(said("bob", "hi")), Accepted)
        turn = await store.claim(bob.session_key)
        assert turn is not None
        await turn.commit([{"role": "assistant", "content": "yes"}])
        assert [row["content"] for row in await store.load_transcript(bob.session_id)] == ["hi", "yes"]
        clock.advance(days=2)
        await store.watcher.sweep()
        await hook.knows(bob.session_key)


async def meet(home: Path, damage: Damage) -> None:
    """Only a text that is no text harms others; all is told by who looks for it, and can be mended."""
    to_mend, to_read = (shutil.copytree(home, home.with_name(f"{home.name}-{n}")) for n in range(2))
    if not isinstance(damage.value, bytes):
        await live_beside(home)
    await tried(do_everything(home))
    told = await read_all(to_read)
    looked = await check_store(to_mend)
    assert looked.found or not told, told
    mended = await repair_store(to_mend)
    assert set(looked.found) <= set(mended.found)
    assert mended.quarantine or not [one for one in looked.found if "cannot be read" in one]
    assert not [one for one in (await check_store(to_mend)).found if "cannot be read" in one]
    assert not await read_all(to_mend)


async def read_all(home: Path) -> list[str]:
    """What cannot be read for its damage, in the words in which that is told."""
    told: list[str] = []
    try:
        await read_each(home, told)
    except StorageCorruptError as error:
        told.append(f"opening: {error}")
    return told


async def read_each(home: Path, told: list[str]) -> None:
    async with opened(home, clock=SteppedClock(START + timedelta(minutes=9))) as store:
        for name, read in readings(store, home).items():
            try:
                await named(name, read())
            except StorageCorruptError as error:
                told.append(f"{name}: {error}")
            except GatewaySessionsError:
                continue


async def named(name: str, doing: Awaitable[object]) -> None:
    try:
        await doing
    except BaseException as error:
        error.add_note(f"while doing: {name}")
        raise


def damages(home: Path) -> list[Damage]:
    """Every value in every column of every table."""
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return [
            Damage(table, column, one)
            for (table,) in tables
            for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})")
            for one in VALUES[kind]
        ]


BOBS: Final = {
    "session_key": "session_key LIKE '%:bob'",
    "session_id": "session_id IN (SELECT session_id FROM entries WHERE session_key LIKE '%:bob')",
    "entry_id": "entry_id IN (SELECT entry_id FROM entries WHERE session_key LIKE '%:bob')",
}


def inflict(home: Path, damage: Damage) -> bool:
    """Whether there was something to damage that is not bob's, and a database that takes such a value."""
    table, column, value = damage
    with closing(sqlite3.connect(home / "sessions.db")) as connection, connection:
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        key = ", ".join([one[1] for one in columns if one[5]] or ["rowid"])
        others = " AND ".join([f"NOT ({BOBS[one[1]]})" for one in columns if one[1] in BOBS] or ["true"])
        first = f"SELECT {key} FROM {table} WHERE {column} IS NOT NULL AND {others} ORDER BY {key} LIMIT 1"  # noqa: S608 -- ours
        given = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
        try:
            changed = connection.execute(
                f"UPDATE {table} SET {column} = {given} WHERE ({key}) IN ({first})",  # noqa: S608
                (value,),
            )
        except sqlite3.IntegrityError:
            return False
        return changed.rowcount > 0


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("furnished") / "home"
    asyncio.run(furnish(home))
    return home


async def test_all_goes_well_where_nothing_is_damaged(furnished: Path, tmp_path: Path):
    home = shutil.copytree(furnished, tmp_path / "home")
    await live_beside(home)
    await do_everything(home)


@pytest.mark.parametrize("step", [STEP, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
async def test_a_damaged_value_is_told_and_disturbs_nobody_else(furnished: Path, tmp_path: Path, step: int):
    found = [one for one in damages(furnished) if one.table not in ABOUT_ALL]
    tried_here = 0
    for number, damage in enumerate(found[::step]):
        home = shutil.copytree(furnished, tmp_path / str(number))
        if inflict(home, damage):
            tried_here += 1
            await named(str(damage), meet(home, damage))
        for one in tmp_path.glob(f"{number}*"):
            shutil.rmtree(one)
    assert tried_here > len(found) // step // 2


@pytest.mark.parametrize("value", VALUES["ANY"])
async def test_a_damaged_fact_about_the_store_is_told_and_mended(
    furnished: Path, tmp_path: Path, value: object
):
    names = [row[0] for row in execute_sql(furnished / "sessions.db", "SELECT name FROM meta")]
    for number, name in enumerate(names):
        home = shutil.copytree(furnished, tmp_path / str(number))
        execute_sql(home / "sessions.db", "UPDATE meta SET value = ? WHERE name = ?", value, name)
        await named(name, open_again(home))


async def open_again(home: Path) -> None:
    """What keeps a store from being opened is told by who looks for it, and by nobody after a repair."""
    try:
        async with opened(home):
            return
    except StorageCorruptError:
        assert (await check_store(home)).found
        if not (await repair_store(home)).lost:
            await read_each(home, told := [])
            assert not told
    except GatewaySessionsError:  # such as a version that nobody knows yet
        return
