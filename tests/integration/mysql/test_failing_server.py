"""A MariaDB server of our own, which may be killed, and may stop to be the one to write to."""

import asyncio
import getpass
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.storage.drivers.mysql_link import Link
from tests.mysql import connected

pytestmark = pytest.mark.timeout(120)

WRITERS = 6
ROLE = "gateway"
"""May not write to a server that is read-only, as an administrator may."""


class Server:
    """One that belongs to the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with socket.socket() as some:
            some.bind(("127.0.0.1", 0))
            self.port: int = some.getsockname()[1]
        self.admin = f"mysql://root@127.0.0.1:{self.port}/mysql"
        self.process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        program = str(shutil.which("mariadb-install-db"))
        self._run(program, "--auth-root-authentication-method=normal", "--skip-test-db").wait()

    def start(self) -> None:
        where = (f"--port={self.port}", f"--socket={self.home}/socket", "--bind-address=127.0.0.1")
        self.process = self._run(str(shutil.which("mariadbd")), *where)

    def end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    async def answers(self) -> None:
        async with asyncio.timeout(60):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    return
                await asyncio.sleep(0.1)

    def _run(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        usual = (program, "--no-defaults", f"--datadir={self.home}/data", f"--user={getpass.getuser()}")
        quiet = subprocess.DEVNULL
        return subprocess.Popen([*usual, *options], stdout=quiet, stderr=quiet)


@pytest.fixture(scope="module")
def made() -> Iterator[Server]:
    if shutil.which("mariadbd") is None or shutil.which("mariadb-install-db") is None:
        pytest.skip("no MariaDB server is installed on this machine")
    with tempfile.TemporaryDirectory() as home:  # the name of a socket must be short
        server = Server(Path(home))
        server.make()
        server.start()
        yield server
        server.end(signal.SIGTERM)


@pytest.fixture
async def address(made: Server) -> str:
    await made.answers()
    name = f"store_{secrets.token_hex(4)}"
    async with connected(made.admin) as admin:
        await admin.say(f"CREATE DATABASE {name}; GRANT ALL ON {name}.* TO {ROLE} IDENTIFIED BY 'x'")
    return f"mysql://{ROLE}:x@127.0.0.1:{made.port}/{name}"


class Writers:
    """They go on whatever happens, and know what was acknowledged."""

    def __init__(self, db: SessionDB) -> None:
        self.db = db
        self.acknowledged: set[str] = set()
        self.problems: list[BaseException] = []
        self.done = asyncio.Event()

    async def write(self, session_id: str, writer: int) -> None:
        number = 0
        while not self.done.is_set():
            text, number = f"{writer} {number}", number + 1
            try:
                await self.db.append_message(session_id, "user", text)
                self.acknowledged.add(text)
            except StorageUnavailableError as error:
                self.problems.append(error)
                await asyncio.sleep(0.1)

    async def go_on(self) -> None:
        """Until there is a good deal more."""
        enough = len(self.acknowledged) + 50
        async with asyncio.timeout(60):
            while len(self.acknowledged) < enough:  # noqa: ASYNC110 -- the server decides
                await asyncio.sleep(0.05)


async def test_a_server_that_is_killed_loses_nothing_it_acknowledged(
    made: Server, address: str, tmp_path: Path
):
    async with SessionDB.open(address, home=tmp_path) as db:
        names = [await db.create_session(f"s{number}", "cli") for number in range(2)]
        writers = Writers(db)
        async with asyncio.TaskGroup() as tasks:
            for number in range(WRITERS):
                tasks.create_task(writers.write(names[number % len(names)], number))
            for _ in range(2):
                await writers.go_on()
                made.end(signal.SIGKILL)
                made.start()
                await made.answers()
            await writers.go_on()
            writers.done.set()
        rows = [await db.get_messages(name) for name in names]
    found = [row.text for said in rows for row in said]
    assert writers.problems
    assert writers.acknowledged <= set(found)
    assert len(found) == len(set(found))
    assert all([row.seq for row in said] == list(range(1, len(said) + 1)) for said in rows)


async def test_a_server_that_became_read_only_is_told_and_left(made: Server, address: str, tmp_path: Path):
    async with connected(made.admin) as admin, SessionDB.open(address, home=tmp_path) as db:
        await db.create_session("s", "cli")
        await admin.say("SET GLOBAL read_only = 1")
        try:
            before = await connections_of(admin)
            with pytest.raises(StorageUnavailableError, match="1290"):
                await db.append_message("s", "user", "no")
            assert await db.get_messages("s") == []
            assert before - await connections_of(admin)
        finally:
            await admin.say("SET GLOBAL read_only = 0")
        await db.append_message("s", "user", "yes")
        assert [row.text for row in await db.get_messages("s")] == ["yes"]


async def connections_of(admin: Link) -> set[int]:
    asked = "SELECT id FROM information_schema.processlist WHERE user = ?"
    return {row[0] for row in await admin.fetch(asked, (ROLE,))}
