import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions._process.streams import accept_connection


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        listener.setblocking(False)
        yield listener


def come_in(listener: socket.socket) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.connect(listener.getsockname())
    return client


async def test_who_comes_is_let_in(listener: socket.socket):
    waiting = asyncio.create_task(accept_connection(listener))
    await asyncio.sleep(0)
    with come_in(listener) as client, await waiting as connection:
        client.sendall(b"hello")
        assert await asyncio.get_running_loop().sock_recv(connection, 5) == b"hello"


async def test_who_has_gone_before_being_let_in_is_not_waited_for(listener: socket.socket):
    """Another process that shares the socket may be quicker."""
    came: list[Any] = [BlockingIOError(), (socket.socket(), "")]

    class Shared:
        def fileno(self) -> int:
            return listener.fileno()

        def accept(self) -> Any:
            one = came.pop(0)
            if isinstance(one, Exception):
                raise one
            return one

    with come_in(listener):
        shared: Any = Shared()
        (await accept_connection(shared)).close()
    assert not came


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_a_wait_that_is_cancelled_just_as_somebody_comes_says_nothing_and_loses_nobody(
    listener: socket.socket, turns: int
):
    """A control server that closed as a client came printed a traceback, and dropped the client."""
    loop = asyncio.get_running_loop()
    said: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: said.append(context))
    waiting = asyncio.create_task(accept_connection(listener))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with come_in(listener) as client:

        def cancel(left: int) -> None:
            if left:
                loop.call_soon(cancel, left - 1)
            else:
                waiting.cancel()

        cancel(turns)
        done, _ = await asyncio.wait([waiting])
        connection = await accept_connection(listener) if waiting.cancelled() else done.pop().result()
        with connection:
            client.sendall(b"hello")
            assert await loop.sock_recv(connection, 5) == b"hello"
    assert said == []
