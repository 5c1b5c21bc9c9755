"""A database server of one's own, which can be stopped without a word and started again."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg

from gateway_sessions.config import Provider

SUPERUSER = "postgres"
START_SECONDS = 60.0
OTHERS = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


class Server(ABC):
    """One server, in a directory that is gone afterwards."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    @abstractmethod
    def address(self) -> str:
        """A database on it that a store may have."""

    @abstractmethod
    async def make(self) -> None: ...

    @abstractmethod
    async def start(self) -> None:
        """Until it answers."""

    @abstractmethod
    async def stop(self) -> None:
        """At once, whatever it is doing."""

    @abstractmethod
    async def processes(self) -> list[int]:
        """The ids of all that it consists of."""

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """It is there, keeps its connections, and does nothing."""
        processes = await self.processes()
        try:
            for one in processes:
                os.kill(one, signal.SIGSTOP)
            yield
        finally:
            for one in processes:
                os.kill(one, signal.SIGCONT)


class PostgresServer(Server):
    def __init__(self, home: Path, programs: Path) -> None:
        super().__init__(home)
        self._programs = programs

    @property
    def address(self) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/postgres"

    async def make(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.home, SUPERUSER)
        await self._run("initdb", "-D", self._data, "-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--no-sync")

    async def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.home}"
        await self._run("pg_ctl", "-D", self._data, "-l", self.home / "log", "-o", options, "-w", "start")

    async def stop(self) -> None:
        await self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    async def processes(self) -> list[int]:
        connection = await asyncpg.connect(self.address)
        try:
            found = await connection.fetch(OTHERS)
        finally:
            await connection.close()
        first = (self._data / "postmaster.pid").read_text().splitlines()[0]
        # The first one last: it looks after the others.
        return [*(row["pid"] for row in found), int(first)]

    @property
    def _data(self) -> Path:
        return self.home / "data"

    async def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        if os.geteuid() == 0:  # the server refuses to be root
            command = ["runuser", "-u", SUPERUSER, "--", *command]
        await _succeeds(command)


class MySQLServer(Server):
    """It belongs to no event loop: tests that follow each other may share it."""

    _process: subprocess.Popen[bytes] | None = None

    def __init__(self, home: Path, program: str) -> None:
        super().__init__(home)
        self._program = program

    @property
    def address(self) -> str:
        return self.address_of("store")

    def address_of(self, database: str) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{database}"

    async def make(self) -> None:
        await _succeeds([self._program, *self._usual, "--initialize-insecure"])

    async def start(self) -> None:
        where = (f"--port={self.port}", f"--socket={self.home}/socket", "--bind-address=127.0.0.1")
        first = self.home / "first.sql"
        first.write_text("CREATE DATABASE IF NOT EXISTS store;\n")
        command = [self._program, *self._usual, *where, "--loose-mysqlx=OFF", f"--init-file={first}"]
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        async with asyncio.timeout(START_SECONDS):
            while not await self._answers():  # noqa: ASYNC110 -- only the server knows
                await asyncio.sleep(0.05)

    async def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            await asyncio.to_thread(process.wait)

    async def processes(self) -> list[int]:
        return [self._process.pid] if self._process is not None else []

    @property
    def _usual(self) -> tuple[str, ...]:
        return ("--no-defaults", f"--datadir={self.home}/data", f"--user={getpass.getuser()}")

    async def _answers(self) -> bool:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.close()
            return True
        return False


class MariaDBServer(MySQLServer):
    """The same of the other kind."""

    async def make(self) -> None:
        quick = ("--auth-root-authentication-method=normal", "--skip-test-db")
        await _succeeds(["mariadb-install-db", *self._usual, *quick])


async def _succeeds(command: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, cwd="/", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    if process.returncode:
        message = f"{command[0]} failed: {said.decode(errors='replace')}"
        raise RuntimeError(message)


def make_server(home: Path, provider: Provider) -> Server | None:
    """A server that will live there; None if this machine has no programs for it."""
    if provider is Provider.MYSQL:
        return _of_mysql(home)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    here = shutil.which("initdb")
    programs = found[-1].parent if found else Path(here).parent if here else None
    return None if programs is None else PostgresServer(home, programs)


def _of_mysql(home: Path) -> MySQLServer | None:
    program = os.environ.get("GATEWAY_SESSIONS_MYSQLD")
    if program is None and all(map(shutil.which, ("mariadbd", "mariadb-install-db"))):
        return MariaDBServer(home, str(shutil.which("mariadbd")))
    program = program or shutil.which("mysqld")
    return None if program is None else MySQLServer(home, program)


@asynccontextmanager
async def own_server(provider: Provider) -> AsyncIterator[Server]:
    home = Path(tempfile.mkdtemp(prefix="cluster-run-"))
    try:
        server = make_server(home, provider)
        if server is None:
            message = f"there are no programs of a {provider} server on this machine"
            raise RuntimeError(message)
        await server.make()
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
