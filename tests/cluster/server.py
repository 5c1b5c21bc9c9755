"""A PostgreSQL server of one's own, which can be stopped without a word and started again."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

SUPERUSER = "postgres"


class Server:
    """One server, in a directory that is gone afterwards."""

    def __init__(self, home: Path, programs: Path) -> None:
        self._home = home
        self._programs = programs
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def address(self) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/postgres"

    async def make(self) -> None:
        await self._run("initdb", "-D", self._data, "-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--no-sync")

    async def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._home}"
        await self._run("pg_ctl", "-D", self._data, "-l", self._home / "log", "-o", options, "-w", "start")

    async def stop(self, mode: str = "immediate") -> None:
        await self._run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    @property
    def _data(self) -> Path:
        return self._home / "data"

    async def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        if os.geteuid() == 0:  # the server refuses to be root
            command = ["runuser", "-u", SUPERUSER, "--", *command]
        process = await asyncio.create_subprocess_exec(
            *command, cwd="/", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        _, said = await process.communicate()
        if process.returncode:
            message = f"{program} failed: {said.decode(errors='replace')}"
            raise RuntimeError(message)


def programs_of_server() -> Path | None:
    """Where the programs of a server are; None if there is none on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    here = shutil.which("initdb")
    return found[-1].parent if found else Path(here).parent if here else None


@asynccontextmanager
async def own_server() -> AsyncIterator[Server]:
    programs = programs_of_server()
    if programs is None:
        message = "there is no PostgreSQL server on this machine"
        raise RuntimeError(message)
    home = Path(tempfile.mkdtemp(prefix="cluster-run-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(home, SUPERUSER)
        server = Server(home, programs)
        await server.make()
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
