"""An erasure that is cut off anywhere is brought to its end when the store is opened again."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.storage.api import erasure
from gateway_sessions.storage.api.erasure import Eraser
from gateway_sessions.storage.engines.sqlite import engine
from gateway_sessions.testing import FakeClock
from tests.integration.transcripts.test_erasure import WORD, dm, opened, talk, traces
from tests.programs import WarmPython

PERSON = "main:telegram:user:4242424242"
STEPS = ("_erase_rows", "_back_up", "_rewrite_database", "vacuum", "finish_removals", "forget_removed")

CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from gateway_sessions import SessionDB
from gateway_sessions.storage.api.erasure import Eraser
from gateway_sessions.storage.engines.sqlite.engine import FileUpkeep
from gateway_sessions.storage.search.sqlite_index import SqliteSearchIndex
from gateway_sessions.testing import FakeClock
from tests.integration.transcripts.test_erasure import dm, opened, plant

async def main(home, step):
    clock = FakeClock()
    async with opened(home, clock) as store:
        await plant(store)
        async def die(*args, **kwargs):
            os.kill(os.getpid(), signal.SIGKILL)
        parts = (Eraser, FileUpkeep, SessionDB, SqliteSearchIndex)
        setattr(next(one for one in parts if hasattr(one, step)), step, die)
        await store.erase(dm())

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


async def wait_until_finished(db: SessionDB) -> None:
    while await db.unfinished_erasures():  # noqa: ASYNC110 -- another task finishes them
        await asyncio.sleep(0.01)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("step", STEPS)
async def test_a_killed_erasure_is_finished_by_the_next_owner(
    warm_python: WarmPython, tmp_path: Path, fake_clock: FakeClock, step: str
):
    home = tmp_path / "home"
    ended = await asyncio.to_thread(warm_python.run, CHILD, home, step)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    fake_clock.step(seconds=5)
    async with opened(home, fake_clock) as store:
        cut_off = [one.action for one in store.incidents]
        assert ("erasure_cut_off" in cut_off) == (step != "_back_up")
        await wait_until_finished(store.db)
        assert await asyncio.to_thread(traces, home) == {}
        assert await store.was_erased(dm(), fake_clock.now()) is False
    async with opened(home, fake_clock) as store:
        assert [one.action for one in store.incidents] == []


async def test_an_erasure_whose_caller_goes_away_is_finished_all_the_same(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    home, begun = tmp_path / "home", asyncio.Event()

    async def stand_still(_eraser: Eraser, *_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with opened(home, fake_clock) as store:
        await talk(store, dm(), WORD)
        with monkeypatch.context() as patch:
            patch.setattr(Eraser, "_erase_rows", stand_still)
            erasing = asyncio.create_task(store.erase(dm()))
            await begun.wait()
        erasing.cancel()
        await asyncio.wait({erasing})
        await wait_until_finished(store.db)
        assert store.incidents == ()
    assert await asyncio.to_thread(traces, home) == {}


async def test_who_came_back_since_keeps_what_they_said(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    home = tmp_path / "home"

    async def cut_off(_eraser: Eraser, _upkeep: object) -> bool:
        raise ConnectionAbortedError

    async with opened(home, fake_clock) as store:
        await talk(store, dm(), "before")
        with monkeypatch.context() as patch:
            patch.setattr(Eraser, "_rewrite_database", cut_off)
            with pytest.raises(ConnectionAbortedError):
                await store.db.erase(PERSON)
        fake_clock.step(seconds=1)
        back = await talk(store, dm(), "here I am again")
        assert await store.db.finish_erasures() == 1
        assert await store.db.finish_erasures() == 0
        assert await store.db.message_count(back) == 2
        assert (await store.get_or_create_session(dm())).session_id == back


async def test_a_copy_that_is_being_made_does_not_outlive_an_erasure(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    home, plain = tmp_path / "home", engine.back_up
    copied, go_on = threading.Event(), threading.Event()

    def slowly(path: Path, folder: Path, taken_at: object) -> Path:
        copy = plain(path, folder, taken_at)  # type: ignore[arg-type]
        if not copied.is_set():
            copied.set()
            go_on.wait(30)
            copy.write_bytes(WORD.encode())
        return copy

    async with opened(home, fake_clock) as store:
        await talk(store, dm(), WORD)
        monkeypatch.setattr(engine, "back_up", slowly)
        copying = asyncio.create_task(store.db.back_up())
        await asyncio.to_thread(copied.wait, 10)
        erasing = asyncio.create_task(store.erase(dm()))
        while (await store.db.erased_at(PERSON)) is None:  # noqa: ASYNC110 -- it stands at its second step
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        go_on.set()
        await asyncio.gather(copying, erasing)
    assert await asyncio.to_thread(traces, home) == {}


async def test_leftovers_of_copies_and_repairs_go_as_well(tmp_path: Path, fake_clock: FakeClock):
    home = tmp_path / "home"
    left = ["backups/sessions-20250101T000000Z.tmp", "sessions.db.rebuilt", "sessions.db.rebuilding"]
    async with opened(home, fake_clock) as store:
        await talk(store, dm(), "hello")
        (home / "backups").mkdir()
        for one in left:
            (home / one).write_text(WORD)
        receipt = await store.erase(dm())
        assert set(left) <= {str(Path(one).relative_to(home)) for one in receipt.removed}
    assert await asyncio.to_thread(traces, home) == {}


async def test_words_of_what_was_deleted_before_are_not_left_in_the_search_index(
    tmp_path: Path, fake_clock: FakeClock
):
    home = tmp_path / "home"
    async with opened(home, fake_clock) as store:
        await store.db.create_session("gone", "telegram", user_id="4242424242")
        await store.db.append_message("gone", "user", f"my {WORD}")
        await store.db.catch_up_search_index()
        await store.db.delete_session("gone")
        await store.db.catch_up_search_index()
        await store.erase(dm())
        assert await asyncio.to_thread(traces, home) == {}


def test_what_is_a_copy_is_found_by_name(tmp_path: Path):
    names = ("sessions.db.v1.bak", "sessions.db.rebuilt-journal", "backups/x", "quarantine/a/b")
    for one in (*names, "sessions.db", "sessions.db-wal", "config.yaml"):
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).touch()
    found = erasure.copies_of(tmp_path / "sessions.db")
    assert {os.fspath(one.relative_to(tmp_path)) for one in found} == set(names)
