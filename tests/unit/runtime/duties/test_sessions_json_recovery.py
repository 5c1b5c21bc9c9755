"""What a store finds as sessions.json at a start: its own file, somebody's edit, or ruins."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from gateway_sessions import GatewaySessionsError, SessionDB
from gateway_sessions.config import SnapshotMode
from gateway_sessions.core.sessions_json.file_format import verify_checksum
from gateway_sessions.storage.tables import entries
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import all_stored_entries, config_with_snapshot, dm_source, open_store

WITHOUT_SOCKET = shutil.ignore_patterns("*.sock")
A, B, C = (f"agent:main:telegram:dm:{chat}" for chat in "abc")


def index(home):
    return home / "sessions.json"


def generation(home) -> int:
    return verify_checksum(index(home).read_bytes()).generation


async def lanes_in(home, chats: str = "abc"):
    async with open_store(home) as store:
        for chat in chats:
            await store.get_or_create_session(dm_source(chat))
        return await all_stored_entries(store)


def lose_the_database(home) -> None:
    for path in home.glob("sessions.db*"):
        path.unlink()


def kept(home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home / "quarantine").iterdir()}


RUINS = {
    "empty": lambda raw: b"",
    "half": lambda raw: raw[: len(raw) // 2],
    "without its end": lambda raw: raw[:-3],
    "no JSON": lambda raw: b"hello",
    "a list": lambda raw: b"[]",
    "noughts": lambda raw: b"\x00" * len(raw),
    "edited": lambda raw: raw.replace(b'"dm"', b'"group"'),
    "foreign": lambda raw: b'{"agent:main:telegram:dm:z": {"session_id": "z"}}',
}


class TestBesideADatabase:
    """The database is right; a file that is not ours is kept, reported and replaced."""

    @pytest.mark.parametrize("ruin", RUINS)
    async def test_a_file_that_is_not_ours_is_set_aside_and_nothing_is_lost(self, home, ruin):
        before = await lanes_in(home)
        raw = RUINS[ruin](index(home).read_bytes())
        index(home).write_bytes(raw)
        async with open_store(home) as store:
            assert await all_stored_entries(store) == before
            (incident,) = store.incidents
            await store.flush()
        assert incident.action == "snapshot_quarantined"
        assert list(kept(home).values()) == [raw]
        assert incident.path in {str(home / "quarantine" / name) for name in kept(home)}
        assert set(json.loads(index(home).read_bytes())) == {A, B, C, "_meta"}

    async def test_a_file_of_an_earlier_moment_is_only_late(self, home):
        await lanes_in(home, "a")
        late = index(home).read_bytes()
        before = await lanes_in(home, "bc")
        index(home).write_bytes(late)
        async with open_store(home) as store:
            assert set(await all_stored_entries(store)) == {A, *before}
            assert store.incidents == ()
            await store.flush()
        assert set(json.loads(index(home).read_bytes())) == {A, B, C, "_meta"}

    async def test_a_file_that_knows_more_than_the_database_is_kept(self, home):
        await lanes_in(home, "a")
        rows = {path.name: path.read_bytes() for path in home.glob("sessions.db*")}
        await lanes_in(home, "bc")
        newer = index(home).read_bytes()
        lose_the_database(home)
        for name, content in rows.items():
            (home / name).write_bytes(content)
        async with open_store(home) as store:
            assert set(await all_stored_entries(store)) == {A}
            assert [one.action for one in store.incidents] == ["database_older_than_snapshot"]
        assert list(kept(home).values()) == [newer]

    async def test_a_file_that_is_ours_is_trusted_and_not_written_again(self, home):
        await lanes_in(home)
        before = index(home).stat().st_mtime_ns, index(home).read_bytes()
        async with open_store(home) as store:
            await store.flush()
        assert (index(home).stat().st_mtime_ns, index(home).read_bytes()) == before


class TestGenerations:
    """They are counted in memory; what is written down must still tell an old file from a new one."""

    async def test_after_a_crash_the_file_is_only_late_and_written_afresh(self, home, tmp_path):
        async with open_store(home) as store:
            await store.get_or_create_session(dm_source("a"))
            await store.flush()
            await store.get_or_create_session(dm_source("b"))
            found = shutil.copytree(home, tmp_path / "found", ignore=WITHOUT_SOCKET)
        before = generation(found)
        async with open_store(found) as store:
            assert store.incidents == ()
            await store.flush()
            assert generation(found) > before
        assert set(json.loads(index(found).read_bytes())) == {A, B, "_meta"}

    async def test_a_copy_of_the_database_in_use_is_older_than_a_file_written_after_it(self, home, tmp_path):
        async with open_store(home) as store:
            await store.get_or_create_session(dm_source("a"))
            await store.flush()
            copied = shutil.copytree(home, tmp_path / "copied", ignore=WITHOUT_SOCKET)
            await store.get_or_create_session(dm_source("b"))
        newer = index(home).read_bytes()
        index(copied).write_bytes(newer)
        async with open_store(copied) as store:
            assert [one.action for one in store.incidents] == ["database_older_than_snapshot"]
            await store.flush()
            assert generation(copied) > verify_checksum(newer).generation
        assert list(kept(copied).values()) == [newer]

    async def test_a_change_that_was_shown_in_no_file_is_not_forgotten(self, home):
        await lanes_in(home, "a")
        async with open_store(home, config_with_snapshot(SnapshotMode.OFF)) as store:
            await store.get_or_create_session(dm_source("b"))
        assert set(json.loads(index(home).read_bytes())) == {A, "_meta"}
        async with open_store(home) as store:
            assert store.incidents == ()
        assert set(json.loads(index(home).read_bytes())) == {A, B, "_meta"}

    async def test_they_rise_across_restarts_crashes_and_a_lost_database(self, home, tmp_path):
        seen: list[int] = []
        for number, how in enumerate(["clean", "crash", "clean", "clean", "lost", "crash", "lost", "clean"]):
            if how == "lost":
                lose_the_database(home)
            async with open_store(home) as store:
                await store.get_or_create_session(dm_source(str(number)))
                await store.flush()
                seen.append(generation(home))
                after = shutil.copytree(home, tmp_path / f"crash{number}", ignore=WITHOUT_SOCKET)
            home = after if how == "crash" else home
            seen += [generation(home)] if how != "crash" else []
        assert seen == sorted(seen)
        assert len(set(seen)) == 8

    async def test_a_change_in_the_last_moment_makes_the_file_late(self, home):
        """The database is closed after the file was written; whoever has it may still change something."""
        await lanes_in(home, "a")
        before = generation(home)
        async with SessionDB.open(home / "sessions.db") as db:
            entry = await db.read(partial(entries.load, A))
            changing = asyncio.create_task(db.write(partial(entries.put, entry.evolve(entry.updated_at))))
            await asyncio.sleep(0)
        await changing
        async with open_store(home) as store:
            await store.flush()
        assert generation(home) > before


class TestWithoutADatabase:
    @pytest.mark.parametrize("ruin", ["empty", "no JSON", "a list", "noughts"])
    async def test_the_generation_before_a_ruined_file_is_taken_in(self, home, ruin):
        await lanes_in(home)
        lose_the_database(home)
        raw = index(home).read_bytes()
        (home / "sessions.json.bak").write_bytes(raw)
        index(home).write_bytes(RUINS[ruin](raw))
        async with open_store(home) as store:
            assert set(await all_stored_entries(store)) == {A, B, C}
            assert "snapshot_quarantined" in {one.action for one in store.incidents}

    @pytest.mark.parametrize("cut", range(8))
    async def test_of_a_torn_file_nothing_that_can_be_read_is_lost_and_the_tear_is_told(self, home, cut):
        await lanes_in(home)
        lose_the_database(home)
        raw = index(home).read_bytes()
        (home / "sessions.json.bak").unlink(missing_ok=True)
        torn = raw[: len(raw) * (cut + 1) // 9]
        index(home).write_bytes(torn)
        whole = torn.count(b"}},\n") or torn.count(b"},\n")
        async with open_store(home) as store:
            assert len(await all_stored_entries(store)) >= whole
            assert store.incidents != ()
        assert kept(home)

    async def test_an_entry_that_cannot_be_one_is_set_aside_and_the_others_taken_in(self, home):
        await lanes_in(home)
        lose_the_database(home)
        content = json.loads(index(home).read_bytes())
        content[B]["session_id"] = "../../etc"
        content[C]["origin"] = {"platform": 5}
        index(home).write_text(json.dumps(content))
        async with open_store(home) as store:
            assert set(await all_stored_entries(store)) == {A}
            reported = [one.detail for one in store.incidents if one.action == "entry_quarantined"]
        assert [detail.split(": ")[0] for detail in reported] == [B, C]
        (rejected,) = [json.loads(raw) for name, raw in kept(home).items() if name.endswith("rejected.json")]
        assert {one["key"]: json.loads(one["raw"]) for one in rejected} == {B: content[B], C: content[C]}

    async def test_a_file_is_taken_in_once(self, home):
        home.mkdir()
        entry = {
            "session_id": "old",
            "created_at": "2026-01-01T00:00:00",
            "updated_at": "2026-01-01T00:00:00",
        }
        index(home).write_text(json.dumps({A: entry}))
        async with open_store(home) as store:
            assert await store.peek_session_id(A) == "old"
        index(home).write_text(json.dumps({A: entry | {"session_id": "another"}, B: entry}))
        async with open_store(home) as store:
            assert await store.peek_session_id(A) == "old"
            assert await store.peek_session_id(B) is None

    async def test_a_store_without_any_file_begins_empty(self, home):
        async with open_store(home) as store:
            assert await all_stored_entries(store) == {}
            assert store.incidents == ()

    async def test_unknown_members_survive_being_taken_in_and_written(self, home):
        home.mkdir()
        entry = {
            "session_id": "old", "created_at": "2026-01-01T00:00:00", "updated_at": "2026-01-01T00:00:00",
            "later": {"a": [1, None]}, "platform": "left the building",
            "origin": {"platform": "left the building", "chat_id": "a", "much_later": "x"},
        }  # fmt: skip
        index(home).write_text(json.dumps({A: entry}))
        async with open_store(home) as store:
            await store.update_session(A)
        written = json.loads(index(home).read_bytes())[A]
        assert (written["later"], written["platform"]) == (entry["later"], entry["platform"])
        assert written["origin"].items() >= entry["origin"].items()

    async def test_taking_in_is_told_in_the_log_of_each_lane(self, home):
        await lanes_in(home, "a")
        lose_the_database(home)
        async with open_store(home) as store:
            (event,) = (await store.explain(A)).history
        assert (event.event, event.actor) == ("imported", "import")
        assert execute_sql(home / "sessions.db", "SELECT count(*) FROM sessions") == [(1,)]


class TestBesideAHermesHome:
    def routing(self, home, *rows: tuple[object, ...]) -> None:
        home.mkdir()
        with closing(sqlite3.connect(home.parent / "state.db")) as database:
            database.execute("CREATE TABLE gateway_routing (scope, session_key, entry_json)")
            database.executemany(
                "INSERT INTO gateway_routing VALUES (?, ?, ?)", [(str(home.resolve()), *row) for row in rows]
            )
            database.commit()

    @pytest.mark.parametrize("text", [None, "", "[]", "nonsense", 5, b"\xff", '{"session_id": "x"}'])
    async def test_a_row_that_cannot_be_an_entry_is_set_aside(self, home, text):
        self.routing(home, (A, text))
        async with open_store(home) as store:
            assert await all_stored_entries(store) == {}
            assert [one.action for one in store.incidents] == ["entry_quarantined"]

    async def test_a_database_without_the_table_holds_nothing(self, home):
        home.mkdir()
        execute_sql(home / "state.db", "CREATE TABLE other (a)")
        async with open_store(home) as store:
            assert await all_stored_entries(store) == {}

    async def test_a_ruined_database_is_an_error_that_names_it(self, home):
        """To go on without it would lose the lanes that only it knows."""
        home.mkdir()
        (home / "state.db").write_bytes(b"not a database at all" * 100)
        with pytest.raises(GatewaySessionsError, match=r"state\.db"):
            async with open_store(home):
                pass
        (home / "state.db").unlink()
        async with open_store(home) as store:
            assert await all_stored_entries(store) == {}


async def test_what_a_kill_left_half_written_in_the_quarantine_goes_and_all_else_stays(tmp_path):
    quarantine = tmp_path / "quarantine"
    quarantine.mkdir()
    half = quarantine / ".sessions.json.20260101T000000Z.rejected.json.abcd1234.tmp"
    whole = quarantine / "sessions.json.20260101T000000Z"
    for one in (half, whole):
        one.write_text("x")
    async with open_store(tmp_path):
        assert sorted(one.name for one in quarantine.iterdir()) == [whole.name]
