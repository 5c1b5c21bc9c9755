"""Drives a gateway, its people, agents and platform step by step, with the model beside them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TypeVar

from gateway_sessions import Config, SessionEntry, SessionSource, SessionStore
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import FencedError
from gateway_sessions.runtime.agents.protocol import Answer
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.restartable_gateway import AT_ONCE, KillableAdapter, home_after_kill
from tests.property.gateway import gateway_rows as truth_is
from tests.property.gateway.gateway_model import Facts, Model
from tests.property.gateway.gateway_rows import StoredRows
from tests.property.machines import StepRunner
from tests.watched_moves import watching_moves

T = TypeVar("T")
Order = Callable[[TurnContext], Awaitable[Answer]]

NAMES = ("ann", "bob", "room")
WRITERS = {"ann": ("ann",), "bob": ("bob",), "room": ("cid", "dan")}


@dataclass(eq=False)
class RunningTurn:
    """A turn as its agent sees it; it does what it is told."""

    lane: str
    turn: TurnContext
    late: str
    """What it tries to write after it was stopped."""
    last_role: str
    """Who said the last of what it was shown at its beginning."""
    began_at: datetime
    orders: asyncio.Queue[Order] = field(default_factory=asyncio.Queue)
    stack: ExitStack = field(default_factory=ExitStack)
    facts: Facts = field(default_factory=Facts)
    wrote_late: list[str] = field(default_factory=list[str])


class DrivenAgent:
    """An agent that is steered, closed and told what to do."""

    def __init__(self, driver: GatewayDriver, key: str) -> None:
        self._driver = driver
        self._lane = next(name for name, one in driver.keys.items() if one == key)
        self.closes = 0

    async def run_turn(self, turn: TurnContext) -> Answer:
        driver = self._driver
        began_at = driver.clock.now()
        history = await turn.history()
        run = RunningTurn(self._lane, turn, f"late {next(driver.numbers)};", history[-1]["role"], began_at)
        driver.begun.append(run)
        with run.stack:
            while True:
                order = await self._next(run)
                if (answer := await order(turn)) is not None:
                    return answer

    async def _next(self, run: RunningTurn) -> Order:
        try:
            return await run.orders.get()
        except asyncio.CancelledError:
            if self._driver.stubborn:
                await self._write_late(run)
            raise

    async def _write_late(self, run: RunningTurn) -> None:
        try:
            await run.turn.append({"role": "assistant", "content": run.late})
            await run.turn.say(run.late)
        except FencedError:
            return
        run.wrote_late.append(run.late)

    async def steer(self, message: InboundMessage) -> bool:
        return self._driver.takes_it

    async def aclose(self) -> None:
        self.closes += 1


class GatewayDriver:
    """One gateway over its lives. Each step is made here and in the model; then everything rests."""

    def __init__(self, config: Config) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="gateway-model-"))
        self.home = self.base / "home"
        self.config = config
        self.watching = ExitStack()
        self.watching.enter_context(watching_moves())
        self.runner = StepRunner()
        self.clock = FakeClock()
        self.platform = FakePlatform(clock=self.clock, capabilities=AdapterCapabilities(edit=True), run="")
        freshness = config.agent.gateway_auto_continue_freshness
        self.model = Model(NAMES, config.busy, config.agent.max_restart_attempts, freshness)
        self.trouble = ExitStack()
        """What is wrong with the platform now."""
        self.numbers = count(1)
        self.is_sound = False
        """Whether all was well after the last step."""
        self.set_back = timedelta(0)
        """How far the clock was set back in all."""
        self.latest = self.clock.now()
        """The latest time that the clock has ever shown."""
        self.stubborn = False
        """Whether agents write on after they were stopped."""
        self.takes_it = True
        """Whether agents take messages while they work."""
        self.begun: list[RunningTurn] = []
        """Turns of which the model does not know yet."""
        self.runs: dict[str, RunningTurn] = {}
        self.forbidden: list[str] = []
        """What nobody may ever read."""
        self.agents: list[DrivenAgent] = []
        self.runner.run(self.open())

    def source(self, name: str, writer: int = 0) -> SessionSource:
        """Where somebody writes."""
        writers = WRITERS[name]
        return self.platform.source(writers[writer % len(writers)], chat=name if name == "room" else None)

    # Steps

    def do_and_learn(self, work: Awaitable[T], then: Callable[[T], object] | None = None) -> T:
        """Do something and wait until everything rests; then tell the model, and of turns that have begun."""

        async def whole() -> T:
            outcome = await work
            await self.clock.advance()
            return outcome

        self.is_sound = False
        outcome = self.runner.run(whole())
        self.latest = max(self.latest, self.clock.now())
        if then is not None:
            then(outcome)
        self.learn_begun_turns()
        return outcome

    def learn_begun_turns(self) -> None:
        """Tell the model of turns that have begun."""
        for run in self.begun:
            turn, lane = run.turn, self.model.lanes[run.lane]
            attempt = lane.begins([one.text for one in turn.messages], turn.session_id, run.began_at)
            assert turn.attempt == attempt
            assert attempt == 1 or turn.recovered is not None
            if lane.is_new:
                assert run.last_role == "user", "an agent is asked nothing"
            self.runs[run.lane] = run
        self.begun.clear()

    def order(self, name: str, order: Order, then: Callable[[], object]) -> None:
        """Let the agent of a running turn do something."""

        async def give() -> None:
            self.runs[name].orders.put_nowait(order)

        self.do_and_learn(give(), lambda _: then())

    def note_turn_end(self, name: str) -> None:
        """A turn has ended; if its agent wrote on while it still might, that counts."""
        self.model.lanes[name].replies += self.runs.pop(name).wrote_late

    def overtaken(self, name: str) -> None:
        """Whatever ran or waited on a lane has lost it."""
        self.model.lanes[name].is_overtaken()
        if (run := self.runs.pop(name, None)) is not None:
            assert not run.wrote_late, "a turn that was overtaken could write"
            self.forbidden.append(run.late)

    def wake_duties(self) -> None:
        """Duties that sleep do not notice that a clock was set."""

        async def look() -> None:
            self.gateway.look_again()

        self.do_and_learn(look())

    # Lives

    async def open(self) -> None:
        """Begin a life."""
        store = SessionStore.open(self.home, self.config, clock=self.clock)
        await store.__aenter__()
        await self.open_gateway(store)

    async def open_gateway(self, store: SessionStore) -> None:
        """Begin the rest of a life."""
        self.store = store
        self.line = KillableAdapter(self.platform)
        self.keys = {name: store.key_for(self.source(name)) for name in NAMES}
        self.gateway = Gateway(store, agent_factory=self.make_agent, adapters=[self.line])
        await self.gateway.__aenter__()
        truth, at = self.read_stored_rows(), self.clock.now()
        self.model.starts(at, [(name, seq) for name, key in self.keys.items() for seq in truth.too_old(key)])
        await self.clock.advance()

    def make_agent(self, entry: SessionEntry, history: list[Chat]) -> DrivenAgent:
        """An agent for a session."""
        agent = DrivenAgent(self, entry.session_key)
        self.agents.append(agent)
        return agent

    async def close(self) -> None:
        """End a life in order."""
        await self.gateway.drain(AT_ONCE)
        await self.gateway.__aexit__(None, None, None)
        await self.store.__aexit__(None, None, None)
        assert [agent.closes for agent in self.agents] == [1] * len(self.agents)
        self.agents.clear()

    def close_alone(self) -> None:
        """The same, when nobody else lives here."""
        self.runner.run(self.close())
        assert not asyncio.all_tasks(self.runner.get_loop()), "something goes on after the end"

    def restart(self) -> None:
        """End a life, and begin another one."""
        self.close_alone()
        self.all_went_back()
        self.do_and_learn(self.open())
        assert self.store.started.clean

    def crash(self, away: timedelta = timedelta(0)) -> None:
        """Be killed, and begin another life with what was durable, after a while."""
        left, old = home_after_kill(self.home), self.home
        self.line.dead = True
        self.close_alone()
        shutil.rmtree(old)
        self.home = left
        self.runs.clear()
        self.clock.step(away)
        self.sets_right()
        self.model.starts_unclean(self.clock.now(), self.latest)
        self.do_and_learn(self.open())
        assert not self.store.started.clean

    def take_over(self) -> None:
        """Let a newcomer ask for the store, and give way to it."""
        newcomer = SessionStore.open(self.home, self.config, clock=self.clock, wait=3600)

        async def give_way() -> None:
            async with asyncio.TaskGroup() as tasks:
                opening = tasks.create_task(newcomer.__aenter__())
                await self.store.drain_requested.wait()
                closing = tasks.create_task(self.close())
                while not (opening.done() and closing.done()):
                    await self.clock.advance(seconds=0.05)
            self.learn_begun_turns()
            self.all_went_back()
            await self.open_gateway(newcomer)

        self.do_and_learn(give_way())

    def all_went_back(self) -> None:
        """A process has ended in order: what ran waits again, unless that was one try too many."""
        for name in list(self.runs):
            self.note_turn_end(name)
        self.model.ends_in_order(self.clock.now())
        self.sets_right()

    def sets_right(self) -> None:
        """A process that begins sees whether the clock of an earlier one was ahead."""
        if self.read_stored_rows().latest_stamp > to_micros(self.clock.now()):
            self.model.pulls_forward(self.clock.now())

    def end(self) -> None:
        """The platform is well again, time passes, and all is said; unless a step has failed already."""
        with self.watching:
            if self.is_sound:
                self.trouble.close()
                self.clock.step(self.set_back)
                self.wake_duties()
                for _ in range(6):
                    self.do_and_learn(self.clock.advance(minutes=3))
                assert {row["state"] for row in self.read_stored_rows().outbox} <= {"sent", "dead"}
                self.compare_with_model()
                self.close_alone()
            self.runner.close()
            shutil.rmtree(self.base)

    # What is true after each step

    def read_stored_rows(self) -> StoredRows:
        """What is stored now."""
        return StoredRows(self.home, list(self.keys.values()))

    def compare_with_model(self) -> None:
        """Look at everything that was stored and shown."""
        truth = self.read_stored_rows()
        for name, lane in self.model.lanes.items():
            truth_is.queue_is_as_the_model_says(truth, self.keys[name], lane)
            truth_is.transcripts_have_each_message_once(truth, lane)
        truth_is.nothing_was_written_by_those_who_lost_their_lane(truth, self.forbidden)
        truth_is.replies_are_as_the_model_says(truth, self.platform.sent, self.keys, self.model.lanes)
        self.nobody_waits_while_there_is_room()
        self.is_sound = True

    def nobody_waits_while_there_is_room(self) -> None:
        """As many turns run as there may be, and no more."""
        lanes, now = self.model.lanes, self.clock.now()
        running = {name for name, one in lanes.items() if one.running is not None}
        assert self.runs.keys() == running
        assert len(running) <= self.config.gateway.max_turns
        waiting = [one.waiting[0] for one in lanes.values() if one.running is None and one.waiting]
        ready = [slot for slot in waiting if slot.ready_at <= now]
        assert not ready or len(running) == self.config.gateway.max_turns
