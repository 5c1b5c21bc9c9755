"""The same burst of messages in four busy modes, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import anyio

from gateway_sessions import Config, Gateway, SessionStore, TurnContext
from gateway_sessions.adapters import InboundMessage
from gateway_sessions.cli.demo.paint import bad, begin_scene, code, dim, good, in_columns, say, strong
from gateway_sessions.events import EventKind, GatewayEvent
from gateway_sessions.queue import Disposition
from gateway_sessions.testing import FakeClock, FakePlatform

MODES = ("queue", "collect", "steer", "interrupt")
BURST = ((0.0, "Plan a trip"), (1.0, "to Rome"), (1.2, "by train"), (3.0, "in May"))
THINKING_SECONDS = 4
WIDTHS = (6, 12, 13, 13, 13, 13)
TOTALS = (13, 7, 9)
MESSAGES = {EventKind.MESSAGE_ACCEPTED, EventKind.MESSAGE_MERGED}


class Planner:
    """An agent that thinks for four seconds, and takes messages while it thinks."""

    def __init__(self) -> None:
        self.wishes: list[str] = []

    async def run_turn(self, turn: TurnContext) -> str:
        """Answer with all wishes of the conversation."""
        said = (row["content"] for row in await turn.history() if row["role"] == "user")
        self.wishes = [wish for content in said for wish in content.splitlines()]
        await turn.clock.sleep(THINKING_SECONDS)
        return ", ".join(self.wishes)

    async def steer(self, message: InboundMessage) -> bool:
        """Take a message into the running turn."""
        self.wishes.append(message.text)
        return True


@dataclass(slots=True)
class ModeColumn:
    """The column of one busy mode: its events, and a cell for each moment."""

    events: dict[timedelta, list[GatewayEvent]]
    replies: list[str]
    cells: dict[timedelta, str] = field(default_factory=dict[timedelta, str])
    turns: int = 0
    _running: bool = False

    def draw(self, moments: Iterable[timedelta]) -> None:
        """Fill the cell of each moment."""
        for moment in moments:
            self.cells[moment] = self._cell(self.events.get(moment, []))

    def _cell(self, events: list[GatewayEvent]) -> str:
        said = next((str(one.facts["disposition"]) for one in events if one.kind in MESSAGES), "")
        ended = next((one.facts["outcome"] for one in events if one.kind is EventKind.TURN_ENDED), None)
        started = any(one.kind is EventKind.TURN_STARTED for one in events)
        was_running, self._running = self._running, started or (self._running and ended is None)
        self.turns += started
        if started:
            return code(f"{'├' if was_running else '┌'} turn {self.turns}")
        if ended is not None:
            return good("└ answered") if ended == "turned" else bad(f"✕ {ended}")
        if was_running:
            return f"{code('│')} {strong(said)}".rstrip()
        # On an idle lane a turn may wait for the rest of a burst.
        return dim(f"· {'waits' if said == Disposition.STARTS else said}") if said else ""


async def compare_modes(home: Path) -> None:
    """Run the burst in four busy modes, and show the results."""
    begin_scene(
        2,
        "One burst, four busy modes",
        "Each column is a gateway of its own. Its agent thinks for four seconds.",
    )
    columns = {mode: await run_burst(home / mode, mode) for mode in MODES}
    moments = sorted({moment for column in columns.values() for moment in column.events})
    for column in columns.values():
        column.draw(moments)
    said = {timedelta(seconds=after): text for after, text in BURST}
    say(dim(in_columns("clock", "Ada says", *MODES, widths=WIDTHS)))
    for moment in moments:
        clock = dim(f"{moment.total_seconds():5.2f}")
        say(
            in_columns(
                clock, said.get(moment, ""), *(one.cells[moment] for one in columns.values()), widths=WIDTHS
            )
        )
    say("")
    say(dim(in_columns("mode", "turns", "replies", "the last reply", widths=TOTALS)))
    for mode, column in columns.items():
        turns, replies = str(column.turns), str(len(column.replies))
        say(in_columns(mode, turns, replies, column.replies[-1], widths=TOTALS))


async def run_burst(home: Path, mode: str) -> ModeColumn:
    """Send the burst to a gateway in that mode, and return its events by their time."""
    clock = FakeClock()
    platform = FakePlatform("telegram", clock=clock)
    config = Config.from_mapping({"timezone": "UTC", "busy": {"mode": mode}, "sessions_json": "off"})
    begin = clock.now()
    async with (
        SessionStore.open(home, config, clock=clock) as store,
        Gateway(store, agent=Planner(), adapters=[platform]) as gateway,
        record_events(gateway) as events,
    ):
        for after, text in BURST:
            await clock.advance_to(begin + timedelta(seconds=after))
            await platform.says("ada", text)
        await clock.advance(minutes=1)
    by_moment: defaultdict[timedelta, list[GatewayEvent]] = defaultdict(list)
    for event in events:
        by_moment[event.at - begin].append(event)
    return ModeColumn(by_moment, [one.text for one in platform.sent if not one.message.is_notice])


@asynccontextmanager
async def record_events(gateway: Gateway) -> AsyncGenerator[list[GatewayEvent]]:
    """Record the messages and turns of a gateway within the block."""
    events: list[GatewayEvent] = []
    wanted = {*MESSAGES, EventKind.TURN_STARTED, EventKind.TURN_ENDED}
    async with gateway.events.listen() as heard, anyio.create_task_group() as tasks:

        async def listen() -> None:
            async for event in heard:
                if event.kind in wanted:
                    events.append(event)  # noqa: PERF401 -- read while it grows

        tasks.start_soon(listen)
        yield events
        tasks.cancel_scope.cancel()
