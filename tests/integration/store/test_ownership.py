"""One process owns a home; it lets go however it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway_sessions import SessionSource, SessionStore, StoreBusyError
from tests.programs import PATIENCE, Program, WarmPython

SOURCE = SessionSource(platform="telegram", chat_id="1", user_id="1")
OWNER = """
    import asyncio, sys
    from gateway_sessions import SessionSource, SessionStore

    async def main():
        async with SessionStore.open(sys.argv[1]) as store:
            source = SessionSource(platform="telegram", chat_id="1", user_id="1")
            print((await store.get_or_create_session(source)).session_id, flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())
"""


@pytest.fixture
def another_owner(warm_python: WarmPython, tmp_path: Path) -> Iterator[tuple[Program, str]]:
    """A process that has the store open, and the session that it was given."""
    with warm_python.start(OWNER, tmp_path) as owner:
        yield owner, owner.stdout.readline().strip()


async def test_a_second_process_is_told_who_owns_the_store(
    tmp_path: Path, another_owner: tuple[Program, str]
):
    owner, _ = another_owner
    with pytest.raises(StoreBusyError, match=f"process {owner.pid} ") as busy:
        async with SessionStore.open(tmp_path):
            pass
    assert str(tmp_path) in str(busy.value)
    assert "wait for it" in str(busy.value)


async def test_whoever_waits_takes_over_when_the_owner_ends(
    tmp_path: Path, another_owner: tuple[Program, str]
):
    owner, session_id = another_owner
    store = SessionStore.open(tmp_path, wait=10)
    opening = asyncio.create_task(store.__aenter__())
    await asyncio.sleep(0)
    owner.stdin.close()
    await opening
    assert (await store.get_or_create_session(SOURCE)).session_id == session_id
    assert store.started.clean
    await store.__aexit__(None, None, None)


async def test_whoever_waits_takes_over_when_the_owner_is_killed(
    tmp_path: Path, another_owner: tuple[Program, str]
):
    owner, session_id = another_owner
    store = SessionStore.open(tmp_path, wait=10)
    opening = asyncio.create_task(store.__aenter__())
    await asyncio.sleep(0)
    owner.send_signal(signal.SIGKILL)
    await opening
    assert (await store.get_or_create_session(SOURCE)).session_id == session_id
    assert not store.started.clean
    await store.__aexit__(None, None, None)


async def test_a_second_store_in_the_same_process_is_refused(tmp_path: Path):
    async with SessionStore.open(tmp_path) as first:
        with pytest.raises(StoreBusyError, match=f"process {os.getpid()} "):
            async with SessionStore.open(tmp_path):
                pass
        with pytest.raises(StoreBusyError):
            async with SessionStore.open(tmp_path / "." / ".." / tmp_path.name):
                pass
        assert await first.get_or_create_session(SOURCE)
    async with SessionStore.open(tmp_path) as again:
        assert await again.peek_session_id((await again.get_or_create_session(SOURCE)).session_key)


async def test_a_refused_opener_leaves_the_owner_its_note(tmp_path: Path):
    async with SessionStore.open(tmp_path):
        note = (tmp_path / "sessions.owner.json").read_bytes()
        with pytest.raises(StoreBusyError):
            async with SessionStore.open(tmp_path):
                pass
        assert (tmp_path / "sessions.owner.json").read_bytes() == note
        assert json.loads(note)["pid"] == os.getpid()


async def test_a_note_that_cannot_be_read_does_not_hide_that_the_store_is_owned(tmp_path: Path):
    async with SessionStore.open(tmp_path):
        (tmp_path / "sessions.owner.json").write_text("[")
        with pytest.raises(StoreBusyError, match="another process"):
            async with SessionStore.open(tmp_path):
                pass


FORGETFUL = """
    import asyncio, sys
    from gateway_sessions import SessionSource, SessionStore

    async def main():
        store = SessionStore.open(sys.argv[1])
        await store.__aenter__()
        await store.get_or_create_session(SessionSource(platform="telegram", chat_id="1", user_id="1"))
        {ending}

    {run}
"""
RUNS = {
    "run": "asyncio.run(main())",
    "loop": "asyncio.new_event_loop().run_until_complete(main())",
}
ENDINGS = {
    "returns": ("return", 0),
    "raises": ("raise RuntimeError", 1),
    "exits": ("sys.exit(3)", 3),
}


@pytest.mark.timeout(PATIENCE)
async def test_a_process_that_forgets_to_close_the_store_ends_all_the_same(tmp_path: Path):
    forgetful = {
        tmp_path / f"{run}-{ending}": (
            FORGETFUL.format(ending=ENDINGS[ending][0], run=RUNS[run]),
            ENDINGS[ending][1],
        )
        for run, ending in (("run", "returns"), ("run", "exits"), ("loop", "raises"), ("loop", "returns"))
    }
    started = {
        home: subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(text), str(home)], stderr=subprocess.PIPE
        )
        for home, (text, _) in forgetful.items()
    }
    for home, process in started.items():
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == forgetful[home][1], said
        async with SessionStore.open(home) as store:
            assert await store.has_any_sessions()


INSIDE = """
    import asyncio, sys
    from gateway_sessions import SessionStore

    async def main():
        async with SessionStore.open(sys.argv[1]):
            {ending}

    asyncio.run(main())
"""


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_process_that_ends_inside_the_block_closes_the_store(
    warm_python: WarmPython, tmp_path: Path, ending: str
):
    statement, code = ENDINGS[ending]
    ended = warm_python.run(INSIDE.format(ending=statement), tmp_path)
    assert ended.returncode == code, ended.stderr
    assert (tmp_path / ".clean_shutdown").exists()
