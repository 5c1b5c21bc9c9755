"""Bots of the examples that listen for webhooks, as processes: started, killed, ended in order."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

BOTS = Path(__file__).parents[3] / "examples" / "bots"
PATIENCE = 60


def free_port() -> int:
    """Return a port that nobody listens at: a process that is started again must have the same one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@asynccontextmanager
async def listening_bot(
    name: str, folder: Path, port: int, environment: Mapping[str, str]
) -> AsyncIterator[subprocess.Popen[str]]:
    """Run a bot until the block ends; it listens when the block begins."""
    process = subprocess.Popen(
        [sys.executable, BOTS / name],
        cwd=folder,
        env={**os.environ, "PORT": str(port), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        with anyio.fail_after(PATIENCE):
            while not await asyncio.to_thread(_accepts, port):
                assert process.poll() is None, process.communicate()
                await anyio.sleep(0.05)
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
