"""What must be true of a store's directory after the process that owned it was killed, whenever that was."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import anyio

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.sessions_json.file_format import parse_snapshot, verify_checksum
from gateway_sessions.storage.tables.sql_files import load_queries
from tests.crash.kills.gateway_workload import check_gateway
from tests.crash.kills.queue_workload import check_queue
from tests.crash.kills.store_workload import (
    EVERYWHERE,
    IMPORTED,
    NEXT,
    SHIPPED,
    START,
    Journal,
    Scenario,
    key,
    source,
)
from tests.crash.stores import SteppedClock, open_store, query_store

QUERIES = load_queries("sqlite")
KNOWN_FILES = {
    ".clean_shutdown",
    "quarantine",
    "restart_counts.json",
    "search.db",
    "sessions.db",
    f"sessions.db.v{SHIPPED}.bak",
    "sessions.json",
    "sessions.json.bak",
    "sessions.lock",
}
HOOKS_TAKE = 10.0
FIELDS = ("session_key", "session_id", "version", "state", "last_prompt_tokens", "last_interaction_at")

Entry = dict[str, Any]


@dataclass(slots=True)
class JournalOfCalls:
    """What the journal says that the dead process was told."""

    entries: dict[str, Entry] = field(default_factory=dict)
    """What is known for certain about lanes nobody was working on."""
    vague: set[str] = field(default_factory=set)
    """Lanes that a call may have changed without having said so."""
    hooks: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The keys of the calls that were made, by session."""
    said: list[tuple[str, str]] = field(default_factory=list)
    """What was stored in transcripts: the session and the text."""
    opened: bool = False
    imported: bool = False
    failures: list[str] = field(default_factory=list)


def read_journal(path: Path) -> JournalOfCalls:
    """Go through the lines; a last one that is torn was never acknowledged."""
    told, running = JournalOfCalls(), {}
    for line in _lines(path):
        if "begins" in line:
            running[line["n"]] = line["lanes"]
        elif "n" in line:
            lanes = running.pop(line["n"])
            if "failed" in line:
                told.failures.append(line["failed"])
            _settle(told, lanes, line.get("done"))
        elif "hook" in line:
            told.hooks[line["session"]].add(line["hook"])
        elif "said" in line:
            told.said.append((line["said"], line["text"]))
        told.opened |= "opened" in line
        told.imported |= "imported" in line
    for lanes in running.values():
        _settle(told, lanes, None)
    return told


def _settle(told: JournalOfCalls, lanes: list[str], done: dict[str, Entry] | None) -> None:
    """A call that answered has changed what it says and nothing else; one that did not, maybe."""
    for lane in told.entries if EVERYWHERE in lanes else lanes:
        told.vague.add(lane)
    for lane, facts in (done or {}).items():
        told.vague.discard(lane)
        told.entries[lane] = facts


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            return


async def check_everything(home: Path, journal: Path, scenario: Scenario) -> JournalOfCalls:
    """Look at what is there, open the store again, and look at what has become of it."""
    if scenario.script == "talk":
        later = SteppedClock(START)
        later.advance(hours=1)
        await check_gateway(home, journal, scenario.config, later, Journal(journal).line)
        return read_journal(journal)
    if scenario.script == "conversation":
        await check_queue(home, journal, scenario.config, SteppedClock(START + timedelta(hours=1)))
        check_rows(home)
        return read_journal(journal)
    told = read_journal(journal)
    before = check_directory(home, told, scenario)
    await _reopen(home, journal, scenario, before)
    told = read_journal(journal)
    told.vague |= set(told.entries)  # messages came after the last line
    check_directory(home, told, scenario)
    _check_hooks_were_called(home, told)
    left = {one.name for one in home.iterdir()} - KNOWN_FILES
    assert not left, f"left behind: {left}"
    assert not list(home.rglob("*.tmp"))
    assert (home / ".clean_shutdown").exists()
    return told


async def _reopen(home: Path, journal: Path, scenario: Scenario, before: dict[str, Entry]) -> None:
    """The next process finds every lane where it was, and goes on."""
    last = max((entry["last_interaction_at"] for entry in before.values()), default=0)
    clock = SteppedClock(max(START, from_micros(last)))
    hooks = (Journal(journal).recorder(),)
    async with open_store(
        home, scenario.config, clock=clock, hooks=hooks, migrations=scenario.migrations
    ) as store:
        for lane, entry in before.items():
            assert await store.peek_session_id(lane) == entry["session_id"]
        for entry in [one for one in before.values() if one["last_interaction_at"] == last][:3]:
            if entry["state"] in {"active", "resume_pending"}:
                name = entry["session_key"].rpartition(":")[2]
                assert (await store.get_or_create_session(source(name))).session_id == entry["session_id"]
        if scenario.script == "import":
            lanes = {key(f"chat-{n:04}") for n in range(IMPORTED)}
            lost = [lane for lane in lanes if await store.get_session(lane) is None]
            assert not lost, f"not imported: {lost}"
        clock.advance(days=30)
        with anyio.fail_after(HOOKS_TAKE):
            owed = "SELECT 1 FROM hook_calls"
            while await store.hooks.sweep() or await query_store(home, scenario.config, owed):  # noqa: ASYNC110 -- nobody tells a test
                await asyncio.sleep(0.002)  # the duty of the store has begun some of them by itself
        assert not await store.hooks.dead_letters()


def check_directory(home: Path, told: JournalOfCalls, scenario: Scenario) -> dict[str, Entry]:
    """Everything that can be said without opening the store; returns the entries by lane."""
    database = home / "sessions.db"
    if not database.exists() or not _is_ours(database):
        assert not told.opened, "the database is gone"
        return {}
    with closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True)) as connection:
        check_database(connection)
        _check_schema(connection, home, scenario)
        entries = entries_of(connection)
        facts = dict(connection.execute("SELECT name, value FROM meta"))
        _check_hooks_are_owed(connection, told)
        _check_said(connection, told)
    _check_told(told, entries)
    _check_files(home, entries, facts, scenario)
    if scenario.mode == "sync":
        _check_shown(home, told)
    return entries


def check_rows(home: Path) -> None:
    """The database of a store that is closed."""
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        check_database(connection)


def check_database(connection: sqlite3.Connection) -> None:
    """Nothing is half done: a lane has one session, which is open and knows the lane."""
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    none_may_be = {
        "an entry without its session": """SELECT session_key FROM entries
            WHERE session_id NOT IN (SELECT session_id FROM sessions)""",
        "an ended session that its lane still goes on with": """SELECT entries.session_key FROM entries
            JOIN sessions USING (session_id)
            WHERE ended_at IS NOT NULL AND entries.state NOT IN ('expired', 'suspended')""",
        "an expired entry whose session goes on": """SELECT entries.session_key FROM entries
            JOIN sessions USING (session_id) WHERE ended_at IS NULL AND state = 'expired'""",
        "an entry without clocks, or clocks without an entry": """SELECT entry_id
            FROM entries FULL JOIN clocks USING (entry_id) WHERE session_key IS NULL OR version IS NULL""",
        "an open session on no lane": """SELECT session_id FROM sessions
            WHERE ended_at IS NULL AND session_key IS NOT NULL
            AND session_id NOT IN (SELECT session_id FROM entries)""",
        "a session on another lane than its entry": """SELECT entries.session_key FROM entries JOIN sessions
            USING (session_id) WHERE entries.session_key <> sessions.session_key""",
        "an ended session without its record": """SELECT session_id FROM sessions
            WHERE ended_at IS NOT NULL AND entry IS NULL AND session_key IS NOT NULL""",
        "a session that came from nowhere": """SELECT session_id FROM sessions WHERE parent_session_id
            IS NOT NULL AND parent_session_id NOT IN (SELECT session_id FROM sessions)""",
        "a session without a word in the log": """SELECT session_id FROM entries
            WHERE session_key NOT IN (SELECT session_key FROM transitions)""",
        "a lane that does not say truly what waits": """SELECT session_key FROM lanes
            WHERE waiting <> (SELECT count(*) FROM inbox WHERE inbox.session_key = lanes.session_key
                AND outcome IS NULL AND token IS NULL AND merged_into IS NULL
                AND kind IN ('message', 'internal'))
            OR (ready_at IS NOT NULL) <> (lease_epoch IS NULL AND waiting > 0)""",
        "a message of a turn that does not run": """SELECT item_id FROM inbox JOIN lanes USING (session_key)
            WHERE outcome IS NULL AND token IS NOT NULL AND (lease_epoch IS NULL OR lease_token <> token)""",
        "a message that joined nothing": """SELECT item_id FROM inbox AS item WHERE outcome IS NULL
            AND merged_into IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inbox AS head
                WHERE head.session_key = item.session_key AND head.seq = item.merged_into
                AND head.outcome IS NULL AND head.token IS item.token)""",
        "a place that was given twice, or out of order": """SELECT inbox.session_key FROM inbox
            JOIN lanes USING (session_key) GROUP BY inbox.session_key
            HAVING count(DISTINCT seq) <> count(*) OR max(seq) >= max(next_seq)""",
        "a settled message that is kept, or an open one that is not": """SELECT item_id FROM inbox
            WHERE (payload IS NOT NULL) <> (outcome IS NULL OR outcome = 'dead')
            OR (settled_at IS NULL) <> (outcome IS NULL)""",
        "messages that do not add up": """SELECT t.session_id FROM totals AS t
            LEFT JOIN messages AS m USING (session_id) GROUP BY t.session_id
            HAVING last_seq <> count(seq) OR last_seq <> coalesce(max(seq), 0)
            OR message_count <> count(seq) FILTER (WHERE hidden_because IS NULL)""",
        "a message in no state": QUERIES["impossible_items"].sql,
        "a reply in no state": QUERIES["impossible_replies"].sql,
    }
    for problem, query in none_may_be.items():
        found = connection.execute(query).fetchall()
        assert not found, f"{problem}: {found}"


def entries_of(connection: sqlite3.Connection) -> dict[str, Entry]:
    rows = connection.execute("""SELECT session_key, session_id, version, state,
        coalesce(record ->> 'last_prompt_tokens', 0), coalesce(last_interaction_at, updated_at)
        FROM entries JOIN clocks USING (entry_id)""")
    return {row[0]: dict(zip(FIELDS, row, strict=True)) for row in rows}


def _check_said(connection: sqlite3.Connection, told: JournalOfCalls) -> None:
    stored = set(connection.execute("SELECT session_id, content FROM messages"))
    lost = [said for said in told.said if said not in stored]
    assert not lost, f"messages are lost: {lost}"


def _is_ours(database: Path) -> bool:
    """A process killed in its first transaction leaves an empty database."""
    with closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True)) as connection:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return bool(tables)


def _check_told(told: JournalOfCalls, entries: dict[str, Entry]) -> None:
    for lane, facts in told.entries.items():
        entry = entries.get(lane)
        if lane not in told.vague:
            assert entry is not None, f"{lane} is lost, it was {facts}"
            assert {name: entry[name] for name in facts} == facts
        elif entry is not None and "version" in facts and entry["session_id"] == facts["session_id"]:
            assert entry["version"] >= facts["version"], f"{lane} went back from {facts} to {entry}"


def _check_schema(connection: sqlite3.Connection, home: Path, scenario: Scenario) -> None:
    (version,) = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    tables = {
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'next%'")
    }
    assert tables == ({"next_a", "next_b"} if version == NEXT.version else set())
    if scenario.script == "migration" and version == NEXT.version:
        with closing(sqlite3.connect(home / f"sessions.db.v{SHIPPED}.bak")) as backup:
            check_database(backup)
            assert set(entries_of(backup)) == set(map(key, "abc"))


def _check_files(home: Path, entries: dict[str, Entry], facts: dict[str, Any], scenario: Scenario) -> None:
    """sessions.json is a complete generation, and not one that the database does not know.

    If nothing is said to have changed since that generation, the file shows all there is.
    """
    generation, settled = int(facts.get("generation", 0)), facts.get("settled_epoch") == facts.get("epoch")
    for name in ("sessions.json", "sessions.json.bak"):
        path = home / name
        if not path.exists():
            continue
        raw = path.read_bytes()
        if b'"_meta"' not in raw:
            assert scenario.script == "import", f"{name} is torn"
            continue  # what the script found there
        meta = verify_checksum(raw)
        assert meta.generation <= generation
        if name == "sessions.json" and settled and meta.generation == generation:
            shown = {one.session_key: one for one in parse_snapshot(raw, UTC).entries}
            assert {lane: one.session_id for lane, one in shown.items()} == {
                lane: entry["session_id"] for lane, entry in entries.items()
            }


def _check_shown(home: Path, told: JournalOfCalls) -> None:
    """In mode `sync` the file has what was acknowledged."""
    certain = {lane: facts for lane, facts in told.entries.items() if lane not in told.vague}
    if certain:
        shown = {
            one.session_key: one for one in parse_snapshot((home / "sessions.json").read_bytes(), UTC).entries
        }
        for lane, facts in certain.items():
            assert shown[lane].session_id == facts.get("session_id", shown[lane].session_id)
            assert str(shown[lane].state) == facts["state"]


def _check_hooks_are_owed(connection: sqlite3.Connection, told: JournalOfCalls) -> None:
    """Each end of a session has its call: owed, given up, or made."""
    keys: dict[str, set[str]] = defaultdict(set)
    for session_id, call in connection.execute("SELECT session_id, idempotency_key FROM hook_calls"):
        keys[session_id].add(call)
    for session_id, ends in connection.execute("SELECT session_id, ends FROM sessions"):
        found = keys[session_id] | told.hooks.get(session_id, set())
        assert len(found) == ends, f"session {session_id} ended {ends} times, its calls are {found}"


def _check_hooks_were_called(home: Path, told: JournalOfCalls) -> None:
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        owed = connection.execute("SELECT count(*) FROM hook_calls").fetchone()
        ends = dict(connection.execute("SELECT session_id, ends FROM sessions WHERE ends > 0"))
    assert owed == (0,)
    assert {session: len(calls) for session, calls in told.hooks.items()} == ends
