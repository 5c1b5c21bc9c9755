"""A Hermes home that is brought along: everything in it, once, and without a trace in the home itself."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionSource, SessionStore
from gateway_sessions.core.export.transfer_reports import FindingKind, ImportReport, TransferProgress
from gateway_sessions.errors import ForeignDatabaseError, StorageCorruptError, StorageUnavailableError
from gateway_sessions.storage.transactions.upkeep import status
from gateway_sessions.testing import FakeClock
from tests.integration.transfer.hermes import (
    BRANCH,
    CHAT,
    DELEGATE,
    GROUP,
    MESSAGES,
    OTHER_CHAT,
    ROOT,
    SESSIONS,
    STALE,
    TIP,
    VERSIONS,
    change_hermes,
    fingerprint,
    hermes_home,
)
from tests.programs import WarmPython
from tests.raw_sql import execute_sql

SAY = (
    "INSERT INTO messages (id, session_id, role, content, timestamp, active)"
    " VALUES (?, ?, 'user', ?, 1772722900.0, 1)"
)
OPERATOR = Scope.operator()
ALICE = SessionSource(platform="telegram", chat_id="4711", user_id="4711", user_name="Alice")


pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def store(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with SessionStore.open(tmp_path / "store", clock=fake_clock) as opened:
        yield opened


async def exported(store: SessionStore, session_id: str) -> dict[str, Any]:
    return await store.db.export_session(session_id, scope=OPERATOR)


async def everything(store: SessionStore) -> list[dict[str, Any]]:
    return [one async for one in store.db.export_all(scope=OPERATOR)]


def kinds(report: ImportReport) -> list[str]:
    return [str(one.kind) for one in report.findings]


@pytest.mark.parametrize("version", VERSIONS)
async def test_everything_comes_along_from_every_version(store: SessionStore, tmp_path: Path, version: str):
    home = hermes_home(tmp_path / "hermes", version)
    before = fingerprint(home)
    dry = await store.import_hermes(home, dry_run=True)
    assert await everything(store) == []
    real = await store.import_hermes(home)
    assert (real.imported, real.errors, real.clashes) == (SESSIONS, (), ())
    assert replace(dry, dry_run=False) == real
    assert fingerprint(home) == before


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_told_of_an_import_is_what_is_counted_afterwards(
    store: SessionStore, tmp_path: Path, version: str
):
    told = await store.import_hermes(hermes_home(tmp_path / "hermes", version))
    kept = await store.db.read(status.count_by_source)
    assert sum(one.sessions for one in kept) == told.imported + told.begun
    assert await store.db.read(status.count_messages) == told.messages
    assert await store.db.read(status.count_lanes) == told.lanes
    assert told.messages + told.hidden == MESSAGES
    assert told.begun == (version == VERSIONS[0])


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_second_import_changes_nothing(store: SessionStore, tmp_path: Path, version: str):
    home = hermes_home(tmp_path / "hermes", version)
    await store.import_hermes(home)
    before, lanes = await everything(store), await store.list_sessions(scope=OPERATOR)
    again = await store.import_hermes(home)
    assert (again.imported, again.skipped, again.lanes) == (0, SESSIONS, 0)
    assert set(kinds(again)) <= {"left_alone"}
    assert await everything(store) == before
    assert await store.list_sessions(scope=OPERATOR) == lanes


async def test_messages_are_what_they_were(store: SessionStore, tmp_path: Path):
    await store.import_hermes(hermes_home(tmp_path / "hermes"))
    messages = {one["seq"]: one for one in (await exported(store, ROOT))["messages"]}
    assert messages[1]["role"] == "session_meta"
    assert (messages[2]["content"], messages[2]["platform_message_id"]) == (
        "When does the train leave?\nFrom Lisbon.",
        "101",
    )
    called = messages[3]
    assert called["tool_calls"][0]["function"] == {"name": "terminal", "arguments": '{"command": "date"}'}
    assert (called["reasoning"], called["reasoning_content"]) == ("A time table.", "")
    assert called["reasoning_details"] == [{"type": "summary", "text": "look"}]
    assert (called["codex_reasoning_items"], called["codex_message_items"]) == (
        [{"id": "r1"}],
        [{"id": "m1"}],
    )
    assert (called["finish_reason"], called["token_count"]) == ("tool_calls", 12)
    assert (messages[4]["tool_call_id"], messages[4]["tool_name"]) == ("c1", "terminal")
    assert messages[4]["effect_disposition"] == "none"
    assert messages[5]["api_content"] == "At nine. [memory]"
    assert messages[6]["content"][1] == {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
    assert messages[7]["observed"] is True
    assert messages[2]["timestamp"] == 1772722800.625


async def test_hidden_messages_are_hidden_for_the_same_reason(store: SessionStore, tmp_path: Path):
    await store.import_hermes(hermes_home(tmp_path / "hermes"))
    hidden = [one.get("hidden_because") for one in (await exported(store, TIP))["messages"]]
    assert hidden == ["compacted"] * 4 + [None, None, "rewound", "rewound", None]
    assert (await store.load_transcript(TIP))[0]["content"] == "Short: three questions."


async def test_lineage_titles_and_archive(store: SessionStore, tmp_path: Path):
    await store.import_hermes(hermes_home(tmp_path / "hermes"))
    found = {one["id"]: one for one in await everything(store)}
    relations = {
        one: (found[one]["parent_session_id"], found[one]["relation"])
        for one in (TIP, STALE, BRANCH, DELEGATE)
    }
    assert relations == {
        TIP: (ROOT, "continuation"),
        STALE: (ROOT, "branch"),
        BRANCH: (ROOT, "branch"),
        DELEGATE: (ROOT, "delegate"),
    }
    assert found["20260305_100000_22222222"]["relation"] == "succession"
    assert (found[ROOT]["title"], found[TIP]["title"]) == ("Trip to Lisbon", "Trip to Lisbon #2")
    assert found["20260304_090000_ffffff"]["archived"] is True
    assert found["20260304_090000_ffffff"]["extra"]["cwd"] == "/home/alice/project"
    assert await store.db.get_compression_tip(ROOT) == TIP
    assert (found[ROOT]["ended_at"], found[ROOT]["end_reason"]) == (1772722802.375, "compression")


async def test_use_is_counted_by_model_and_the_rest_by_session(store: SessionStore, tmp_path: Path):
    await store.import_hermes(hermes_home(tmp_path / "hermes"))
    root, tip = await exported(store, ROOT), await exported(store, TIP)
    by_model = {one["model"]: one for one in root["usage_events"]}
    assert {
        model: (one["task"], one["input_tokens"], one["api_calls"]) for model, one in by_model.items()
    } == {
        "m-1": ("turn", 250, 2),
        "m-2": ("turn", 40, 1),
        "m-3": ("title_generation", 7, 1),
    }
    assert (root["input_tokens"], root["output_tokens"], root["api_call_count"]) == (290, 23, 3)
    assert (by_model["m-1"]["estimated_cost_usd"], by_model["m-2"].get("estimated_cost_usd")) == (0.002, None)
    assert [(one["event_id"], one["input_tokens"]) for one in tip["usage_events"]] == [(f"hermes:{TIP}", 500)]
    assert (tip["estimated_cost_usd"], tip["cost_status"]) == (None, "unknown")


async def test_sessions_belong_to_people_and_rooms(store: SessionStore, tmp_path: Path):
    await store.import_hermes(hermes_home(tmp_path / "hermes"))
    owners = {one["id"]: one["owner"] for one in await everything(store)}
    alice = "main:telegram:user:4711"
    assert {owners[one] for one in (ROOT, TIP, STALE, BRANCH, DELEGATE)} == {alice}
    assert owners["20260304_100000_11111111"] == alice
    assert owners["cron_42_20260305_180000"] == "main:cron:local"
    assert owners["20260305_190000_33333333"] == "main:telegram:user:99"
    scope = await store.scope_of(ALICE)
    assert DELEGATE in [one["id"] async for one in store.db.export_all(scope=scope)]


async def test_lanes_go_on_with_their_sessions(store: SessionStore, tmp_path: Path):
    report = await store.import_hermes(hermes_home(tmp_path / "hermes"))
    assert report.lanes == 3
    entry = await store.get_or_create_session(ALICE)
    assert (entry.session_key, entry.session_id) == (CHAT, TIP)
    group = SessionSource(platform="telegram", chat_id="-100:7", chat_type="group", user_id="4711")
    assert (await store.get_or_create_session(group)).session_key == GROUP
    assert await store.peek_session_id(GROUP) == "20260305_100000_22222222"


async def test_of_two_lanes_with_one_session_the_later_used_keeps_it(store: SessionStore, tmp_path: Path):
    report = await store.import_hermes(hermes_home(tmp_path / "hermes"))
    linked = await store.peek_session_id(OTHER_CHAT)
    assert linked is not None
    assert linked.startswith(TIP)
    assert (await exported(store, linked))["parent_session_id"] == TIP
    assert [one.detail for one in report.of(FindingKind.LANE)] == [
        f"lane {OTHER_CHAT} shared it with {CHAT}, and goes on as {linked}"
    ]


async def test_a_lane_at_a_compressed_session_goes_on_at_its_tip(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    change_hermes(home, "UPDATE gateway_routing SET entry_json = replace(entry_json, ?, ?)", TIP, ROOT)
    await store.import_hermes(home)
    assert await store.peek_session_id(CHAT) == TIP


async def test_a_held_session_goes_on_whatever_its_row_says(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    change_hermes(
        home, "UPDATE sessions SET ended_at = 1772722900.0, end_reason = 'agent_close' WHERE id = ?", TIP
    )
    await store.import_hermes(home)
    tip = await exported(store, TIP)
    assert (tip["ended_at"], tip["extra"]["hermes_end_reason"]) == (None, "agent_close")


async def test_a_lane_that_is_in_use_keeps_what_it_has(store: SessionStore, tmp_path: Path):
    mine = await store.get_or_create_session(ALICE)
    home = hermes_home(tmp_path / "hermes")
    dry = await store.import_hermes(home, dry_run=True)
    report = await store.import_hermes(home)
    assert await store.peek_session_id(CHAT) == mine.session_id
    told = [one.detail for one in report.of(FindingKind.LANE)]
    assert f"lane {CHAT} has {mine.session_id} here; it can be resumed" in told
    assert dry.lanes == report.lanes == 2
    await store.switch_session(CHAT, TIP, scope=await store.scope_of(ALICE))
    assert (await store.load_transcript(TIP))[-1]["content"] == "go on"


async def test_the_file_alone_will_do(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes", "hermes_schema_11")
    entry = {
        "session_id": TIP,
        "created_at": "2026-03-05T15:00:00",
        "updated_at": "2026-03-05T16:00:00",
        "platform": "telegram",
        "chat_type": "dm",
        "origin": ALICE.to_dict(),
    }
    (home / "sessions" / "sessions.json").write_text(json.dumps({CHAT: entry, "broken": {}}))
    report = await store.import_hermes(home)
    assert (report.lanes, await store.peek_session_id(CHAT)) == (1, TIP)
    assert ["broken" in one.detail for one in report.errors] == [True]
    assert (await exported(store, TIP))["session_key"] == CHAT


async def test_lanes_of_a_home_without_a_database(store: SessionStore, tmp_path: Path):
    home = tmp_path / "old"
    home.mkdir()
    entry = {"session_id": "s1", "created_at": "2026-03-05T15:00:00", "updated_at": "2026-03-05T16:00:00"}
    (home / "sessions.json").write_text(json.dumps({CHAT: entry}))
    assert (await store.import_hermes(home)).lanes == 1
    (home / "sessions.json").write_text("torn")
    assert kinds(await store.import_hermes(home)) == ["left_alone"]


async def test_an_index_that_came_before_its_history_is_filled_in(tmp_path: Path, fake_clock: FakeClock):
    home = hermes_home(tmp_path / "hermes")
    async with SessionStore.open(home / "sessions", clock=fake_clock) as store:
        assert (await store.get_or_create_session(ALICE)).session_id == TIP
        assert await store.load_transcript(TIP) == []
        report = await store.import_hermes(home)
        assert (report.imported, report.clashes) == (SESSIONS, ())
        assert (await store.load_transcript(TIP))[-1]["content"] == "go on"
        assert (await store.get_or_create_session(ALICE)).session_id == TIP
        assert (await store.import_hermes(home)).skipped == SESSIONS


async def test_a_session_in_which_something_was_said_is_not_overwritten(store: SessionStore, tmp_path: Path):
    await store.db.create_session(ROOT, "cli")
    await store.db.append_message(ROOT, "user", "mine")
    report = await store.import_hermes(hermes_home(tmp_path / "hermes"))
    assert [one.session_id for one in report.clashes] == [ROOT]
    assert [one.content for one in await store.db.get_messages(ROOT)] == ["mine"]


async def test_a_session_that_hermes_has_gone_on_with_is_told(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    await store.import_hermes(home)
    change_hermes(home, SAY, 99, TIP, "x")
    report = await store.import_hermes(home)
    assert [one.detail.partition(";")[0] for one in report.clashes] == [
        "it had 9 messages in Hermes when it was taken in, and has 10 now"
    ]


async def test_ids_that_could_be_paths_get_others_and_keep_their_own(store: SessionStore, tmp_path: Path):
    report = await store.import_hermes(hermes_home(tmp_path / "hermes"))
    renamed = report.of(FindingKind.RENAMED)[0].session_id
    assert renamed is not None
    assert (await exported(store, renamed))["extra"]["original_id"] == "api/with slash"


async def test_messages_without_a_session_are_kept(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    change_hermes(home, "DELETE FROM sessions WHERE id = ?", STALE)
    report = await store.import_hermes(home)
    assert (report.imported, report.messages + report.hidden) == (SESSIONS, MESSAGES)
    assert (await exported(store, STALE))["source"] == "unknown"


async def test_columns_nobody_knows_and_values_nobody_expects_are_kept(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    change_hermes(home, "ALTER TABLE sessions ADD COLUMN mood TEXT")
    change_hermes(home, "ALTER TABLE messages ADD COLUMN colour BLOB")
    of_session = (
        "mood = 'good', model_config = 'no json', ended_at = 'later', rewind_count = -1, archived = 7"
    )
    more = "input_tokens = 'many', estimated_cost_usd = -1"
    change_hermes(home, f"UPDATE sessions SET {of_session}, {more} WHERE id = ?", BRANCH)  # noqa: S608 -- constants
    of_message = "colour = x'ff41', observed = 2, token_count = 1.5, timestamp = 9e99, tool_calls = '{'"
    more = "content = x'4142ff', role = ''"
    change_hermes(home, f"UPDATE messages SET {of_message}, {more} WHERE session_id = ?", BRANCH)  # noqa: S608
    report = await store.import_hermes(home)
    assert report.errors == ()
    branch = await exported(store, BRANCH)
    kept = {"mood": "good", "ended_at": "later", "rewind_count": -1, "archived": 7}
    assert {name: branch["extra"][name] for name in kept} == kept
    assert branch["model_config"] == {"model_config": "no json"}
    (message,) = branch["messages"]
    assert message["extra"] == {"colour": "\\xffA", "observed": 2, "token_count": 1.5, "timestamp": 9e99}
    assert (message["content"], message["role"], message["tool_calls"]) == ("AB\\xff", "unknown", ["{"])


async def test_a_running_hermes_is_read_as_of_one_moment(
    store: SessionStore, tmp_path: Path, blocking_allowed: None
):
    home = hermes_home(tmp_path / "hermes")
    with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as hermes:
        hermes.execute("PRAGMA journal_mode = WAL")
        hermes.execute("PRAGMA wal_autocheckpoint = 0")
        hermes.execute(SAY, (50, TIP, "now"))
        before = fingerprint(home)

        def write_meanwhile(_: TransferProgress) -> None:
            hermes.execute("UPDATE messages SET content = 'too late'")

        report = await store.import_hermes(home, progress=write_meanwhile)
        assert (report.imported, report.messages + report.hidden) == (SESSIONS, MESSAGES + 1)
        assert (await store.load_transcript(TIP))[-1]["content"] == "now"
        assert fingerprint(home)["state.db"] == before["state.db"]


async def test_what_a_crash_left_in_the_log_is_read_and_left_there(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as hermes:
        hermes.execute("PRAGMA journal_mode = WAL")
        hermes.execute(SAY, (50, TIP, "now"))
        crashed = tmp_path / "crashed"
        shutil.copytree(home, crashed, ignore=shutil.ignore_patterns("*-shm"))
    before = fingerprint(crashed)
    assert [*before] == ["state.db", "state.db-wal"]
    report = await store.import_hermes(crashed)
    assert report.messages + report.hidden == MESSAGES + 1
    assert fingerprint(crashed) == before
    assert not list((tmp_path / "store").glob(".hermes.*"))


async def test_a_hermes_that_begins_to_write_meanwhile_is_noticed(
    store: SessionStore, tmp_path: Path, blocking_allowed: None
):
    home = hermes_home(tmp_path / "hermes")
    for number in range(120):
        change_hermes(
            home, "INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', ?)", f"n{number}", number
        )

    def write_meanwhile(_: TransferProgress) -> None:
        change_hermes(home, "UPDATE sessions SET source = 'x' || hex(randomblob(2000)) WHERE id = 'n1'")

    with pytest.raises(StorageUnavailableError, match="import it again"):
        await store.import_hermes(home, progress=write_meanwhile)
    report = await store.import_hermes(home)
    assert report.imported + report.skipped == SESSIONS + 120


async def test_a_damaged_home_is_told_and_nothing_is_dropped_silently(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    filler = "x" * 3000
    for number in range(40):
        change_hermes(home, SAY, 100 + number, TIP, filler)
    path = home / "state.db"
    raw = bytearray(path.read_bytes())
    for page in range(len(raw) // 4096 - 20, len(raw) // 4096 - 10):
        raw[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    path.write_bytes(raw)
    with pytest.raises(StorageCorruptError):
        await store.import_hermes(home)


async def test_messages_that_an_index_has_lost_are_missed(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    change_hermes(home, "CREATE INDEX by_session ON messages (session_id)")
    change_hermes(home, "CREATE TABLE bare (session_id TEXT)")
    change_hermes(home, "CREATE INDEX of_bare ON bare (session_id)")
    # The index is taken for another one, which has no rows: a search by it finds nothing.
    with closing(sqlite3.connect(home / "state.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        empty = "(SELECT rootpage FROM sqlite_master WHERE name = 'of_bare')"
        connection.execute(f"UPDATE sqlite_master SET rootpage = {empty} WHERE name = 'by_session'")  # noqa: S608
    report = await store.import_hermes(home)
    assert report.messages == 0
    assert len(report.errors) == SESSIONS - 1
    assert all("can be found by their session" in one.detail for one in report.errors)


@pytest.mark.parametrize(
    ("content", "error"),
    [(b"no database at all" * 100, StorageCorruptError), (b"", ForeignDatabaseError)],
    ids=["garbage", "empty"],
)
async def test_a_file_that_is_no_hermes_database(
    store: SessionStore, tmp_path: Path, content: bytes, error: type[Exception]
):
    home = tmp_path / "hermes"
    home.mkdir()
    (home / "state.db").write_bytes(content)
    with pytest.raises(error):
        await store.import_hermes(home)


async def test_a_database_of_another_program_is_refused(store: SessionStore, tmp_path: Path):
    home = tmp_path / "hermes"
    home.mkdir()
    execute_sql(home / "state.db", "CREATE TABLE sessions (name TEXT)")
    with pytest.raises(ForeignDatabaseError, match="no table sessions with id"):
        await store.import_hermes(home)


async def test_a_place_that_is_no_home_is_refused(store: SessionStore, tmp_path: Path):
    with pytest.raises(InvalidInputError, match="no Hermes home"):
        await store.import_hermes(tmp_path)


@pytest.mark.parametrize("place", [".", "state.db", "sessions"])
async def test_a_home_may_be_named_by_any_of_its_parts(store: SessionStore, tmp_path: Path, place: str):
    home = hermes_home(tmp_path / "hermes")
    assert (await store.import_hermes(home / place)).lanes == 3


async def test_a_home_that_was_copied_is_known_by_its_only_directory(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "copy", scope="/home/alice/.hermes/sessions")
    assert (await store.import_hermes(home)).lanes == 3


async def test_routing_of_several_directories_none_of_which_is_this_one(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "copy", scope="/one/sessions")
    change_hermes(home, "INSERT INTO gateway_routing VALUES ('/two/sessions', 'agent:main:x:dm:1', '{}', 0)")
    report = await store.import_hermes(home)
    assert report.lanes == 0
    told = [one.detail for one in report.of(FindingKind.LEFT_ALONE)]
    assert told[:2] == ["the routing table of /one/sessions", "the routing table of /two/sessions"]


@pytest.mark.parametrize(
    "more", ["", ", parent_session_id, end_reason", ", end_reason, parent_session_id, model"]
)
async def test_the_fewest_columns_will_do(store: SessionStore, tmp_path: Path, more: str):
    home = tmp_path / "hermes"
    home.mkdir()
    change_hermes(home, f"CREATE TABLE sessions (id TEXT{more})")
    change_hermes(
        home, "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, timestamp REAL)"
    )
    change_hermes(home, "INSERT INTO sessions (id) VALUES ('a')")
    change_hermes(home, "INSERT INTO messages VALUES (1, 'a', 'user', 1.5)")
    entry = {"session_id": "a", "created_at": "2026-03-05T15:00:00", "updated_at": "2026-03-05T16:00:00"}
    (home / "sessions.json").write_text(json.dumps({CHAT: entry}))
    report = await store.import_hermes(home)
    assert (report.imported, report.messages, report.lanes, report.errors) == (1, 1, 1, ())


async def test_what_is_left_alone_is_listed(store: SessionStore, tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    (home / "profiles" / "coder").mkdir(parents=True)
    (home / "config.yaml").write_text("model: x")
    (home / "sessions" / "old.jsonl").write_text("{}")
    report = await store.import_hermes(home)
    assert [one.detail for one in report.of(FindingKind.LEFT_ALONE)] == [
        "1 rows of table state_meta",
        "config.yaml",
        "profiles/",
        "sessions/: 1 more",
    ]


KILLED = """
import asyncio, sys
from gateway_sessions import SessionStore
from gateway_sessions.testing.faults import crash_at
async def main():
    async with SessionStore.open(sys.argv[1]) as store:
        with crash_at(sys.argv[3], nth=int(sys.argv[4])):
            await store.import_hermes(sys.argv[2])
asyncio.run(main())
"""


def without_ids(sessions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What does not depend on when the import ran: the linked session of a shared lane begins then."""
    return [one for one in sessions if not one["id"].startswith(f"{TIP}_")]


async def test_killed_anywhere_and_begun_again_it_ends_the_same(
    warm_python: WarmPython, store: SessionStore, tmp_path: Path
):
    home = hermes_home(tmp_path / "hermes")
    await store.import_hermes(home)
    expected = without_ids(await everything(store))
    path = tmp_path / "killed"
    for point, nth in (
        ("within_batch", 3),
        ("before_commit", 1),
        ("after_commit", 1),
        ("change_committed", 1),
    ):
        shutil.rmtree(path, ignore_errors=True)
        killed = await asyncio.to_thread(warm_python.run, KILLED, path, home, point, nth)
        assert killed.returncode == -9, (point, killed.stderr)
        async with SessionStore.open(path) as again:
            report = await again.import_hermes(home)
            assert report.imported + report.skipped == SESSIONS, point
            assert without_ids(await everything(again)) == expected, point
            assert {one.session_key for one in await again.list_sessions(scope=OPERATOR)} == {
                CHAT,
                OTHER_CHAT,
                GROUP,
            }
