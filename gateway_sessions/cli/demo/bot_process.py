"""The bot that is killed: each of its lives is a process of its own, and most of them end by SIGKILL."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gateway_sessions import Accepted, Gateway, SessionSource, SessionStore, TurnContext
from gateway_sessions.adapters import (
    AdapterCapabilities,
    InboundMessage,
    OutboundMessage,
    ReplyTarget,
    Submit,
)
from gateway_sessions.cli.demo.night import CONFIG
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.faults import FAILPOINTS, crash_at, die

BEGIN: Final = datetime.fromisoformat("2026-03-08T09:20-04:00")
PAUSE: Final = timedelta(minutes=10)
LIVES: Final = 6
CHAT: Final = "chat.jsonl"
TAXIS: Final = "taxis.txt"

SCRIPT: Final[Mapping[int, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {
        1: (("ada", "What is the capital of Italy?"),),
        2: (("ada", "Order a taxi to the airport for six."),),
        3: (("bob", "Divide one by zero."),),
        6: (("bob", "Are you there?"), ("lin", "请问去机场的火车几点开")),
    }
)
"""What people say in which life. In the others nobody has to: what was cut off goes on by itself."""
CRASHES: Final = MappingProxyType({1: "after_commit_before_deliver"})
"""Where a life ends, if the agent does not see to that itself."""
ANSWERS: Final = MappingProxyType(
    {"capital": "Rome.", "there": "I am. How can I help?", "火车": "去机场的火车六点零五分开。"}
)


async def run_life(place: Path, number: int) -> None:
    """Open the store, let what was cut off go on, hear what people say, and end; or be killed on the way."""
    clock = FakeClock(BEGIN + PAUSE * number)
    chat = FileChat(place / CHAT)
    agent = partial(answer_turn, place)
    with killed_at(CRASHES.get(number)):
        async with (
            SessionStore.open(place / "store", CONFIG, clock=clock) as store,
            Gateway(store, agent=agent, adapters=[chat]),
        ):
            found = store.started
            report(
                "started",
                clean=found.clean,
                doubted=found.doubted,
                resumed=len(found.resumed),
                suspended=len(found.suspended),
            )
            await clock.advance(seconds=1)
            for person, text in SCRIPT.get(number, ()):
                receipt = await chat.says(person, text)
                assert isinstance(receipt, Accepted)  # noqa: S101 -- whatever is refused would end the demo
                await clock.advance(seconds=1)
            dead = [(one.seq, one.problem) for one in await store.dead_letters()]
            report("ended", dead=dead)


def killed_at(point: str | None) -> AbstractContextManager[object]:
    """Die at a named point of the program, or nowhere."""
    if point is None:
        return nullcontext()
    report("doomed", where=FAILPOINTS[point])
    return crash_at(point)


async def answer_turn(place: Path, turn: TurnContext) -> str:
    """An agent with a tool that has an effect, and a message that it does not survive."""
    report("turn", attempt=turn.attempt, recovered=turn.recovered, last=(await turn.history())[-1])
    if "taxi" in turn.text:
        return await order_taxi(place / TAXIS, turn)
    if "zero" in turn.text:
        report("doomed", where="the agent has tried to divide by zero")
        die()
    return next(said for word, said in ANSWERS.items() if word in turn.text)


async def order_taxi(taxis: Path, turn: TurnContext) -> str:
    """Order one; but if the history says that a call was cut off, look first whether it was ordered."""
    if (await turn.history())[-1]["role"] == "tool" and is_ordered(taxis):
        return "I looked: a taxi is ordered already."
    function = {"name": "order_taxi", "arguments": json.dumps({"to": "airport", "at": "06:00"})}
    call = {"id": "call_1", "type": "function", "function": function}
    await turn.append({"role": "assistant", "content": None, "tool_calls": [call]})
    with taxis.open("a") as ordered:
        ordered.write("airport at 06:00\n")
    report("doomed", where="the tool has ordered the taxi, its result is not stored")
    die()
    return "never"


def is_ordered(taxis: Path) -> bool:
    """Ask the taxi company."""
    return taxis.exists()


class FileChat:
    """A platform whose messages outlive the process: one line of a file for each that people see."""

    platform = "telegram"
    name = ""
    capabilities: AdapterCapabilities = AdapterCapabilities()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._submit: Submit | None = None

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """People can write within the block."""
        self._submit = submit
        yield

    async def says(self, person: str, text: str) -> object:
        """A person writes."""
        report("says", person=person, text=text)
        assert self._submit is not None  # noqa: S101 -- the gateway has connected
        source = SessionSource(platform=self.platform, chat_id=person, user_id=person)
        return await self._submit(InboundMessage(source=source, text=text, message_id=f"{person} {text}"))

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Show a message."""
        shown = {"person": target.chat_id, "text": message.text, "notice": message.is_notice}
        with self._path.open("a") as chat:
            chat.write(json.dumps(shown) + "\n")
        report("shown", **shown)
        return None

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Never asked: the capabilities say no."""

    async def typing(self, target: ReplyTarget) -> None:
        """Never asked: the capabilities say no."""


def report(event: str, **facts: Any) -> None:
    """Tell the parent process at once what happens here."""
    print(json.dumps({"event": event, **facts}), flush=True)


if __name__ == "__main__":
    logging.getLogger("gateway_sessions").addHandler(logging.NullHandler())
    asyncio.run(run_life(Path(sys.argv[-2]), int(sys.argv[-1])))
