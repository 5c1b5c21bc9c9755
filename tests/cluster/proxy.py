"""A way to a server that breaks when it hurts most: it has a COMMIT, and nobody hears what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Passes bytes on between many clients and one server."""

    def __init__(self, host: str, port: int, commit: bytes, *, own_port: int = 0) -> None:
        self._server = (host, port)
        self._commit = commit
        self._links: set[asyncio.Task[None]] = set()
        self.port = own_port
        self.to_cut = 0
        """How many of the next commits nobody will hear about."""
        self.cut = 0
        self.flows = asyncio.Event()
        """Cleared, nothing comes through any more, and nobody is told."""
        self.flows.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = listening.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listening.close()
            for link in self._links:
                link.cancel()
            await asyncio.gather(*self._links, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        task.add_done_callback(self._links.discard)
        try:
            with suppress(OSError):
                up_reader, up_writer = await asyncio.open_connection(*self._server)
                try:
                    await self._link(reader, writer, up_reader, up_writer)
                finally:
                    up_writer.close()
        finally:
            writer.close()

    async def _link(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        down = asyncio.create_task(self._pass_on(up_reader, writer))
        try:
            while sent := await reader.read(1 << 16):
                cut = self.to_cut > 0 and self._commit in sent
                if cut:
                    self.to_cut -= 1
                    self.cut += 1
                    down.cancel()
                await self.flows.wait()
                up_writer.write(sent)
                await up_writer.drain()
                if cut:
                    await asyncio.sleep(0.1)  # the server carries it out
                    return
                if down.done():
                    return
        finally:
            down.cancel()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while got := await reader.read(1 << 16):
                await self.flows.wait()
                writer.write(got)
                await writer.drain()
        writer.close()  # also for a server that was killed, which resets its connections
