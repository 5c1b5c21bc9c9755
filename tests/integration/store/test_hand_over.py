"""A new version takes over from a running one: two real processes, one home."""

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionDB, SessionNotFoundError, SessionSource, SessionStore
from gateway_sessions.errors import SchemaTooNewError, StorageUnavailableError
from gateway_sessions.operator import connect
from tests.programs import Program, WarmPython
from tests.raw_sql import execute_sql

BOT = """
    import asyncio, sys
    from gateway_sessions import SessionSource, SessionStore

    async def main():
        async with SessionStore.open(sys.argv[1], wait=float(sys.argv[2])) as store:
            print("open", flush=True)
            n = 0
            while not store.control.drain_requested.is_set():
                n += 1
                source = SessionSource(platform="telegram", chat_id=str(n % 20), user_id="1")
                entry = await store.get_or_create_session(source)
                print(entry.session_key, entry.session_id, flush=True)
                await asyncio.sleep(0.002)

    asyncio.run(main())
"""


Start = Callable[..., Program]


@pytest.fixture
def bot(warm_python: WarmPython, tmp_path: Path) -> Start:
    return lambda wait=0.0: warm_python.start(BOT, tmp_path, wait)


def heard(process: Program) -> str:
    return process.stdout.readline().strip()


async def test_the_old_process_hands_over_and_nothing_acknowledged_is_lost(tmp_path: Path, bot: Start):
    with bot() as old:
        assert heard(old) == "open"
        acknowledged = dict(heard(old).split() for _ in range(30))
        async with SessionStore.open(tmp_path, wait=15) as store:
            rest = old.stdout.read()
            assert old.wait() == 0
            acknowledged |= dict(line.split() for line in rest.splitlines())
            assert store.started.clean
            for key, session_id in acknowledged.items():
                assert await store.peek_session_id(key) == session_id
        assert execute_sql(tmp_path / "sessions.db", "PRAGMA integrity_check") == [("ok",)]


async def test_three_versions_follow_one_another(bot: Start):
    with bot() as first:
        assert heard(first) == "open"
        kept = heard(first)
        with bot(wait=15) as second:
            assert heard(second) == "open"
            assert first.wait() == 0
            assert heard(second) == kept
            with bot(wait=15) as third:
                assert heard(third) == "open"
                assert second.wait() == 0
                assert heard(third) == kept


async def test_an_owner_that_will_not_end_is_not_forced(tmp_path: Path, bot: Start):
    async with SessionStore.open(tmp_path) as store:
        with bot(wait=0.3) as newcomer:
            assert await asyncio.to_thread(newcomer.wait) == 1
        assert store.control.drain_requested.is_set()
        assert await store.get_or_create_session(SessionSource(platform="irc", chat_id="1"))


ACT = """
    import asyncio, json, sys
    from gateway_sessions import Scope, SessionNotFoundError
    from gateway_sessions.operator import connect

    async def main():
        async with connect(sys.argv[1]) as seat:
            owner = await seat.owner()
            entries = await seat.list_sessions(scope=Scope.operator())
            new = await seat.do("reset_session", session_key=entries[0].session_key)
            try:
                await seat.do("switch_session", session_key=new.session_key, target_session_id="x",
                              scope=Scope.lane("no"))
            except SessionNotFoundError as error:
                print(json.dumps([owner.pid, entries[0].session_id, new.session_id, error.session_id]))

    asyncio.run(main())
"""


async def test_a_command_line_acts_through_a_running_bot(tmp_path: Path, warm_python: WarmPython):
    async with SessionStore.open(tmp_path) as store:
        entry = await store.get_or_create_session(SessionSource(platform="irc", chat_id="1"))
        ended = await asyncio.to_thread(warm_python.run, ACT, tmp_path)
        new = await store.peek_session_id(entry.session_key)
        assert json.loads(ended.stdout) == [os.getpid(), entry.session_id, new, "x"]
        assert new != entry.session_id


async def test_a_client_outlives_the_owner(tmp_path: Path, bot: Start):
    with bot() as owner:
        assert heard(owner) == "open"
        key, _ = heard(owner).split()
        async with connect(tmp_path) as seat:
            status = await seat.owner()
            assert status is not None
            assert status.pid == owner.pid
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            assert await seat.owner() is None
            new = await seat.do("reset_session", session_key=key)
            assert await seat.get_session(key) == new
            with pytest.raises(SessionNotFoundError):
                await seat.do(
                    "switch_session", session_key=key, target_session_id="x", scope=Scope.operator()
                )


@pytest.mark.parametrize(
    ("version", "readable_from", "error"),
    [(99, 99, SchemaTooNewError), (1, 1, StorageUnavailableError), (99, 1, None)],
    ids=["newer", "older", "newer but readable"],
)
async def test_a_reader_leaves_a_schema_that_it_does_not_know_alone(
    tmp_path: Path, version: int, readable_from: int, error: type[Exception] | None
):
    async with SessionStore.open(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as database:
        for name, value in (("schema_version", version), ("readable_from", readable_from)):
            database.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))
        database.commit()
    before = (tmp_path / "sessions.db").read_bytes()
    if error is None:
        async with SessionDB.open_reader(tmp_path / "sessions.db"):
            pass
    else:
        with pytest.raises(error):
            async with SessionDB.open_reader(tmp_path / "sessions.db"):
                pass
    assert (tmp_path / "sessions.db").read_bytes() == before
