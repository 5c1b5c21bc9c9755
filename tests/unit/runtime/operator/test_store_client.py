"""Two programs at one store; here they share a process, which nothing in them knows."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from gateway_sessions import (
    InvalidInputError,
    Scope,
    SessionBusyError,
    SessionDB,
    SessionNotFoundError,
    SessionResetPolicy,
    SessionStore,
    StorageError,
    StoreBusyError,
)
from gateway_sessions.core.control_protocol import MAX_ANSWER_BYTES
from gateway_sessions.errors import ControlError, NothingToUndoError, StorageUnavailableError
from gateway_sessions.operator import connect
from gateway_sessions.runtime.operator import store_client
from gateway_sessions.runtime.store import control as control_module
from gateway_sessions.storage.home import own_home
from gateway_sessions.storage.tables import meta
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.store_fixtures import QUICK, dm_source, open_store

OPERATOR = Scope.operator()


@pytest.fixture
async def store(home: Path, fake_clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with open_store(home, clock=fake_clock) as opened:
        yield opened


async def test_a_client_acts_through_the_owner_and_reads_what_it_did(store: SessionStore, home: Path):
    old = await store.get_or_create_session(dm_source("1"))
    async with connect(home, QUICK) as client:
        assert await client.get_session(old.session_key) == old
        new = await client.do("reset_session", session_key=old.session_key)
        assert await store.get_session(old.session_key) == new
        assert await client.get_session(old.session_key) == new
        assert await client.list_sessions(scope=OPERATOR) == [new]
        assert await client.list_sessions(scope=Scope.lane("another")) == []
        back = await client.do("undo_reset", session_key=old.session_key)
        assert back.session_id == old.session_id


async def test_values_of_every_kind_go_both_ways(store: SessionStore, home: Path):
    entry = await store.get_or_create_session(dm_source("1"))
    key = entry.session_key
    async with connect(home, QUICK) as client:
        policy = SessionResetPolicy(idle_minutes=5)
        assert (await client.do("set_reset_policy", session_key=key, policy=policy)).reset_policy == policy
        assert (await client.do("set_zone", session_key=key, zone="Europe/Berlin")).zone == "Europe/Berlin"
        override = {"model": "m", "api_key": "secret"}
        changed = await client.do("set_model_override", session_key=key, override=override)
        assert changed.model_override == {"model": "m"}
        page = await client.do("list_sessions", scope=await store.scope_of(dm_source("1")), after=None)
        assert [one.session_key for one in page] == [key]
        explained = await client.do("explain", session_key=key)
        assert explained == await store.explain(key)
        assert await client.do("suspend_session", session_key=key, reason="tidying") is True
        assert await client.do("flush") is None


async def test_errors_are_those_of_the_method(store: SessionStore, home: Path):
    entry = await store.get_or_create_session(dm_source("1"))
    key = entry.session_key
    async with connect(home, QUICK) as client:
        with pytest.raises(NothingToUndoError) as nothing:
            await client.do("undo_reset", session_key=key)
        assert nothing.value.where == key
        with pytest.raises(SessionNotFoundError) as unknown:
            await client.do("switch_session", session_key=key, target_session_id="gone", scope=OPERATOR)
        assert unknown.value.session_id == "gone"
        with pytest.raises(InvalidInputError, match="reason"):
            await client.do("suspend_session", session_key=key, reason="two\nlines")


async def test_what_is_not_offered_or_not_taken_is_refused(store: SessionStore, home: Path):
    async with connect(home, QUICK) as client:
        with pytest.raises(InvalidInputError, match="did you mean 'reset_session'"):
            await client.do("reset_sesion")
        with pytest.raises(InvalidInputError, match="no operation '__aexit__'"):
            await client.do("__aexit__")
        with pytest.raises(InvalidInputError, match=r"reset_session: .*session_key"):
            await client.do("reset_session")
        with pytest.raises(InvalidInputError, match=r"reset_session: .*unknown field"):
            await client.do("reset_session", session_key="a", more=1)
        with pytest.raises(InvalidInputError, match=r"reset_session: .*`str`"):
            await client.do("reset_session", session_key=3)


def test_every_operation_can_be_described():
    described = [
        control_module.describe_operation(store_client.class_of_part(part), name)
        for part, names in control_module.OFFERED.items()
        for name in names
    ]
    assert len({one.name for one in described}) == len(described) > 15
    for one in described:  # what it takes and gives can be read from what a socket brings
        msgspec.json.Decoder(one.parameters)
        msgspec.json.Decoder(one.returns)


async def test_the_owner_says_how_it_is(store: SessionStore, home: Path, fake_clock: FakeClock):
    await store.get_or_create_session(dm_source("1"))
    fake_clock.step(seconds=90)
    async with connect(home, QUICK) as client:
        status = await client.owner()
    assert status == await store.control.status()
    assert status is not None
    assert (status.lanes, status.epoch, status.uptime_seconds, status.draining) == (1, 1, 90, False)
    assert status.database == str(home / "sessions.db")


async def test_without_an_owner_the_client_is_one_for_a_moment(home: Path):
    async with open_store(home) as store:
        key = (await store.get_or_create_session(dm_source("1"))).session_key
    async with connect(home, QUICK) as client:
        assert await client.owner() is None
        new = await client.do("reset_session", session_key=key)
        assert await client.get_session(key) == new
        with pytest.raises(SessionNotFoundError):
            await client.do("switch_session", session_key=key, target_session_id="gone", scope=OPERATOR)
        async with open_store(home) as store:  # nobody holds the lock between two operations
            assert await store.get_session(key) == new
            assert (await client.do("reset_session", session_key=key)) == await store.get_session(key)


async def test_an_owner_that_is_just_opening_is_waited_for(home: Path, fake_clock: FakeClock):
    async with open_store(home) as store:
        key = (await store.get_or_create_session(dm_source("1"))).session_key
    async with connect(home, QUICK) as client:
        async with own_home(home, fake_clock):
            acting = asyncio.create_task(client.do("reset_session", session_key=key))
            await asyncio.sleep(0.05)
            assert not acting.done()
        assert (await acting).session_key == key
        async with own_home(home, fake_clock):
            with pytest.raises(StoreBusyError):
                await client.do("reset_session", session_key=key, seconds=0)


async def test_several_clients_act_at_once(store: SessionStore, home: Path):
    keys = [(await store.get_or_create_session(dm_source(str(n)))).session_key for n in range(20)]
    async with connect(home, QUICK) as client:
        new = await asyncio.gather(*(client.do("reset_session", session_key=key) for key in keys))
        assert [one.session_key for one in new] == keys
        assert [await store.get_session(key) for key in keys] == new


async def test_a_client_that_is_cancelled_leaves_nothing_behind(store: SessionStore, home: Path):
    entry = await store.get_or_create_session(dm_source("1"))
    async with connect(home, QUICK) as client:
        for steps in range(25):
            acting = asyncio.create_task(client.do("explain", session_key=entry.session_key))
            for _ in range(steps):
                await asyncio.sleep(0)
            acting.cancel()
            await asyncio.wait({acting})
        assert await client.do("get_session", session_key=entry.session_key) == entry


async def test_an_operation_that_takes_too_long_is_given_up(
    store: SessionStore, home: Path, monkeypatch: pytest.MonkeyPatch
):
    async def forever(_self: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(control_module.Control, "drain", forever)
    async with connect(home, QUICK) as client:
        with pytest.raises(ControlError, match=r"not done within 0.05 s") as late:
            await client.do("drain", seconds=0.05)
        assert late.value.may_have_happened
        assert await client.do("flush") is None


async def test_a_mistake_of_ours_is_reported_and_the_store_goes_on(
    store: SessionStore, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def broken(_self: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(control_module.Control, "drain", broken)
    async with connect(home, QUICK) as client:
        with pytest.raises(ControlError, match="nobody foresaw"):
            await client.do("drain")
        assert "control_failed" in {vars(record).get("action") for record in caplog.records}
        assert await client.do("flush") is None


async def test_an_answer_that_is_too_large_is_an_error(
    store: SessionStore, home: Path, monkeypatch: pytest.MonkeyPatch
):
    async def chatty(_self: object) -> str:
        return "x" * (MAX_ANSWER_BYTES + 1)

    monkeypatch.setattr(control_module.Control, "drain", chatty)
    async with connect(home, QUICK) as client:
        with pytest.raises(ControlError, match="has a result of 4,194,307 bytes, more than the") as refused:
            await client.do("drain")
        assert refused.value.may_have_happened


async def test_a_request_under_way_is_answered_before_the_store_closes(
    home: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_self: object) -> None:
        begun.set()
        await go_on.wait()

    monkeypatch.setattr(control_module.Control, "drain", slow)
    store = open_store(home, clock=fake_clock)
    await store.__aenter__()
    async with connect(home, QUICK) as client:
        acting = asyncio.create_task(client.do("drain"))
        await begun.wait()
        closing = asyncio.create_task(store.__aexit__(None, None, None))
        await asyncio.sleep(0.01)
        assert not closing.done()
        go_on.set()
        assert await acting is None
        await closing
    assert not (home / "sessions.sock").exists()


async def test_reading_writes_nothing(store: SessionStore, home: Path):
    await store.get_or_create_session(dm_source("1"))
    async with SessionDB.open_reader(home / "sessions.db") as db:
        for attempt in (db.write(lambda: meta.set_fact("a", 1)), db.change(None)):  # type: ignore[arg-type]
            with pytest.raises(StorageError, match="opened for reading"):
                await attempt
        async with db.view() as view:
            assert await view.read(lambda: meta.get_number("epoch")) == 1


async def test_a_store_that_is_not_there_is_not_made(tmp_path: Path):
    with pytest.raises(StorageUnavailableError):
        async with connect(tmp_path / "nowhere"):
            pass
    assert list(tmp_path.iterdir()) == []


async def test_an_empty_file_is_no_store_yet(tmp_path: Path):
    (tmp_path / "sessions.db").touch()
    with pytest.raises(StorageUnavailableError, match="no store here yet"):
        async with connect(tmp_path):
            pass


async def test_a_store_without_a_socket_still_works(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "not here")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    async with open_store(home) as store:
        assert "not here" in str(store.control.unavailable)
        assert "control_unavailable" in {vars(record).get("action") for record in caplog.records}
        assert await store.get_or_create_session(dm_source("1"))
        async with connect(home, QUICK) as client:
            assert await client.owner() is None


def test_errors_for_busy_lanes_can_travel():
    assert SessionBusyError("lane", "session").session_key == "lane"


async def said(store: SessionStore, text: str) -> str:
    entry = await store.get_or_create_session(dm_source("1"))
    await store.db.append_message(entry.session_id, "user", text)
    return entry.session_id


async def test_a_client_searches_by_the_index_of_the_owner(store: SessionStore, home: Path):
    session_id = await said(store, "a wonderful world")
    await store.db.catch_up_search_index()
    await said(store, "another wonderful thing, not in the index yet")
    async with connect(home, QUICK) as client:
        found = await client.db.search_messages("wonderful", scope=OPERATOR)
        assert [hit.session_id for hit in found.hits] == [session_id] * 2
        await client.db.catch_up_search_index()
        await store.db.rebuild_search_index()
        assert len((await client.db.search_messages("wonderful", scope=OPERATOR)).hits) == 2
        for refused in (client.db.rebuild_search_index, client.db.check_search_index):
            with pytest.raises(StorageError, match="opened for reading"):
                await refused()


async def test_without_an_index_a_client_looks_at_the_messages(store: SessionStore, home: Path):
    await said(store, "a wonderful world")
    await store.db.catch_up_search_index()
    for path in home.glob("search.db*"):
        path.unlink()
    async with connect(home, QUICK) as client:
        assert len((await client.db.search_messages("wonderful", scope=OPERATOR)).hits) == 1
        assert client.db.search_index.state == "unavailable"
    assert not (home / "search.db").exists()
