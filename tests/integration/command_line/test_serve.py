"""A gateway as a service: it says when it is ready, answers signed messages, and ends without losing any."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import IO, Any

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.adapters._http import listening_socket
from gateway_sessions.adapters.webhook import Signer
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.demo_agent import answer
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.cli.served_gateway import ServedGateway
from gateway_sessions.cli.settings import Settings
from gateway_sessions.config import ServeConfig
from tests.integration.command_line.conftest import Gsess
from tests.programs import PATIENCE, Program, open_text, warm_python

SECRET = "a-secret-of-many-bytes"
WEBHOOK_AT = f"serve: {{webhook_port: %d, webhook_callback_url: 'http://x/', webhook_secrets: ['{SECRET}']}}"
GSESS = Path(sys.executable).with_name("gsess")
SLOW = """
import asyncio
from pathlib import Path

async def answer(turn):
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return turn.text.upper()
"""
URL = re.compile(r"http://[\d.:]+")


class Receiver:
    """Where replies are posted to."""

    def __init__(self) -> None:
        self.replies: Queue[str] = Queue()
        replies = self.replies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                signed = Signer([SECRET]).is_signed(
                    {name.lower(): value for name, value in self.headers.items()}, body, datetime.now(UTC)
                )
                message = json.loads(body)["message"] if signed else {"text": "not signed"}
                if not message.get("is_notice"):
                    replies.put(message["text"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/replies"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def next(self) -> str:
        return self.replies.get(timeout=PATIENCE)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Served:
    """A gateway that runs."""

    process: Program
    said: IO[str]
    """What it has said of itself, but for where it serves."""
    messages: str
    health: str
    signer: Signer = field(default_factory=lambda: Signer([SECRET]))

    def says(self, text: str) -> int:
        """Post a message; the status of the answer."""
        body = json.dumps({"source": {"chat_id": "context", "user_id": "ann"}, "text": text}).encode()
        headers = self.signer.headers(f"msg_{text}", body, datetime.now(UTC))
        return asked(f"{self.messages}/messages", body, headers)[0]

    def ready(self) -> tuple[int, dict[str, Any]]:
        return asked(f"{self.health}/readyz")

    def turns(self, code: int, **told: str) -> None:
        """Wait until it says that of itself."""
        end = time.monotonic() + PATIENCE
        while self.ready() != (code, told):
            assert time.monotonic() < end, self.ready()
            time.sleep(0.02)

    def ends(self) -> str:
        """Wait for its end; what it has said."""
        errors = self.said.read()
        assert self.process.wait() == Exit.DONE, errors
        return errors


def asked(url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """The status of an answer, and what is in it."""
    request = urllib.request.Request(url, body, headers or {})  # noqa: S310 -- on this machine
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 -- as above
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            content = error.read()
            return error.code, json.loads(content) if content.startswith(b"{") else content


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with closing(Receiver()) as receiver:
        yield receiver


@pytest.fixture
def place(tmp_path: Path, receiver: Receiver) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "config.yaml").write_text(
        f"serve: {{health_port: 0, webhook_port: 0, webhook_callback_url: '{receiver.url}',"
        f" webhook_secrets: ['{SECRET}']}}\n"
    )
    return tmp_path


@contextmanager
def serving(place: Path, *arguments: str) -> Generator[Served]:
    command = (GSESS, "--home", "home", "--config", "config.yaml", "serve", *arguments)
    reading, writing = os.pipe()
    with open_text(reading, "r") as said:
        with os.fdopen(writing, "wb") as theirs:
            started = warm_python().start(None, *command, folder=str(place), stderr=theirs)
        with started as process:
            process.stdin.close()
            told = next((line for line in said if line.startswith("Serving ")), "")
            messages, health = URL.findall(told)
            yield Served(process, said, messages, health)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_gets_ready_answers_and_ends(place: Path, receiver: Receiver, ending: signal.Signals):
    with serving(place) as served:
        served.turns(200, status="ready")
        assert asked(f"{served.health}/healthz") == (200, {"status": "alive"})
        assert served.says("hello") == 202
        assert receiver.next().startswith("You said: hello")
        served.process.send_signal(ending)
        errors = served.ends()
    assert f"INFO signal: asked to end signal={ending.name}" in errors
    assert "Ended: all turns have ended." in errors
    assert receiver.replies.empty()


def test_what_comes_while_it_ends_is_answered_by_the_next_one(place: Path, receiver: Receiver):
    with serving(place, "--agent", "slow:answer") as served:
        served.turns(200, status="ready")
        assert served.says("first") == 202
        assert served.says("second") == 202
        served.process.send_signal(signal.SIGTERM)
        served.turns(503, status="not ready", problem="it is ending")
        assert asked(f"{served.health}/healthz")[0] == 200
        assert served.says("third") == 202
        (place / "go").touch()
        served.ends()
    answered = [receiver.next()]
    with serving(place, "--agent", "slow:answer") as served:
        while sum(map(len, answered)) < len("FIRSTSECONDTHIRD"):
            answered.append(receiver.next())
        served.process.send_signal(signal.SIGTERM)
        served.ends()
    assert "".join("".join(answered).split()) == "FIRSTSECONDTHIRD"
    assert receiver.replies.empty()


@dataclass
class Notes(CommandContext):
    """Keeps what it is told to say."""

    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)


async def test_it_ends_as_quietly_while_it_begins():
    closed = []

    @asynccontextmanager
    async def slow() -> AsyncGenerator[SessionStore]:
        """A store that takes for ever to open."""
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
            raise AssertionError
            yield
        finally:
            closed.append(True)

    context = Notes(settings=Settings(), command="serve")
    await ServedGateway(context, ServeConfig(console=True)).run(slow(), agent=answer)
    assert (closed, context.notes) == ([True], ["Ended before it was ready."])
    asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


def test_a_console_can_be_served(place: Path):
    (place / "config.yaml").write_text("serve: {console: true}\n")
    command = [GSESS, "--home", "home", "--config", "config.yaml", "serve"]
    with subprocess.Popen(
        command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("hello there\n")
        process.stdin.flush()
        assert process.stdout.readline() == "You said: hello there\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Serving the console." in errors) == (Exit.DONE, True)


def test_who_asks_for_something_else_is_told_so(place: Path):
    with serving(place) as served:
        assert asked(f"{served.health}/metrics")[0] == 404
        assert asked(f"{served.health}/readyz", b"x")[0] in (405, 413)
        assert asked(f"{served.messages}/messages", b"{}")[0] == 401


@pytest.mark.parametrize(
    ("config", "typed", "code", "says"),
    [
        ("", [], Exit.WRONG_USE, "connects to nothing"),
        ("serve: {webhook_port: 0}", [], Exit.WRONG_USE, "webhook_callback_url"),
        ("serve: {console: true}", ["--json"], Exit.WRONG_USE, "not answer in JSON"),
        ("serve: {console: true}", ["--agent", "nothing:here"], Exit.WRONG_USE, "write module:name"),
        ("serve: {console: true, health_port: %d}", [], Exit.BUSY, "another program listens at"),
        ("serve: {console: true, health_port: %d}", ["--wait", "0.3"], Exit.BUSY, "serve --wait"),
        ("serve: {console: true, host: 192.0.2.1, health_port: 1}", [], Exit.WRONG_USE, "cannot listen at"),
        (WEBHOOK_AT, [], Exit.BUSY, "serve.webhook_port: another program listens at"),
    ],
)
def test_what_cannot_be_served_is_said_so(
    gsess: Gsess, tmp_path: Path, config: str, typed: list[str], code: Exit, says: str
):
    with closing(listening_socket("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "config.yaml").write_text(config.replace("%d", str(port)))
        ended = gsess("--home", tmp_path / "home", "--config", tmp_path / "config.yaml", "serve", *typed)
    assert (ended.code, says in (ended.err or ended.out)) == (code, True), ended
    assert not (tmp_path / "home").exists()


def test_secrets_are_not_shown(gsess: Gsess, place: Path):
    told = gsess("--home", place / "home", "--config", place / "config.yaml", "config", "explain", "serve")
    assert "serve.webhook_secrets" in told.out
    assert SECRET not in told.out


def test_who_waits_takes_over_the_store_and_the_ports(place: Path, receiver: Receiver):
    with closing(listening_socket("127.0.0.1", 0)) as one, closing(listening_socket("127.0.0.1", 0)) as other:
        health, messages = one.getsockname()[1], other.getsockname()[1]
    (place / "config.yaml").write_text(
        f"serve: {{health_port: {health}, webhook_port: {messages},"
        f" webhook_callback_url: '{receiver.url}', webhook_secrets: ['{SECRET}']}}\n"
    )
    with serving(place) as first, serving(place, "--wait", "30") as second:
        assert first.process.wait(timeout=PATIENCE) == Exit.DONE
        assert asked(f"{second.health}/readyz")[0] == 200
