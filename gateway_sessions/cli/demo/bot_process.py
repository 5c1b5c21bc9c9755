"""The bot that is killed: each of its lives is a process of its own, and most of them end by SIGKILL."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.adapters import AdapterCapabilities, OutboundMessage, ReplyTarget
from gateway_sessions.cli.demo.night import CONFIG
from gateway_sessions.testing import FakeClock, FakePlatform
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
"""The messages in each life; in the other lives, cut off turns go on by themselves."""
CRASHES: Final = MappingProxyType({1: "after_commit_before_deliver"})
"""The failpoint at which a life ends, if the agent does not end it."""
ANSWERS: Final = MappingProxyType(
    {"capital": "Rome.", "there": "I am. How can I help?", "火车": "去机场的火车六点零五分开。"}
)


async def run_life(place: Path, number: int) -> None:
    """Open the store, go on with what was cut off, accept messages, and end; or be killed on the way."""
    clock = FakeClock(BEGIN + PAUSE * number)
    chat = FileChat(place / CHAT, clock, run=f"{number}-")
    agent = partial(answer_turn, place)
    point = CRASHES.get(number)
    if point is not None:
        report("doomed", where=FAILPOINTS[point])
    with nullcontext() if point is None else crash_at(point):
        async with (
            SessionStore.open(place / "store", CONFIG, clock=clock) as store,
            Gateway(store, agent=agent, adapters=[chat]),
        ):
            found = store.started
            cut_off = {"resumed": len(found.resumed), "suspended": len(found.suspended)}
            report("started", clean=found.clean, doubted=found.doubted, **cut_off)
            await clock.advance(seconds=1)
            for person, text in SCRIPT.get(number, ()):
                report("says", person=person, text=text)
                await chat.says(person, text)
                await clock.advance(seconds=1)
            dead = [(one.seq, one.problem) for one in await store.dead_letters()]
            report("ended", dead=dead)


async def answer_turn(place: Path, turn: TurnContext) -> str:
    """Answer as an agent whose tool has an effect, and which one message kills."""
    report("turn", attempt=turn.attempt, recovered=turn.recovered, last=(await turn.history())[-1])
    if "taxi" in turn.text:
        return await order_taxi(place / TAXIS, turn)
    if "zero" in turn.text:
        report("doomed", where="the agent has tried to divide by zero")
        die()
    return next(said for word, said in ANSWERS.items() if word in turn.text)


async def order_taxi(taxis: Path, turn: TurnContext) -> str:
    """Order a taxi; after a call that was cut off, first check whether one was ordered."""
    if (await turn.history())[-1]["role"] == "tool" and taxis.exists():  # noqa: ASYNC240 -- a demo
        return "I looked: a taxi is ordered already."
    function = {"name": "order_taxi", "arguments": json.dumps({"to": "airport", "at": "06:00"})}
    call = {"id": "call_1", "type": "function", "function": function}
    await turn.append({"role": "assistant", "content": None, "tool_calls": [call]})
    with taxis.open("a") as ordered:
        ordered.write("airport at 06:00\n")
    report("doomed", where="the tool has ordered the taxi, its result is not stored")
    die()
    return "never"


class FileChat(FakePlatform):
    """A platform whose messages outlive the process: one line of a file for each that people see."""

    def __init__(self, path: Path, clock: FakeClock, run: str) -> None:
        super().__init__("telegram", clock=clock, capabilities=AdapterCapabilities(), run=run)
        self._path = path

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Show a message, and write it to the file."""
        shown = {"person": target.chat_id, "text": message.text, "notice": message.is_notice}
        with self._path.open("a") as chat:
            chat.write(json.dumps(shown) + "\n")
        report("shown", **shown)
        return await super().send(target, message, idempotency_key=idempotency_key)


def report(event: str, **facts: Any) -> None:
    """Tell the parent process at once what happens here."""
    print(json.dumps({"event": event, **facts}), flush=True)


if __name__ == "__main__":
    logging.getLogger("gateway_sessions").addHandler(logging.NullHandler())
    asyncio.run(run_life(Path(sys.argv[-2]), int(sys.argv[-1])))
