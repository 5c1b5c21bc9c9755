"""Owners that are killed and replaced, clients that act, and readers, all at one store, each a process.

Nothing acknowledged is lost, no lock error surfaces, and the database is whole at any time and afterwards.
"""

import asyncio
import json
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionStore
from tests.programs import Program, WarmPython

Process = Callable[[str, Path, str, Path], AbstractContextManager[Program]]

COMMON = """
    import asyncio, json, sys
    from gateway_sessions import (ControlError, Scope, SessionSource, SessionStore, StorageUnavailableError,
                                  StoreBusyError, connect)

    home, name = sys.argv[1:3]

    def tell(**facts):
        print(json.dumps(facts), flush=True)
"""
OWNER = """
    async def main():
        async with SessionStore.open(home, wait=30) as store:
            tell(owns=True)
            n = 0
            while not store.drain_requested.is_set():
                n += 1
                source = SessionSource(platform="irc", chat_id=str(n % 50))
                entry = await store.get_or_create_session(source)
                seq = await store.db.append_message(entry.session_id, "user", f"{name} {n}")
                tell(message=seq)

    asyncio.run(main())
"""
CLIENT = """
    async def main():
        n = 0
        while True:
            n += 1
            try:
                async with connect(home) as seat:
                    page = await seat.list_sessions(scope=Scope.operator(), limit=20)
                    if not page:
                        continue
                    key = page[n % len(page)].session_key
                    zone = ["Europe/Berlin", "Asia/Tokyo"][n % 2]
                    entry = await seat.do("set_zone", session_key=key, zone=zone, seconds=10)
                    tell(acted=entry is not None)
                    await asyncio.sleep(0.01)
            except ControlError:
                tell(lost=True)
            except (StorageUnavailableError, StoreBusyError) as error:
                tell(unavailable=str(error))
                await asyncio.sleep(0.05)

    asyncio.run(main())
"""
READER = """
    async def main():
        while True:
            async with connect(home) as seat:
                for _ in range(20):
                    page = await seat.db.list_sessions_rich(scope=Scope.operator(), limit=50)
                    for one in page[:3]:
                        await seat.db.get_messages(one.session_id)
                    tell(read=len(page))
                    await asyncio.sleep(0.01)

    asyncio.run(main())
"""


@pytest.fixture
def process(warm_python: WarmPython) -> Process:
    """Starts processes that write what they have to tell into a file."""

    @contextmanager
    def started(script: str, home: Path, name: str, log: Path) -> Iterator[Program]:
        with (
            log.open("wb") as out,
            warm_python.start(COMMON + script, home, name, output=out, stderr=out) as program,
        ):
            yield program

    return started


def told(log: Path) -> list[dict[str, object]]:
    """The facts in a log; a last line that was cut off by a kill does not count."""
    lines = log.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    assert all(line.startswith("{") for line in whole), "".join(whole)[-2000:]
    return [json.loads(line) for line in whole]


def churn(
    process: Process, tmp_path: Path, *, seconds: float, lives: int, each: int
) -> tuple[set[object], list[Path]]:
    """Owners come and go, by kill or by request; what was acknowledged, and all logs."""
    home, chance = tmp_path / "home", random.Random(3)
    logs = [tmp_path / f"owner{number}.log" for number in range(lives)]
    others = {f"client{n}": CLIENT for n in range(each)} | {f"reader{n}": READER for n in range(each)}
    with ExitStack() as started:
        for number, log in enumerate(logs):
            owner = started.enter_context(process(OWNER, home, f"owner{number}", log))
            until = time.monotonic() + 20
            while not log.read_text().startswith("{") and time.monotonic() < until:
                if number and chance.random() < 0.02:
                    break  # kill it while it opens
                time.sleep(0.01)
            if number == 0:
                for name, script in others.items():
                    started.enter_context(process(script, home, name, tmp_path / f"{name}.log"))
            time.sleep(seconds / lives)
            if number % 2 == 0:
                owner.kill()
                owner.wait()
    acknowledged = {fact["message"] for log in logs for fact in told(log) if "message" in fact}
    return acknowledged, [*logs, *(tmp_path / f"{name}.log" for name in others)]


async def check(process: Process, tmp_path: Path, *, seconds: float, lives: int, each: int) -> None:
    acknowledged, logs = await asyncio.to_thread(
        churn, process, tmp_path, seconds=seconds, lives=lives, each=each
    )
    facts = [fact for log in logs for fact in told(log)]
    assert acknowledged
    for what in ("acted", "read"):
        assert [fact for fact in facts if what in fact], f"nobody has {what}"
    assert not [fact for fact in facts if "locked" in str(fact.get("unavailable"))]
    with closing(sqlite3.connect(tmp_path / "home" / "sessions.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stored = {row[0] for row in database.execute("SELECT message_id FROM messages")}
    assert acknowledged <= stored
    async with SessionStore.open(tmp_path / "home") as store:
        assert await store.list_sessions(scope=Scope.operator())


async def test_owners_come_and_go_while_others_act_and_read(process: Process, tmp_path: Path):
    await check(process, tmp_path, seconds=1.5, lives=3, each=1)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_the_same_for_minutes(process: Process, tmp_path: Path):
    await check(process, tmp_path, seconds=150, lives=60, each=3)
