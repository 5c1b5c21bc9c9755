"""A store with a little in it, and the command line as a function of its arguments."""

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from gateway_sessions import InboundMessage, SessionSource, SessionStore
from gateway_sessions.cli.app import main
from gateway_sessions.cli.settings import CONFIG_VARIABLE, HOME_VARIABLE
from tests.integration.moving.filled_store import OF_A_PROCESS
from tests.programs import WarmPython

TITLES = ("refactoring auth", "my project", None)
SAID = (
    "Help me refactor the auth module please",
    "Can you check the test failures?",
    "火车几点出发 \x1b[31mred [bold]x",
)
DOCUMENTED = "telegram"
OWNER = """
    import asyncio, sys
    from gateway_sessions import SessionStore

    async def main():
        async with SessionStore.open(sys.argv[1]) as store:
            print("open", flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())
"""


@dataclass(frozen=True)
class Ended:
    """What a command has said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json_answer(self) -> dict[str, Any]:
        return dict(json.loads(self.out))

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Gsess = Callable[..., Ended]


def source_of_person(number: int) -> SessionSource:
    return SessionSource(platform=DOCUMENTED, chat_id=str(number), user_id=f"u{number}", user_name="Ann")


def key_of_person(number: int) -> str:
    return f"agent:main:telegram:dm:{number}"


async def fill_store(home: Path) -> None:
    async with SessionStore.open(home, titler=None) as store:
        for number, (title, text) in enumerate(zip(TITLES, SAID, strict=True)):
            entry = await store.get_or_create_session(source_of_person(number))
            await store.append_to_transcript(entry.session_id, {"role": "user", "content": text})
            await store.append_to_transcript(
                entry.session_id, {"role": "assistant", "content": f"Sure: {text}"}
            )
            if title:
                await store.db.set_session_title(entry.session_id, title)
        for text in ("one", "two", "three"):
            await store.enqueue(
                InboundMessage(source=source_of_person(1), text=text, message_id=text), solo=True
            )
        await store.db.create_session("loose", "cli")
        await store.db.append_message("loose", "user", "nobody's")


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("command line") / "home"
    asyncio.run(fill_store(home))
    return home


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled, tmp_path / "home", ignore=OF_A_PROCESS)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    async def make() -> None:
        async with SessionStore.open(tmp_path / "empty"):
            pass

    asyncio.run(make())
    return tmp_path / "empty"


@pytest.fixture
def gsess(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], blockbuster: BlockBuster
) -> Iterator[Gsess]:
    """Runs a command in this process, whose loop serves nobody else."""
    monkeypatch.setattr(sys, "argv", ["gsess"])
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)

    def run(*arguments: object) -> Ended:
        capfdbinary.readouterr()
        code = main([str(one) for one in arguments])
        said = capfdbinary.readouterr()
        return Ended(code, said.out.decode(), said.err.decode())

    blockbuster.deactivate()
    yield run
    blockbuster.activate()


@pytest.fixture
def owned(warm_python: WarmPython, home: Path) -> Iterator[Path]:
    with warm_python.start(OWNER, home) as owner:
        assert owner.stdout.readline() == "open\n"
        yield home
        owner.stdin.close()
        assert owner.wait() == 0
