import asyncio
import errno
import os
import random
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions._process.streams import accept_connection
from gateway_sessions.core.control_protocol import (
    PROTOCOL,
    ControlAnswer,
    Greeting,
    decode,
    encode,
    encode_frame,
)
from gateway_sessions.errors import ControlError, UnsupportedStorageError
from gateway_sessions.storage.control import client
from gateway_sessions.storage.control import server as control_server
from gateway_sessions.storage.control import socket_address as control_address
from gateway_sessions.storage.control.client import ask_to_drain, connect_to_owner
from gateway_sessions.storage.control.server import ControlServer
from gateway_sessions.storage.control.socket_address import find_address, prepare_address

GREETING = Greeting(protocol=PROTOCOL, program="1", schema=2, pid=3, database="/there/sessions.db")


async def echo(name: str, given: msgspec.Raw) -> object:
    return [name, decode(given, Any)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


class Owner(Resource):
    """Owns nothing, but listens."""

    def __init__(self, home: Path, carry_out: Any = echo) -> None:
        super().__init__("owner")
        self.server = ControlServer(home, GREETING, carry_out)

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        await self.server.start(tasks, cleanup)


@pytest.fixture
async def server(home: Path) -> AsyncIterator[ControlServer]:
    async with Owner(home) as owner:
        yield owner.server


async def works(home: Path) -> bool:
    async with connect_to_owner(home) as owner:
        assert owner is not None
        return bool(await owner.request("echo", {"a": 1}, list[Any], seconds=5) == ["echo", {"a": 1}])


@contextmanager
def raw_client(home: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(home / "sessions.sock"))
        yield client


async def closed_by_the_server(client: socket.socket) -> bool:
    def read_all() -> bool:
        try:
            while client.recv(1 << 16):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    return await asyncio.to_thread(read_all)


async def test_whoever_connects_learns_who_owns_the_store(server: ControlServer, home: Path):
    async with connect_to_owner(home) as owner:
        assert owner is not None
        assert owner.greeting == GREETING
        assert await owner.request("one", {}, list[Any], seconds=1) == ["one", {}]
        assert await owner.request("two", {"x": [1]}, list[Any], seconds=1) == ["two", {"x": [1]}]


async def test_the_socket_is_for_its_owner_only(server: ControlServer, home: Path):
    assert (home / "sessions.sock").stat().st_mode & 0o777 == 0o600


async def test_a_program_of_another_user_is_sent_away(
    server: ControlServer, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(control_server, "is_trusted_peer", lambda _: False)
    with pytest.raises(ControlError, match="closed the connection") as refused:
        await works(home)
    assert not refused.value.may_have_happened


async def test_a_server_of_another_user_is_not_talked_to(
    server: ControlServer, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client, "is_trusted_peer", lambda *_, **__: False)
    with pytest.raises(ControlError, match="program of another user"):
        await works(home)


def test_only_this_user_and_root_may_talk(monkeypatch: pytest.MonkeyPatch):
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert control_address.is_trusted_peer(one)
        monkeypatch.setattr(control_address, "_peer_user", lambda _: 0)
        assert control_address.is_trusted_peer(one)
        monkeypatch.setattr(control_address, "_peer_user", lambda _: 54321)
        assert not control_address.is_trusted_peer(one)
        assert control_address.is_trusted_peer(one, trusted=54321)


@pytest.mark.parametrize(
    "said",
    [
        b"\xff\xff\xff\xff",
        b"\0\0\0\x04null",
        b"GET / HTTP/1.1\r\n\r\n",
        encode_frame({"do": "x"}, 1000),
        encode_frame("[" * 100_000, 1 << 20),
    ],
    ids=["huge", "null", "http", "incomplete", "no request"],
)
async def test_who_does_not_speak_the_protocol_is_told_and_sent_away(
    server: ControlServer, home: Path, said: bytes
):
    with raw_client(home) as client:
        client.sendall(said)
        received = await asyncio.to_thread(_everything, client)
    answer = decode(received[received.index(b'{"failure"') :], ControlAnswer)
    assert answer.failure is not None
    assert answer.failure.kind == "InvalidInputError"
    assert await works(home)


def _everything(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(1 << 16):
        received += data
    return received


async def test_random_bytes_harm_nobody(server: ControlServer, home: Path):
    chance = random.Random(11)
    for _ in range(60):
        with raw_client(home) as client:
            client.sendall(chance.randbytes(chance.randrange(1, 300)))
    assert await works(home)


async def test_half_a_frame_is_waited_for_only_so_long(
    server: ControlServer, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(control_server, "FRAME_SECONDS", 0.05)
    with raw_client(home) as client:
        client.sendall(b"\0\0\0\x09{")
        assert await closed_by_the_server(client)
    assert await works(home)


async def test_silence_is_listened_to_only_so_long(
    server: ControlServer, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(control_server, "IDLE_SECONDS", 0.05)
    with raw_client(home) as client:
        assert await closed_by_the_server(client)


async def test_who_does_not_read_is_waited_for_only_so_long(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(control_server, "FRAME_SECONDS", 0.1)

    async def much(_name: str, _given: msgspec.Raw) -> object:
        return "x" * 3_000_000

    async with Owner(home, much):
        with raw_client(home) as client:
            client.sendall(encode_frame({"do": "x", "seconds": 1}, 1000))
            await asyncio.sleep(0.3)
            assert await closed_by_the_server(client)


async def test_a_thousand_connections_keep_nobody_out(server: ControlServer, home: Path):
    async with AsyncExitStack() as crowd:
        loop = asyncio.get_running_loop()
        for number in range(1000):
            client = crowd.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            while True:
                try:
                    await loop.sock_connect(client, str(home / "sessions.sock"))
                except BlockingIOError:
                    await asyncio.sleep(0)
                    continue
                break
            if number % 200 == 0:
                assert await works(home)
        assert await works(home)
        assert server._connected <= control_server.MAX_CONNECTIONS  # noqa: SLF001 -- the bound that is promised


async def test_when_all_are_busy_a_newcomer_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(control_server, "MAX_CONNECTIONS", 1)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_name: str, _given: msgspec.Raw) -> object:
        begun.set()
        return await go_on.wait()

    async with Owner(home, slow):

        async def first() -> None:
            async with connect_to_owner(home) as owner:
                assert owner is not None
                assert await owner.request("x", {}, bool, seconds=5)

        busy = asyncio.create_task(first())
        await begun.wait()
        with pytest.raises(ControlError):
            await works(home)
        go_on.set()
        await busy


async def test_a_slow_request_holds_nobody_up(home: Path):
    async def slow(name: str, given: msgspec.Raw) -> object:
        if name == "slow":
            await asyncio.Event().wait()
        return await echo(name, given)

    async with Owner(home, slow):
        with raw_client(home) as client:
            client.sendall(encode_frame({"do": "slow", "seconds": 100}, 1000))
            assert await works(home)


async def test_after_the_end_has_begun_requests_are_refused(server: ControlServer, home: Path):
    await server.finish()
    async with connect_to_owner(home) as owner:
        assert owner is not None
        with pytest.raises(ControlError, match="being closed") as closing:
            await owner.request("x", {}, Any, seconds=1)
        assert closing.value.passing
        assert not closing.value.may_have_happened


async def test_a_process_without_free_files_lets_clients_in_later(
    server: ControlServer, home: Path, monkeypatch: pytest.MonkeyPatch
):
    failures = [OSError(errno.EMFILE, "too many")] * 2

    async def failing(listener: socket.socket) -> socket.socket:
        if failures:
            raise failures.pop()
        return await accept_connection(listener)

    monkeypatch.setattr(control_server, "accept_connection", failing)
    assert await works(home)
    assert await works(home)
    assert not failures


async def test_the_socket_of_a_killed_owner_is_replaced(home: Path):
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(home / "sessions.sock"))
    async with connect_to_owner(home) as owner:
        assert owner is None
    async with Owner(home, echo):
        assert await works(home)
    assert not (home / "sessions.sock").exists()


def test_what_is_no_socket_is_not_taken_away(home: Path):
    (home / "sessions.sock").write_text("mine")
    with pytest.raises(UnsupportedStorageError, match="in the way"):
        prepare_address(home)
    assert (home / "sessions.sock").read_text() == "mine"


async def test_a_home_with_a_long_path_has_its_socket_elsewhere(tmp_path: Path, private: Path):
    home = tmp_path / ("long" * 30)
    home.mkdir()
    async with Owner(home, echo):
        place = await asyncio.to_thread(find_address, home)
        assert place is not None
        assert place.parent == private
        assert place.stat().st_mode & 0o777 == 0o600
        async with connect_to_owner(home) as owner:
            assert owner is not None
    assert await asyncio.to_thread(find_address, home) is None
    assert list(home.iterdir()) == []
    assert list(private.iterdir()) == []


def test_a_directory_that_others_can_enter_holds_no_socket(tmp_path: Path, private: Path):
    private.mkdir(mode=0o755, parents=True)
    private.chmod(0o755)
    home = tmp_path / ("long" * 30)
    home.mkdir()
    with pytest.raises(UnsupportedStorageError, match="no private directory"):
        prepare_address(home)


@pytest.mark.parametrize("runtime", [None, "", "nowhere"])
def test_a_user_without_a_runtime_directory_has_one_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str | None
):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if runtime is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime and str(tmp_path / runtime))
    home = tmp_path / ("long" * 30)
    home.mkdir()
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        place = prepare_address(home)
        assert place.parent == Path(directory) / f"gateway-sessions-{os.geteuid()}"
        assert place.parent.stat().st_mode & 0o777 == 0o700


async def test_where_there_are_no_such_sockets_that_is_said(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(control_address, "HAS_SOCKETS", False)
    monkeypatch.setattr(control_server, "HAS_SOCKETS", False)
    with pytest.raises(UnsupportedStorageError, match="on this platform"):
        async with Owner(home):
            pass
    assert find_address(home) is None


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path for the sockets of homes with long ones."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        yield Path(directory) / "gateway-sessions"


class FakeOwner:
    """Listens, and says what it was given to say."""

    def __init__(self, home: Path, says: bytes, *, waits: bool = False) -> None:
        self._path, self._says, self._waits = home / "sessions.sock", says, waits

    async def __aenter__(self) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(self._says)
            if self._says.count(b"\0\0\0") > 1:
                await reader.read(1)
            if self._waits:
                await reader.read()
            writer.close()

        self._server = await asyncio.start_unix_server(talk, self._path)

    async def __aexit__(self, *_: object) -> None:
        self._server.close()


def greeting(**members: object) -> bytes:
    return encode_frame(msgspec.structs.replace(GREETING, **members), 1000)


@pytest.mark.parametrize(
    ("says", "problem", "happened"),
    [
        (b"", "closed the connection without an answer", False),
        (b"HTTP/1.1 400 Bad Request\r\n", "sends what is no answer", False),
        (encode_frame([1], 100), "not a Greeting as expected", True),
        (greeting(protocol=99, program="9.9"), r"version 9.9 .* protocol 99; this program speaks", False),
        (greeting(), "closed the connection", None),
        (greeting() + encode_frame([1], 100), "not a Answer as expected", True),
        (
            greeting() + encode_frame(ControlAnswer(result=msgspec.Raw(b'"x"')), 100),
            "Expected `list`|not a list",
            True,
        ),
    ],
)
async def test_an_owner_that_makes_no_sense_is_told_apart(
    home: Path, says: bytes, problem: str, happened: bool | None
):
    async with FakeOwner(home, says):
        with pytest.raises(ControlError, match=problem) as error:
            await works(home)
    assert happened is None or error.value.may_have_happened is happened


async def test_an_owner_that_does_not_answer_is_not_waited_for_without_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(client, "GREETING_SECONDS", 0.05)
    async with FakeOwner(home, b"", waits=True):
        with pytest.raises(ControlError, match=r"did not answer within 0.05 s"):
            await works(home)
        assert await ask_to_drain(home, seconds=0.01)
        assert await ask_to_drain(home, seconds=1)


async def test_nobody_can_be_asked_where_nobody_listens(home: Path):
    assert not await ask_to_drain(home, seconds=1)


def test_the_pieces_of_an_answer_fit():
    assert decode(encode(ControlAnswer()), ControlAnswer) == ControlAnswer()
