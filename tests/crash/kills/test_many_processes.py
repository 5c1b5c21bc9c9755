"""Owners, clients, readers and the command line at one store, each a process; all are killed now and then.

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
from gateway_sessions.cli.exit_codes import Exit
from tests.programs import Program, WarmPython

KILLED = 0.3
"""How probably somebody is killed in a moment."""
PATIENCE = 30
Process = Callable[[str, Path, str, Path], AbstractContextManager[Program]]

COMMON = """
    import asyncio, json, sys
    from gateway_sessions import Scope, SessionSource, SessionStore, StoreBusyError
    from gateway_sessions.errors import ControlError, StorageUnavailableError
    from gateway_sessions.operator import connect

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


GSESS = """
    import random, subprocess

    chance = random.Random(name)
    page, n = [], 0
    while True:
        n += 1
        words = ["sessions", "list", "--json"]
        if page and n % 2:
            words = ["sessions", "rename", chance.choice(page)["session_id"], f"{name} {n}", "--json"]
        command = [sys.executable, "-m", "gateway_sessions", "--home", home, *words]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=chance.uniform(0.2, 5))
        except subprocess.TimeoutExpired:
            continue  # it was killed
        tell(code=ended.returncode, unavailable=ended.stderr)
        if ended.returncode == 0 and "list" in words:
            page = json.loads(ended.stdout)["results"]
        tell(**{"renamed" if "rename" in words else "listed": ended.returncode == 0})
"""
WORK = ("acted", "read", "listed", "renamed")
"""What somebody has to have done."""


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


class Others:
    """Clients and readers, of which any may be killed at any time; another one takes its place."""

    def __init__(self, started: ExitStack, process: Process, home: Path, chance: random.Random) -> None:
        self.logs: list[Path] = []
        self._start = lambda *what: started.enter_context(process(*what))
        self._home, self._chance = home, chance
        self._running: list[tuple[str, str, Program]] = []

    def add(self, kind: str, script: str) -> None:
        """Start one more."""
        log = self._home.with_name(f"{kind}-{len(self.logs)}.log")
        self.logs.append(log)
        self._running.append((kind, script, self._start(script, self._home, log.stem, log)))

    def let_work(self, seconds: float) -> None:
        """Kill one now and then."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, self._chance.uniform(0.05, 1)))
            if self._chance.random() < KILLED:
                kind, script, program = self._running.pop(self._chance.randrange(len(self._running)))
                program.kill()
                program.wait()
                self.add(kind, script)

    def let_work_until_all_is_done(self) -> None:
        """Wait until everything was done once, by whomever."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            facts = [fact for log in self.logs for fact in told(log)]
            if all(any(fact.get(what) for fact in facts) for what in WORK):
                return
            time.sleep(0.1)


def let_open(log: Path, chance: random.Random | None) -> None:
    """Wait until an owner has opened the store, or, by *chance*, until some moment before."""
    until = time.monotonic() + 20
    while not log.read_text().startswith("{") and time.monotonic() < until:
        if chance is not None and chance.random() < 0.02:
            return
        time.sleep(0.01)


def churn(
    process: Process, tmp_path: Path, *, seconds: float, lives: int, each: int
) -> tuple[set[object], list[Path]]:
    """Owners come and go, by kill or by request; what was acknowledged, and all logs."""
    home, chance = tmp_path / "home", random.Random(3)
    logs = [tmp_path / f"owner{number}.log" for number in range(lives)]
    with ExitStack() as started:
        others = Others(started, process, home, chance)
        for number, log in enumerate(logs):
            owner = started.enter_context(process(OWNER, home, f"owner{number}", log))
            let_open(log, chance if number else None)
            if number == 0:
                for kind, script in {"client": CLIENT, "reader": READER, "gsess": GSESS}.items():
                    for _ in range(1 if kind == "gsess" else each):
                        others.add(kind, script)
            others.let_work(chance.uniform(0.2, 1.8) * seconds / lives)
            if number == lives - 1:
                others.let_work_until_all_is_done()
            if number % 2 == 0:
                owner.kill()
                owner.wait()
    acknowledged = {fact["message"] for log in logs for fact in told(log) if "message" in fact}
    return acknowledged, [*logs, *others.logs]


async def check(process: Process, tmp_path: Path, *, seconds: float, lives: int, each: int) -> None:
    acknowledged, logs = await asyncio.to_thread(
        churn, process, tmp_path, seconds=seconds, lives=lives, each=each
    )
    facts = [fact for log in logs for fact in told(log)]
    assert acknowledged
    for what in WORK:
        assert [fact for fact in facts if fact.get(what)], f"nobody has {what}"
    for trouble in ("locked", "Traceback"):
        assert not [fact for fact in facts if trouble in str(fact.get("unavailable"))]
    codes = {fact["code"] for fact in facts if "code" in fact}
    assert codes <= {Exit.DONE, Exit.BUSY, Exit.NOT_FOUND}, [one for one in facts if one.get("code")]
    with closing(sqlite3.connect(tmp_path / "home" / "sessions.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stored = {row[0] for row in database.execute("SELECT message_id FROM messages")}
    assert acknowledged <= stored
    async with SessionStore.open(tmp_path / "home") as store:
        assert await store.list_sessions(scope=Scope.operator())


@pytest.mark.timeout(90)
async def test_owners_come_and_go_while_others_act_and_read(process: Process, tmp_path: Path):
    await check(process, tmp_path, seconds=1.5, lives=3, each=1)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_the_same_for_minutes(process: Process, tmp_path: Path):
    await check(process, tmp_path, seconds=150, lives=60, each=3)
