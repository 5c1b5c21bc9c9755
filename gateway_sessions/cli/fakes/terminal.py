"""A fake of a platform at the terminal: lines to configure, people to type for, and the bot's messages."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import anyio

from gateway_sessions.adapters.console import Console
from gateway_sessions.cli.fakes.acts import Act, FakeToRun, help_text, last_calls, plan_fault
from gateway_sessions.cli.fakes.typed_lines import SAY, YOU, TypedLine, read_typed_line
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import Accepted, Disposition, InboundMessage, Receipt
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.first_configuration import variable_of
from gateway_sessions.testing.fakes.platform_server import BotMessage, FakePlatformServer

LOOK_SECONDS: Final = 0.05
"""The pause between two looks at what the bot has said: people read no faster."""
QUIET_SECONDS: Final = 1.0
"""So long must nothing be new behind the last line: a bot that has a message needs a moment to answer."""
LONGEST_OUTAGE: Final = 3600.0
WEBHOOK_PORT: Final = 8080
"""The port at which `serve` listens for platforms, unless its configuration says otherwise."""


class NewsOfFake:
    """Tells what is new on a fake: messages of the bot, refusals, and deliveries that failed."""

    def __init__(self, fake: FakePlatformServer) -> None:
        self._fake = fake
        self._shown: dict[str, BotMessage] = {}
        self._calls = 0
        self._failures = 0
        self._last_line = ""

    def lines(self) -> Iterator[str]:
        """Yield a line for all that is new since the last look; what repeats itself is told once."""
        for line in (*self._messages(), *self._troubles()):
            if line != self._last_line:
                yield line
            self._last_line = line

    def _messages(self) -> Iterator[str]:
        seen = {one.id: one for one in self._fake.bot_messages()}
        for message_id in [one for one in self._shown if one not in seen]:
            yield f"bot → {self._shown.pop(message_id).place}: (deleted)"
        for message_id, one in seen.items():
            before = self._shown.get(message_id)
            if before != one:
                changed = " (changed)" if before is not None else ""
                yield f"bot → {one.place}{changed}: {one.text}".replace("\n", "\n    ")
            self._shown[message_id] = one

    def _troubles(self) -> Iterator[str]:
        calls, failures = list(self._fake.calls), list(self._fake.failed_deliveries)
        for call in calls[self._calls :]:
            if call.refusal:
                yield f"(refused {call.method}, {call.status}: {call.refusal})"
        for failure in failures[self._failures :]:
            yield f"({failure})"
        self._calls, self._failures = len(calls), len(failures)


class FakeTerminal:
    """Lets people do what is typed, and shows what comes of it."""

    def __init__(self, offered: FakeToRun[Any, Any], fake: FakePlatformServer) -> None:
        self._offered = offered
        self._fake = fake
        self._console = Console(person=YOU)
        self._news = NewsOfFake(fake)
        self._wrote: dict[tuple[str, str | None], Any] = {}
        self._changed_at = time.monotonic()

    async def run(self) -> None:
        """Do what is typed until the input ends, and the bot has answered."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._show_news)
            async with self._console.connect(self._take):
                await self._console.ended()
                await self._wait_for_answers()
            tasks.cancel_scope.cancel()

    async def _take(self, message: InboundMessage) -> Receipt:
        try:
            told = await self._do(read_typed_line(message.text))
        except (InvalidInputError, AssertionError, LookupError) as problem:  # what is not there on the fake
            told = f"({problem})"
        if told:
            await self._show(told)
        return Accepted(seq=0, session_key="", session_id=None, disposition=Disposition.STARTS)

    async def _do(self, typed: TypedLine) -> str | None:
        self._changed_at = time.monotonic()
        match typed.act:
            case "help":
                return help_text(self._offered)
            case "calls":
                return last_calls(self._fake)
            case "fault":
                return plan_fault(self._fake, self._offered.sending, typed.words)
            case "outage":
                await self._be_unreachable(typed.words)
            case _:
                await anyio.to_thread.run_sync(self._let_person_act, typed)
        return None

    def _let_person_act(self, typed: TypedLine) -> None:
        if typed.place is not None and not self._offered.mention:
            problem = f"on {self._offered.title}, people write to the bot alone"
            raise InvalidInputError(problem)
        at = (typed.person, typed.place)
        act = Act(typed.person, typed.place, typed.words, self._wrote.get(at))
        if typed.act == SAY:
            self._wrote[at] = self._offered.says(self._fake, act)
        elif typed.act in self._offered.acts:
            self._offered.acts[typed.act](self._fake, act)
        else:
            problem = f"nobody can \\{typed.act} on this {self._offered.title}; \\help shows what can be done"
            raise InvalidInputError(problem)

    async def _be_unreachable(self, words: str) -> None:
        try:
            seconds = float(words)
        except ValueError:
            seconds = -1
        if not 0 < seconds <= LONGEST_OUTAGE:
            problem = r"say for how many seconds: `\outage 10`"
            raise InvalidInputError(problem)
        await self._show(f"(unreachable for {seconds:g} s)")
        async with self._fake.outage():
            await anyio.sleep(seconds)
        await self._show("(reachable again)")

    async def _show_news(self) -> None:
        while True:
            for line in self._news.lines():
                self._changed_at = time.monotonic()
                await self._show(line)
            await anyio.sleep(LOOK_SECONDS)

    async def _show(self, text: str) -> None:
        target = ReplyTarget(platform=self._console.platform)
        await self._console.send(target, OutboundMessage(text=text), idempotency_key=text)

    async def _wait_for_answers(self) -> None:
        """Wait until the bot has taken everything, or for good if none runs; then until nothing is new."""
        while self._fake.pending or time.monotonic() < self._changed_at + QUIET_SECONDS:  # noqa: ASYNC110 -- its thread tells nobody
            await anyio.sleep(LOOK_SECONDS)


async def run_fake(
    platform: str,
    offered: FakeToRun[Any, Any],
    *,
    port: int,
    webhook: str | None,
    note: Callable[[str], object],
) -> None:
    """Run the fake until the input ends; *note* says where it is, and what to configure."""
    if webhook is not None and offered.listens is None:
        problem = f"{offered.title} calls no address; leave --webhook out"
        raise InvalidInputError(problem)
    if webhook is None and offered.is_called:
        webhook = f"http://127.0.0.1:{WEBHOOK_PORT}/{platform}"
    fake: FakePlatformServer = offered.make().at_port(port)
    with TemporaryDirectory(prefix="fake-") as folder:
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(fake)
            except OSError as error:
                problem = f"cannot listen at 127.0.0.1:{port} ({os.strerror(error.errno or 0)})"
                raise InvalidInputError(problem) from error
            await _run_terminal(platform, offered, fake, Path(folder), webhook, note)


async def _run_terminal(
    platform: str,
    offered: FakeToRun[Any, Any],
    fake: FakePlatformServer,
    folder: Path,
    webhook: str | None,
    note: Callable[[str], object],
) -> None:
    if webhook is not None and offered.listens is not None:
        offered.listens(fake, webhook)  # the keys of a configuration depend on it
    note(_hint(platform, offered, fake.url, fake.adapter_settings(folder), webhook))
    async with anyio.create_task_group() as tasks:
        if webhook is not None and offered.listens is not None:
            offered.listens(fake, "")
            tasks.start_soon(_listen_when_it_answers, webhook, partial(offered.listens, fake), note)
        await FakeTerminal(offered, fake).run()
        tasks.cancel_scope.cancel()


async def _listen_when_it_answers(
    webhook: str, listens: Callable[[str], object], note: Callable[[str], object]
) -> None:
    """Let the fake call the bot once something listens there: what is typed before waits for it."""
    parts = urlsplit(webhook)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    while True:
        try:
            stream = await anyio.connect_tcp(str(parts.hostname), port)
        except OSError:
            await anyio.sleep(LOOK_SECONDS)
            continue
        await stream.aclose()
        listens(webhook)
        note(f"Something listens at {webhook} now.")
        return


def _hint(
    platform: str, offered: FakeToRun[Any, Any], url: str, settings: dict[str, str], webhook: str | None
) -> str:
    exports = _exports(platform, offered, settings)
    lines = [f"A fake {offered.title} listens at {url}. Say so in a configuration:", "", "serve:"]
    if webhook is not None:
        parts = urlsplit(webhook)
        if parts.port not in (None, WEBHOOK_PORT):
            lines.append(f"  webhooks: {{port: {parts.port}}}")
        if parts.path != f"/{platform}":
            settings = {**settings, "path": parts.path}
    lines += ["  adapters:", f"    - platform: {platform}"]
    lines += [f"      {key}: {json.dumps(value)}" for key, value in settings.items()]
    lines += exports
    if webhook is not None:
        lines += ["", f"It calls the bot at {webhook}."]
    lines += ["", "Type what people write: a line is yours, `ann: hello` is Ann's."]
    if offered.mention:
        lines.append(
            f"Where several are, a bot hears what mentions it: `#team ann: {offered.mention} hello`."
        )
    return "\n".join([*lines, r"\help shows what else they can do.", ""])


def _exports(platform: str, offered: FakeToRun[Any, Any], settings: dict[str, str]) -> list[str]:
    if offered.variables is None:
        return []
    named = {
        offered.variables.get(key) or variable_of(platform, key): value for key, value in settings.items()
    }
    told = " ".join(f"{name}={shlex.quote(value)}" for name, value in named.items())
    return ["", "Or tell a program, such as those in examples/bots:", "", f"export {told}"]
