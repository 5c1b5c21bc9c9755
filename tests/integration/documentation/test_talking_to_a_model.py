"""People talk to a model through a gateway, and at a terminal."""

import asyncio
import os
import pty
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import IO, Any

import pytest

from gateway_sessions import Config, Gateway, SessionStore
from gateway_sessions.agents import Endpoint
from gateway_sessions.agents.openai import OpenAIAgent
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.testing import FakePlatform
from tests.fake_model import (
    FakeModel,
    ModelConnection,
    Script,
    chunk,
    head,
    refuses,
    says,
    send_and_close,
    send_and_hang,
    whole_answer,
)
from tests.integration.command_line.terminal.test_chat import CODE
from tests.programs import PATIENCE, Program, WarmPython, read_until

KEY = "sk-secret-1"
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "talk-to-a-model.md"

CONFIG = Config.from_mapping({"busy": {"debounce_seconds": 0}})

pytestmark = pytest.mark.timeout(PATIENCE)


@pytest.fixture
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel().serving() as serving:
        yield serving


# Through a gateway


class Room:
    """A store, a gateway and a platform, with a model that answers."""

    def __init__(self, store: SessionStore, gateway: Gateway, platform: FakePlatform) -> None:
        self.store = store
        self.gateway = gateway
        self.platform = platform

    async def sees(self, *texts: str) -> None:
        """Wait until Ann sees just that."""
        async with asyncio.timeout(PATIENCE):
            while self.platform.shown("ann") != [*texts]:  # noqa: ASYNC110 -- a platform tells nobody of edits
                await asyncio.sleep(0.01)

    async def says(self, *texts: str) -> str:
        """Ann says something; what she sees last when all is done."""
        for text in texts:
            await self.platform.says("ann", text)
        await asyncio.wait_for(self.gateway.settled(), PATIENCE)
        return self.platform.shown("ann")[-1]

    async def session_id(self) -> str:
        return await self.store.peek_session_id(self.store.key_for(self.platform.source("ann"))) or ""


@pytest.fixture
async def room(model: FakeModel, tmp_path: Path) -> AsyncIterator[Room]:
    platform = FakePlatform()
    async with (
        OpenAIAgent(Endpoint(model="large", base_url=model.url, api_key=KEY)) as agent,
        SessionStore.open(tmp_path / "store", CONFIG, titler=None) as store,
        Gateway(store, agent=agent, adapters=[platform]) as gateway,
    ):
        yield Room(store, gateway, platform)


async def test_an_answer_grows_before_peoples_eyes_and_is_remembered(room: Room, model: FakeModel):
    go_on = asyncio.Event()

    async def slowly(line: ModelConnection) -> None:
        await line.send(head(), chunk("Six "))
        await go_on.wait()
        await line.send(whole_answer("o'clock."))

    model.scripts.append(slowly)
    await room.platform.says("ann", "When does the train leave?")
    await room.sees("Six ")
    go_on.set()
    await room.sees("Six o'clock.")
    model.scripts.append(says("Platform two."))
    assert await room.says("And from where?") == "Platform two."
    *_, asked = model.bodies
    assert asked["messages"][0]["role"] == "system"
    assert room.platform.platform in asked["messages"][0]["content"].lower()
    assert asked["messages"][1:] == [
        {"role": "user", "content": "When does the train leave?"},
        {"role": "assistant", "content": "Six o'clock."},
        {"role": "user", "content": "And from where?"},
    ]


async def test_tools_of_another_agent_are_passed_on(room: Room, model: FakeModel):
    model.scripts.extend([says("One."), says("Two.")])
    await room.says("first")
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for row in (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "tool_name": "look", "content": "at six"},
        {"role": "assistant", "content": None, "tool_calls": [{**call, "id": "call_2"}]},
    ):
        await room.store.append_to_transcript(await room.session_id(), row)
    await room.says("second")
    rows = model.bodies[1]["messages"][1:]
    assert [row["role"] for row in rows[:3]] == ["user", "assistant", "tool"]
    answered = {row["tool_call_id"]: row["content"] for row in rows if row["role"] == "tool"}
    assert answered["call_1"] == "at six"
    assert "no recorded result" in answered["call_2"]
    assert {name for row in rows for name in row} == {"role", "content", "tool_calls", "tool_call_id"}


async def test_people_choose_their_model(room: Room, model: FakeModel):
    model.scripts.extend([says("One."), says("Two.")])
    await room.says("hello")
    await room.says("/model small", "and now?")
    assert [body["model"] for body in model.bodies] == ["large", "small"]


async def test_what_it_took_is_counted_for_the_session(room: Room, model: FakeModel):
    model.scripts.append(says("One."))
    await room.says("hello")
    used = (await room.store.db.usage_of_session(await room.session_id())).turns
    assert (used.input_tokens, used.cache_read_tokens, used.output_tokens, used.cost_usd) == (20, 10, 2, None)


async def test_stop_closes_the_connection_at_once(room: Room, model: FakeModel):
    model.scripts.append(send_and_hang(head(), chunk("Well, ")))
    await room.platform.says("ann", "hello")
    await asyncio.wait_for(model.asked.wait(), PATIENCE)
    began = time.monotonic()
    await room.platform.says("ann", "/stop")
    await asyncio.wait_for(model.left.wait(), PATIENCE)
    assert time.monotonic() - began < 4  # whoever is not stopped at once is after five seconds


async def test_a_model_that_fails_is_a_dead_letter_with_its_reason_and_no_key(
    room: Room, model: FakeModel, caplog: pytest.LogCaptureFixture
):
    model.scripts.append(refuses(401, f"bad key {KEY}"))
    await room.says("hello")
    assert "/retry" in room.platform.shown("ann")[0]
    [letter] = await room.store.dead_letters()
    assert letter.problem.startswith("ModelRefusedError: 127.0.0.1:")
    assert "does not accept the key" in letter.problem
    assert KEY not in letter.problem + caplog.text + "".join(room.platform.shown())
    model.scripts.append(says("One."))
    await room.says("/retry")
    assert room.platform.shown("ann")[-1] == "One."


# At a terminal


class Terminal:
    """Chats in processes of their own while the model of the test answers."""

    def __init__(self, python: WarmPython, home: Path, model: FakeModel) -> None:
        self._python = python
        self.home = home
        self.variables = {
            "OPENAI_BASE_URL": model.url,
            "OPENAI_MODEL": "large",
            "OPENAI_API_KEY": KEY,
            "GATEWAY_SESSIONS_HOME": str(home),
            "NO_PROXY": "*",
        }

    async def chat(self, *arguments: str, typed: str = "", agent: str = "openai") -> tuple[int, str, str]:
        command = ("chat", "--agent", agent, *arguments)
        return await asyncio.to_thread(self.run, CODE, *command, typed=typed)

    @contextmanager
    def started(self, code: str, *arguments: str) -> Iterator[tuple[Program, IO[bytes]]]:
        how: dict[str, Any] = {"variables": self.variables, "folder": str(self.home.parent)}
        with (
            tempfile.TemporaryFile() as errors,
            self._python.start(code, *arguments, stderr=errors, **how) as program,
        ):
            yield program, errors

    def run(self, code: str, *arguments: str, typed: str = "") -> tuple[int, str, str]:
        with self.started(code, *arguments) as (program, errors):
            program.stdin.write(typed)
            program.stdin.close()
            said = read_until(program.stdout, time.monotonic() + PATIENCE)
            ended = program.wait()
            errors.seek(0)
            return ended, said, errors.read().decode()


@pytest.fixture
def terminal(warm_python: WarmPython, tmp_path: Path, model: FakeModel) -> Terminal:
    return Terminal(warm_python, tmp_path / "home", model)


@pytest.mark.parametrize("agent", ["openai", "gateway_sessions.agents.openai:create"])
async def test_a_chat_with_a_model_goes_on_where_it_was(terminal: Terminal, model: FakeModel, agent: str):
    model.scripts.extend([says("At ", "six, 火车."), says("Two.")])
    code, out, err = await terminal.chat(typed="when?\n", agent=agent)
    assert (code, out) == (Exit.DONE, "At six, 火车.\n")
    code, out, err = await terminal.chat("-c", typed="and the platform?\n", agent=agent)
    assert "Two." in out
    assert [row["content"] for row in model.bodies[1]["messages"][1:]] == [
        "when?",
        "At six, 火车.",
        "and the platform?",
    ]
    assert model.requests[1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in out + err


async def test_on_a_terminal_the_answer_grows(terminal: Terminal, model: FakeModel):
    go_on = asyncio.Event()

    async def slowly(line: ModelConnection) -> None:
        await line.send(head(), chunk("Six "))
        await go_on.wait()
        await line.send(whole_answer("o'clock."))

    model.scripts.append(slowly)
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).with_name("gsess"), "chat", "--agent", "openai"]
    environment = {**os.environ, **terminal.variables, "TERM": "dumb"}
    with Popen(command, stdin=theirs, stdout=theirs, stderr=DEVNULL, env=environment) as process:
        os.close(theirs)
        os.write(ours, b"when?\n")
        shown = await asyncio.to_thread(read_up_to, ours, b"Six ")
        go_on.set()
        shown += await asyncio.to_thread(read_up_to, ours, b"o'clock.\r\n")
        os.write(ours, b"\x04")
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0
    os.close(ours)
    assert shown.decode().replace("\r\n", "\n") == "when?\nSix o'clock.\n"


def read_up_to(descriptor: int, end: bytes) -> bytes:
    seen = b""
    while not seen.endswith(end):
        seen += os.read(descriptor, 1)
    return seen


@pytest.mark.parametrize(
    ("script", "says_"),
    [
        (refuses(401, f"bad: {KEY}"), "does not accept the key (status 401: bad: (the key))"),
        (refuses(404, "model 'large' not found"), "has no model 'large'"),
        (send_and_close(head(), chunk("Hel")), "was cut off in the middle of its answer"),
        (send_and_close(head("text/html"), b"<html>"), "has sent a page for people"),
    ],
)
async def test_why_a_turn_has_failed_is_one_line_beside_the_chat(
    terminal: Terminal, model: FakeModel, script: Script, says_: str
):
    model.scripts.append(script)
    code, out, err = await terminal.chat(typed="hello\n")
    assert code == Exit.DONE
    assert "/retry" in out
    [line] = [line for line in err.splitlines() if line.startswith("a turn failed: ")]
    assert says_ in line
    assert "Traceback" not in out + err
    assert KEY not in out + err
    files = [path for path in terminal.home.rglob("*") if path.is_file()]
    assert terminal.home / "sessions.db" in files
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


async def test_an_agent_of_ones_own_that_fails_is_told_with_its_kind(terminal: Terminal, tmp_path: Path):
    (tmp_path / "mine.py").write_text("async def answer(turn):\n    raise KeyError('x\\x1b[31m')\n")
    _, _, err = await terminal.chat(typed="hello\n", agent="mine:answer")
    assert "a turn failed: KeyError: 'x" in err
    assert "Traceback" not in err
    assert "\x1b" not in err


async def test_an_agent_that_is_made_for_a_chat_is_closed_behind_it(terminal: Terminal, tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "class Loud:\n"
        "    async def run_turn(self, turn):\n        return turn.text.upper()\n"
        "    async def aclose(self):\n        print('closed')\n"
        "nothing = 7\n"
    )
    _, out, _ = await terminal.chat(typed="hello\n", agent="mine:Loud")
    assert out == "HELLO\nclosed\n"
    code, out, err = await terminal.chat(typed="hello\n", agent="mine:nothing")
    assert (code, out) == (Exit.WRONG_USE, "")
    assert err.startswith("gsess: --agent: mine:nothing is neither an agent nor a function")


async def test_debug_shows_where_a_failure_came_from(terminal: Terminal, model: FakeModel):
    model.scripts.append(refuses(401, "no"))
    _, _, err = await terminal.chat("--debug", typed="hello\n")
    assert "Traceback" in err
    assert KEY not in err


@pytest.mark.parametrize(
    ("variable", "value", "says_"),
    [
        ("OPENAI_MODEL", "", "OPENAI_MODEL"),
        ("OPENAI_BASE_URL", "127.0.0.1", "OPENAI_BASE_URL"),
        ("OPENAI_API_KEY", f"{KEY}\tx", "OPENAI_API_KEY"),
    ],
)
async def test_what_is_missing_is_said_before_anything_is_asked(
    terminal: Terminal, model: FakeModel, variable: str, value: str, says_: str
):
    terminal.variables[variable] = value
    code, out, err = await terminal.chat(typed="hello\n")
    assert (code, out) == (Exit.WRONG_USE, "")
    assert says_ in err.splitlines()[0]
    assert KEY not in err
    assert model.requests == []


async def test_without_the_extra_it_says_what_to_install(terminal: Terminal):
    without = "import sys\nsys.modules['httpx2'] = None\n" + CODE
    code, _, err = await asyncio.to_thread(terminal.run, without, "chat", "--agent", "openai")
    assert code == Exit.WRONG_USE
    assert "pip install 'gateway-sessions[openai]'" in err.splitlines()[0]
    assert "Traceback" not in err


async def test_a_service_takes_the_same_name(terminal: Terminal, model: FakeModel, tmp_path: Path):
    (tmp_path / "config.yaml").write_text(
        "serve: {console: true}\nmodel: {name: small, api_key: '${OPENAI_API_KEY}'}\n"
    )
    model.scripts.extend([says("One."), says("A greeting")])
    command = ("--config", "config.yaml", "serve", "--agent", "openai")
    with terminal.started(CODE, *command) as (program, errors):
        program.stdin.write("hello\n")
        program.stdin.flush()
        assert await asyncio.to_thread(program.stdout.readline) == "One.\n"
        async with asyncio.timeout(PATIENCE):
            while model.scripts:  # noqa: ASYNC110 -- nobody tells when the title was asked for
                await asyncio.sleep(0.01)
        program.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(program.wait) == Exit.DONE
        errors.seek(0)
        assert KEY not in errors.read().decode()
    assert [body["model"] for body in model.bodies] == ["small", "small"]
    assert "Write a title" in model.bodies[1]["messages"][0]["content"]
    shown = await asyncio.to_thread(terminal.run, CODE, "--config", "config.yaml", "config", "explain")
    assert ("small" in shown[1], KEY in shown[1]) == (True, False)
    (tmp_path / "config.yaml").write_text("serve: {console: true}\n")
    del terminal.variables["OPENAI_MODEL"]
    code, _, err = await asyncio.to_thread(terminal.run, CODE, *command)
    assert (code, "OPENAI_MODEL" in err) == (Exit.WRONG_USE, True)


async def test_the_program_of_the_page_talks_to_a_model(terminal: Terminal, model: FakeModel):
    [program] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    model.scripts.append(says("By train."))
    code, out, err = await asyncio.to_thread(terminal.run, program, typed="how do I get to Rome?\n")
    assert (code, out, err) == (0, "By train.\n", "")
    [body] = model.bodies
    assert body["messages"][0]["content"].startswith("You are a patient guide to railways.")
    assert body["temperature"] == 0.2
