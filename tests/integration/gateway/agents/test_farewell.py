"""An agent whose session ends by itself has one last word: once, in nobody's way, with all that was said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.budgets import BudgetLimit, Budgets
from gateway_sessions.config import AgentConfig
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.runtime.agents.protocol import SessionEnding
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.farewell import HOOK
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import Gate, ScriptedAgents
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.documented_events import take_events
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, open_harness

IDLE = replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))


class Saving:
    """Saves what was said when its session ends, or does whatever it is told."""

    def __init__(self, then: Callable[[SessionEnding], object] | None = None) -> None:
        self.endings: list[SessionEnding] = []
        self.closes = 0
        self._then = then

    async def run_turn(self, turn: TurnContext) -> str:
        return turn.text

    async def on_session_ending(self, ending: SessionEnding) -> None:
        self.endings.append(ending)
        outcome = self._then(ending) if self._then is not None else None
        if asyncio.iscoroutine(outcome):
            await outcome

    async def aclose(self) -> None:
        self.closes += 1


async def talks(harness: GatewayHarness, person: str = "ann", text: str = "hello") -> str:
    await harness.platform.says(person, text)
    await harness.wait_until_idle()
    session_id = await harness.store.peek_session_id(harness.key(person))
    assert session_id is not None
    return session_id


async def expires(harness: GatewayHarness) -> None:
    """Time passes, and the watcher ends what is due."""
    harness.clock.step(hours=2)
    await harness.store.watcher.sweep()
    await harness.wait_until_idle()


async def owed(harness: GatewayHarness) -> list[tuple[object, ...]]:
    """What the journal has of it that is not done."""

    def read():
        return (yield Statement("next_hook_try", (HOOK, "[]")))

    return [row for row in await harness.store.db.read(read) if row[0] is not None]


async def test_it_is_told_once_after_a_session_has_been_idle_too_long(tmp_path: Path):
    agent = Saving()
    async with (
        open_harness(tmp_path, IDLE, agent=agent) as harness,
        harness.store.events.listen(kinds=[EventKind.FAREWELL]) as listener,
    ):
        session_id = await talks(harness)
        await expires(harness)
        (ending,) = agent.endings
        assert (ending.entry.session_id, ending.reason) == (session_id, "idle")
        assert [row["content"] for row in ending.history] == ["hello", "hello"]
        assert ending.deadline == harness.clock.now() + timedelta(seconds=20)
        (event,) = take_events(listener)
        assert (event.session_id, event.facts) == (session_id, {"reason": "idle", "outcome": "said"})
        await talks(harness, text="again")
        assert len(agent.endings) == 1
        assert await owed(harness) == []


async def test_a_reset_at_the_next_message_tells_it_as_well_and_holds_that_up_for_nothing(tmp_path: Path):
    gate = Gate()
    agent = Saving(lambda _: gate.passage())
    async with open_harness(tmp_path, IDLE, agent=agent) as harness:
        old = await talks(harness)
        harness.clock.step(hours=2)  # before the watcher looks
        new = await talks(harness, text="again")
        assert new != old
        assert harness.platform.shown("ann")[-1] == "again"
        await gate.reached()
        assert [ending.entry.session_id for ending in agent.endings] == [old]
        gate.open()
        await harness.wait_until_idle()
        assert await owed(harness) == []


@pytest.mark.parametrize("end", ["reset", "suspended", "pruned"])
async def test_what_somebody_wanted_to_end_is_not_told(tmp_path: Path, end: str):
    agent = Saving()
    async with open_harness(tmp_path, agent=agent) as harness:
        await talks(harness)
        if end == "reset":
            await harness.store.reset_session(harness.key("ann"))
        elif end == "suspended":
            await harness.store.suspend_session(harness.key("ann"))
            await talks(harness, text="again")
        else:
            harness.clock.step(days=2)
            await harness.store.prune_old_entries(1)
        await harness.wait_until_idle()
        assert agent.endings == []
        assert await owed(harness) == []


async def test_a_session_in_which_nothing_was_said_ends_in_silence(tmp_path: Path):
    agent = Saving()
    async with open_harness(tmp_path, IDLE, agent=agent) as harness:
        await harness.store.get_or_create_session(harness.platform.source("ann"))
        await expires(harness)
        assert agent.endings == []


async def test_the_warm_agent_of_the_session_is_asked_and_then_closed_once(tmp_path: Path):
    agents = ScriptedAgents()
    config = replace(IDLE, agent_cache=replace(QUICK.agent_cache, idle=timedelta(days=1)))
    async with open_harness(tmp_path, config, agent_factory=agents) as harness:
        await talks(harness)
        await expires(harness)
        ((_, agent),) = agents.made
        assert len(agent.endings) == 1
        assert agent.closes == 1
        assert harness.gateway.agents.counts.idle == 0


async def test_an_agent_is_made_where_none_is_warm_and_the_new_session_keeps_its_own(tmp_path: Path):
    agents = ScriptedAgents()
    config = replace(IDLE, agent_cache=replace(QUICK.agent_cache, idle=timedelta(minutes=10)))
    async with open_harness(tmp_path, config, agent_factory=agents) as harness:
        session_id = await talks(harness)
        await expires(harness)
        assert [len(agent.endings) for _, agent in agents.made] == [0, 1]
        assert agents.made[1][1].endings[0].entry.session_id == session_id
        await talks(harness, text="again")
        assert harness.gateway.agents.counts.idle == 1
    assert agents.open == []
    assert agents.closed_twice == []


async def test_an_agent_of_the_next_session_is_left_alone(tmp_path: Path):
    gate = Gate()
    made: list[Saving] = []

    async def factory(entry: SessionEntry, history: list[object]) -> Saving:
        if made and history[-1]["content"] != "again":  # type: ignore[index]
            await gate.passage()
        made.append(Saving())
        return made[-1]

    async with open_harness(tmp_path, IDLE, agent_factory=factory) as harness:
        await talks(harness)
        harness.clock.step(hours=2)
        await talks(harness, text="again")
        gate.open()
        await harness.wait_until_idle()
        await talks(harness, text="again")
        told = [agent for agent in made if agent.endings]
        assert len(told) == 1
        assert (told[0].closes, harness.gateway.agents.counts.idle) == (1, 1)


async def test_agents_that_do_not_want_to_hear_of_it_cost_nothing(tmp_path: Path):
    async def echo(turn: TurnContext) -> str:
        return turn.text

    async with open_harness(tmp_path, IDLE, agent=echo) as harness:
        assert HOOK not in harness.store.hooks.names
    none = replace(IDLE, agent=AgentConfig(farewell=None))
    async with open_harness(tmp_path, none, agent=Saving()) as harness:
        assert HOOK not in harness.store.hooks.names


async def test_a_factory_shows_what_its_agents_want_when_it_makes_one(tmp_path: Path):
    class Plain:
        def __init__(self, entry: SessionEntry, history: list[object]) -> None:
            """As a factory is called."""

        async def run_turn(self, turn: TurnContext) -> str:
            return turn.text

    made: list[Plain] = []

    def factory(entry: SessionEntry, history: list[object]) -> Plain:
        made.append(Plain(entry, history))
        return made[-1]

    async with open_harness(tmp_path / "class", IDLE, agent_factory=Plain) as harness:
        assert HOOK not in harness.store.hooks.names
    clock = FakeClock()
    async with open_harness(tmp_path, IDLE, clock=clock, agent_factory=factory) as harness:
        assert HOOK in harness.store.hooks.names
        await talks(harness)
        await expires(harness)
        assert len(made) == 1
        await talks(harness, text="again")
    made.clear()
    async with (
        open_harness(tmp_path, IDLE, clock=clock, agent_factory=factory) as harness,
        harness.store.events.listen(kinds=[EventKind.FAREWELL]) as listener,
    ):
        await expires(harness)
        assert len(made) == 1
        assert take_events(listener) == []


async def test_one_that_takes_too_long_is_cut_off_and_never_told_again(tmp_path: Path):
    agent = Saving(lambda ending: asyncio.Event().wait())
    async with (
        open_harness(tmp_path, IDLE, agent=agent) as harness,
        harness.store.events.listen(kinds=[EventKind.FAREWELL]) as listener,
    ):
        await talks(harness)
        await expires(harness)
        await harness.clock.advance(seconds=20)
        await harness.clock.advance(minutes=10)
        (ending,) = agent.endings
        (dead,) = await harness.store.hooks.dead_letters()
        assert (dead.hook, dead.last_error) == (HOOK, "took longer than 20 s")
        (event,) = take_events(listener)
        assert event.facts["outcome"] == "failed"
        assert event.at == ending.deadline


async def test_one_that_fails_is_a_dead_letter_at_once(tmp_path: Path):
    def fail(ending: SessionEnding) -> None:
        raise OSError("the notes are away")

    agent = Saving(fail)
    async with open_harness(tmp_path, IDLE, agent=agent) as harness:
        await talks(harness)
        await expires(harness)
        assert len(agent.endings) == 1
        (dead,) = await harness.store.hooks.dead_letters()
        assert dead.last_error == "OSError: the notes are away"
        await harness.store.hooks.requeue(dead.idempotency_key)  # somebody wants it all the same
        await harness.wait_until_idle()
        first, second = agent.endings
        assert first.idempotency_key == second.idempotency_key


async def test_what_it_uses_is_counted_for_its_session_and_not_for_its_turns(tmp_path: Path):
    def save(ending: SessionEnding) -> None:
        ending.report_usage(model="small", input_tokens=40, estimated_cost_usd=0.01)
        ending.report_usage(task="embedding", input_tokens=2)
        raise OSError("after it was used")

    async with open_harness(tmp_path, IDLE, agent=Saving(save)) as harness:
        session_id = await talks(harness)
        await expires(harness)
        usage = await harness.store.db.usage_of_session(session_id)
        assert {part.task: part.used.input_tokens for part in usage.parts} == {"farewell": 40, "embedding": 2}
        assert usage.turns.total_tokens == 0


async def test_where_a_budget_is_used_up_nothing_more_is_spent(tmp_path: Path):
    async def costly(turn: TurnContext) -> str:
        turn.report_usage(input_tokens=100)
        return "ok"

    agent = Saving()
    agent.run_turn = costly  # type: ignore[method-assign]
    config = replace(IDLE, budgets=Budgets(session=BudgetLimit(tokens=100)))
    async with (
        open_harness(tmp_path, config, agent=agent) as harness,
        harness.store.events.listen(kinds=[EventKind.FAREWELL]) as listener,
    ):
        await talks(harness)
        await expires(harness)
        assert agent.endings == []
        (event,) = take_events(listener)
        assert event.facts["outcome"] == "no_budget"


async def test_what_was_brought_back_or_is_gone_has_not_ended(tmp_path: Path):
    agent = Saving()
    async with open_harness(tmp_path, IDLE, agent=agent) as harness:
        session_id = await talks(harness)
        for one in (session_id, "20260101_000000_00000000"):
            await harness.store.db.write(partial(owe, harness.key("ann"), one))
        harness.store.hooks.wake()
        await harness.wait_until_idle()
        assert agent.endings == []
        assert await owed(harness) == []


async def test_a_gateway_that_crashed_leaves_the_hook_to_the_next_one(tmp_path: Path):
    async with SessionStore.open(tmp_path, IDLE, clock=FakeClock()) as store:
        for _ in range(2):
            gateway = Gateway(store, agent=Saving(), adapters=[FakePlatform()])
            with pytest.raises(ZeroDivisionError):
                await end_by_a_crash(gateway)
        assert HOOK not in store.hooks.names


async def end_by_a_crash(gateway: Gateway) -> None:
    async def crash() -> None:
        raise ZeroDivisionError

    async with gateway:
        gateway._parts.turn_tasks.start_task(crash())  # noqa: SLF001 -- for a fault of ours, of which none is known
        await asyncio.sleep(0.01)


class TestAcrossProcesses:
    """At most once, whatever ends in the middle of it."""

    async def test_a_gateway_that_ends_lets_it_come_to_its_end(self, tmp_path: Path):
        gate, told = Gate(), list[str]()

        async def slowly(ending: SessionEnding) -> None:
            await gate.passage()
            told.append(ending.entry.session_id)

        async with open_harness(tmp_path, IDLE, agent=Saving(slowly)) as harness:
            await talks(harness)
            await expires(harness)
            await gate.reached()
            asyncio.get_running_loop().call_later(0.01, gate.open)
        assert len(told) == 1

    async def test_one_that_was_never_begun_is_told_by_the_next_gateway(self, tmp_path: Path):
        clock, agent = FakeClock(), Saving()
        async with SessionStore.open(tmp_path, IDLE, clock=clock) as store:
            platform = FakePlatform(clock=clock)
            async with Gateway(store, agent=agent, adapters=[platform]) as gateway:
                harness = GatewayHarness(tmp_path, platform, clock, store, gateway)
                session_id = await talks(harness)
            await store.reset_session(harness.key("ann"))
            await store.db.write(partial(owe, harness.key("ann"), session_id))
            async with Gateway(store, agent=agent, adapters=[platform]):
                await platform.wait_until_idle()
                (ending,) = agent.endings
                assert ending.entry.session_id == session_id

    async def test_one_that_was_begun_is_not_told_again(self, tmp_path: Path):
        agent = Saving()
        async with open_harness(tmp_path, IDLE, agent=agent) as harness:
            session_id = await talks(harness)
            await harness.store.reset_session(harness.key("ann"))
            await harness.store.db.write(partial(owe, harness.key("ann"), session_id, attempts=1))
            harness.store.hooks.wake()
            await harness.wait_until_idle()
            assert agent.endings == []
            (dead,) = await harness.store.hooks.dead_letters()
            assert (dead.session_id, dead.last_error) == (session_id, "the process ended in this attempt")

    async def test_one_that_a_closing_store_breaks_off_is_not_told_again(self, tmp_path: Path):
        clock, begun = FakeClock(), Gate()
        hook = Recorder(begun)
        async with SessionStore.open(tmp_path, IDLE, clock=clock) as store:
            store.hooks.register(hook, name=HOOK, once_within=timedelta(minutes=1))
            entry = await store.get_or_create_session(FakePlatform().source("ann"))
            await store.reset_session(entry.session_key)
            await begun.reached()
        async with SessionStore.open(tmp_path, IDLE, clock=clock) as store:
            store.hooks.register(hook, name=HOOK, once_within=timedelta(minutes=1))
            await store.hooks.sweep()
            assert hook.calls == 1
            (dead,) = await store.hooks.dead_letters()
            assert dead.last_error == "the process ended meanwhile"


class Recorder:
    """A hook that never comes to an end."""

    def __init__(self, gate: Gate) -> None:
        self.calls = 0
        self._gate = gate

    async def __call__(self, _: object) -> None:
        self.calls += 1
        await self._gate.passage()


def owe(session_key: str, session_id: str, attempts: int = 0) -> Transaction[None]:
    """Leave a call in the journal, as a process that has ended would."""
    payload = '{"reason":"idle","platform":"fake","chat_type":"dm","ended_at":0}'
    key = f"{session_id}:9:{HOOK}"
    yield Statement("add_hook_call", (key, HOOK, session_key, session_id, "session_finalized", payload, 0, 0))
    for _ in range(attempts):
        yield Statement("begin_hook_call", (0, key))
