"""Commands that run for a while, and what they say."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from tests.programs import PATIENCE

GSESS = Path(sys.executable).with_name("gsess")


@asynccontextmanager
async def program(
    home: Path, *words: str, command: Sequence[str] = (str(GSESS),), **environ: str
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A command that runs within the block and is told to end behind it."""
    process = await asyncio.create_subprocess_exec(
        *(*command, "--home", str(home), *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environ, "COLUMNS": "200"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        with anyio.CancelScope(shield=True):
            await asyncio.wait_for(process.communicate(), PATIENCE)


async def read_until(stream: asyncio.StreamReader | None, text: str) -> str:
    """Read lines until one of them has that text; return all of them."""
    assert stream is not None
    lines = ""
    with anyio.fail_after(PATIENCE):
        while text not in lines:
            line = await stream.readline()
            assert line, f"it ended before it said {text!r}:\n{lines}"
            lines += line.decode()
    return lines
