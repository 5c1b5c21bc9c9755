"""`gsess fake PLATFORM` with `gsess serve` behind it: an operator types what people write, and sees it."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.cli.fakes.platforms import FAKES, load_fake
from tests.integration.command_line.conftest import Gsess
from tests.integration.command_line.platforms.served_programs import program, read_until
from tests.integration.platforms.bot_processes import BOTS, free_port
from tests.programs import PATIENCE

CALLED = [name for name in FAKES if load_fake(name).is_called]


class FakeAtWork:
    """A fake whose operator types, with a gateway that is served from the configuration it has printed."""

    def __init__(self, fake: asyncio.subprocess.Process) -> None:
        self.fake = fake

    async def types(self, *lines: str) -> None:
        assert self.fake.stdin is not None
        self.fake.stdin.write("".join(f"{line}\n" for line in lines).encode())
        await self.fake.stdin.drain()

    async def shows(self, text: str) -> str:
        return await read_until(self.fake.stdout, text)

    async def ends(self) -> str:
        """End the input, and return what was shown to the end."""
        assert self.fake.stdin is not None
        assert self.fake.stdout is not None
        self.fake.stdin.close()
        rest = await asyncio.wait_for(self.fake.stdout.read(), PATIENCE)
        assert await asyncio.wait_for(self.fake.wait(), PATIENCE) == Exit.DONE
        return rest.decode()


@asynccontextmanager
async def faked(home: Path, platform: str, *, webhook: bool = False) -> AsyncGenerator[FakeAtWork]:
    """Run a fake, and a gateway as the fake says; *webhook*: the platform calls the gateway."""
    options = ["--webhook", f"http://127.0.0.1:{free_port()}/{platform}"] if webhook else []
    async with program(home, "fake", platform, *options) as fake:
        told = await read_until(fake.stderr, "shows what else they can do")
        configuration = re.search(r"^serve:\n(?:  .*\n)+", told, re.MULTILINE)
        assert configuration is not None, told
        (home / "config.yaml").write_text(configuration[0])
        async with program(home, "serve") as served:
            await read_until(served.stderr, "Serving")
            yield FakeAtWork(fake)


@pytest.mark.parametrize("platform", FAKES)
async def test_a_served_bot_answers_what_is_typed(platform: str, tmp_path: Path):
    async with faked(tmp_path, platform, webhook=platform in CALLED) as at_work:
        await at_work.types("hello", r"\help", r"\nonsense")
        said = await at_work.shows("bot → you: ")
        await at_work.types("ann: good day")
        said += await at_work.shows("bot → ann: ")
        await at_work.types(r"\calls", r"\fault refuse", "ann: are you there?")
        said += await at_work.shows("(refused ")
        said += await at_work.ends()
    assert "A line is your message; `ann: hello` is one of Ann." in said
    assert "nobody can \\nonsense on this" in said
    assert "The bot's next message meets: refuse." in said
    assert re.search(r"^\w[\w.]* 20[0-2]$", said, re.MULTILINE), said  # a call of the bot


EXAMPLES = {
    "google_chat": "google_chat",
    "line": "line",
    "matrix": "matrix_nio",
    "mattermost": "mattermost",
    "slack": "slack_socket_mode",
    "teams": "teams",
    "telegram": "telegram_aiogram",
    "twilio": "twilio_sms",
    "whatsapp": "whatsapp",
}


@pytest.mark.parametrize("platform", EXAMPLES)
async def test_an_example_runs_with_the_variables_that_are_printed(platform: str, tmp_path: Path):
    port = free_port()
    options = ["--webhook", f"http://127.0.0.1:{port}/{platform}"] if platform in CALLED else []
    async with program(tmp_path, "fake", platform, *options) as fake:
        told = await read_until(fake.stderr, "shows what else they can do")
        exports = re.search(r"^export (.*)$", told, re.MULTILINE)
        assert exports is not None, told
        variables = dict(one.partition("=")[::2] for one in shlex.split(exports[1]))
        script = str(BOTS / f"{EXAMPLES[platform]}.py")
        bot = await asyncio.create_subprocess_exec(
            sys.executable, script, cwd=tmp_path, env={**os.environ, **variables, "PORT": str(port)}
        )
        try:
            at_work = FakeAtWork(fake)
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
                answer = tasks.create_task(at_work.shows("bot → ann: "))
                # On some platforms, a bot that never ran hears nothing of what was said before.
                while not answer.done():
                    await at_work.types("ann: hello")
                    await asyncio.wait([answer], timeout=1)
        finally:
            bot.kill()
            await bot.wait()


async def test_people_of_slack_change_delete_and_write_in_threads(tmp_path: Path):
    async with faked(tmp_path, "slack", webhook=True) as at_work:
        await at_work.types("#team ann: @helper hello")
        await at_work.shows("bot → #team: ")
        await at_work.types(r"#team ann: \thread and in the thread?", r"#team ann: \edit @helper hello!")
        await at_work.types(
            r"#team ann: \again", r"#team ann: \delete", r"ann: \command helper status", r"bob: \edit no"
        )
        said = await at_work.shows("bob has written nothing there yet")
        said += await at_work.ends()
    assert "did not" not in said
    assert "not taken" not in said


async def test_a_person_of_telegram_blocks_the_bot_and_comes_back(tmp_path: Path):
    async with faked(tmp_path, "telegram") as at_work:
        await at_work.types(r"ann: \block", "ann: hello")
        assert "bot was blocked by the user" in await at_work.shows("(refused sendMessage, 403")
        await at_work.types(r"ann: \unblock", "ann: here I am", r"ann: \edit here I am!", r"ann: \again")
        await at_work.shows("bot → ann: ")
        await at_work.types(r"\outage 0.2", r"\outage soon", r"ann: \press Nothing")
        said = await at_work.shows("ann sees no button 'Nothing'")
        assert "(reachable again)" in said
        assert r"(say for how many seconds: `\outage 10`)" in said
        await at_work.ends()


async def test_files_of_this_machine_are_sent(tmp_path: Path):
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    async with faked(tmp_path, "matrix") as at_work:
        await at_work.types(rf"ann: \send {picture}", rf"ann: \send {tmp_path / 'dog.png'}")
        said = await at_work.shows("No such file")
        assert "dog.png" in said
        await at_work.types("#team ann: @helper hello")
        await at_work.shows("bot → #team: ")
        await at_work.ends()


async def test_what_is_typed_before_the_bot_listens_waits_for_it(tmp_path: Path):
    port = free_port()
    async with program(tmp_path, "fake", "line", "--webhook", f"http://127.0.0.1:{port}/called") as fake:
        told = await read_until(fake.stderr, "shows what else they can do")
        at_work = FakeAtWork(fake)
        await at_work.types("ann: hello")
        assert 'path: "/called"' in told
        settings, _, _ = told[told.index("serve:\n") :].partition("\n\n")
        (tmp_path / "config.yaml").write_text(f"{settings}\n")
        async with program(tmp_path, "serve"):
            await at_work.shows("bot → ann: ")
        await read_until(fake.stderr, "Something listens at")
        await at_work.types("ann: still there?")
        await at_work.shows("did not answer)")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pigeons"], "there is no fake of 'pigeons'; platforms with one are discord, google_chat, line"),
        (["matrix", "--webhook", "http://127.0.0.1:1/x"], "Matrix calls no address; leave --webhook out"),
        (["slack", "--webhook", "127.0.0.1:1"], "--webhook must be an address"),
        (["slack", "--port", "65536"], "no whole number from 0 to 65,535"),
    ],
)
def test_wrong_uses_are_told_in_a_sentence(words: list[str], told: str, gsess: Gsess):
    failed = gsess("fake", *words)
    assert failed.code == Exit.WRONG_USE
    assert told in " ".join(failed.err.split())


async def test_a_port_that_is_taken_is_told(tmp_path: Path):
    port = str(free_port())
    async with program(tmp_path, "fake", "telegram", "--port", port) as first:
        assert f"http://127.0.0.1:{port}" in await read_until(first.stderr, "shows what else they can do")
        async with program(tmp_path, "fake", "slack", "--port", port) as second:
            told = await read_until(second.stderr, "cannot listen at")
            assert f"127.0.0.1:{port} (Address already in use)" in told
