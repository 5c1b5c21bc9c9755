"""A gateway that was given some lanes leaves all others as they are, for the gateway that serves them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Gateway, SessionState, SessionStore
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy
from gateway_sessions.runtime.agents.protocol import SessionEnding
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.duties.session_hooks import SessionFinalized
from gateway_sessions.testing.agents import ScriptedAgent, hangs
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.gateway.restartable_gateway import RestartableGateway
from tests.integration.store.lane_rows import rows_of_lane

OTHERS = ("ann", "bob", "cid")
MINE = "zoe"
"""The last one in every order."""
APART = BusyRules(debounce=timedelta(0))
LATER = BusyRules(mode=BusyMode.COLLECT, debounce=timedelta(seconds=7), debounce_cap=timedelta(seconds=7))
A_WEEK = timedelta(days=7)


class Farewelled:
    """Answers, and keeps who says goodbye to it."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.farewells: list[str] = []

    async def run_turn(self, turn: TurnContext) -> str:
        self.heard.append(turn.text)
        return f"you said: {turn.text}"

    async def on_session_ending(self, ending: SessionEnding) -> None:
        self.farewells.append(ending.entry.session_key)


@pytest.fixture
def restartable(tmp_path: Path) -> RestartableGateway:
    return RestartableGateway(
        tmp_path, replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))
    )


def key(restartable: RestartableGateway, person: str) -> str:
    return SessionStore.open(restartable.home, restartable.config).key_for(
        restartable.platform.source(person)
    )


async def leave_work(restartable: RestartableGateway, *people: str) -> None:
    """Replies that are owed, a turn that was cut off on each lane, and messages that wait behind it."""
    async with restartable.run(agent=Farewelled()) as harness:
        with harness.platform.outage():
            for person in people:
                await harness.platform.says(person, "hello")
            await harness.wait_until_idle()
            await harness.gateway.drain()
    async with restartable.run(killed=True, agent=ScriptedAgent(*[[hangs()]] * len(people))) as harness:
        with harness.platform.outage():
            for person in people:
                await harness.platform.says(person, "cut off")
                await harness.platform.says(person, "waits")
            await harness.wait_until_idle()
    async with SessionStore.open(restartable.home, restartable.config, clock=restartable.clock):
        pass


async def test_all_other_lanes_stay_as_they_are(restartable: RestartableGateway):
    await leave_work(restartable, *OTHERS, MINE)
    before = {person: rows_of_lane(restartable.home, key(restartable, person)) for person in OTHERS}
    agent = Farewelled()
    async with restartable.run(agent=agent, lanes=[key(restartable, MINE)]) as harness:
        restartable.clock.step(timedelta(seconds=30))
        await harness.wait_until_idle()
        await harness.gateway.settled()
        assert not harness.gateway.busy
    assert agent.heard
    assert {one.target.chat_id for one in restartable.platform.sent} == {MINE}
    assert "you said: hello" in [text.removeprefix(REPEATED) for text in restartable.platform.shown(MINE)]
    assert {person: rows_of_lane(restartable.home, key(restartable, person)) for person in OTHERS} == before
    everybody = Farewelled()
    async with restartable.run(agent=everybody) as harness:
        await harness.wait_until_idle()
        assert "waits" in everybody.heard
        for person in OTHERS:
            entry = await harness.store.get_or_create_session(
                restartable.platform.source(person), touch=False
            )
            assert entry.state is SessionState.ACTIVE
            assert await harness.store.queue_depth(entry.session_key) == 0


async def test_the_lane_of_its_own_is_served_as_ever(restartable: RestartableGateway):
    async with SessionStore.open(restartable.home, restartable.config, clock=restartable.clock) as store:
        for person in OTHERS:
            message = InboundMessage(
                source=restartable.platform.source(person), text="waits", message_id=person
            )
            await store.enqueue(message, rules=APART)
    agent = Farewelled()
    async with restartable.run(agent=agent, lanes=[key(restartable, MINE)]) as harness:
        await harness.platform.says(MINE, "at once")
        message = InboundMessage(source=restartable.platform.source(MINE), text="later", message_id="later")
        await harness.store.enqueue(message, rules=LATER)
        await harness.wait_until_idle()
        assert agent.heard == ["at once"]
        await restartable.clock.advance(timedelta(seconds=8))
        assert agent.heard == ["at once", "later"]
        await harness.platform.says("dan", "taken in, and left")
        await harness.wait_until_idle()
        assert await harness.store.queue_depth(key(restartable, "dan")) == 1
    assert agent.heard == ["at once", "later"]
    assert restartable.platform.shown() == ["you said: at once", "you said: later"]


async def test_a_reply_of_its_own_is_tried_again_behind_those_of_many_others(restartable: RestartableGateway):
    agent = Farewelled()
    people = [f"p{number:03}" for number in range(150)]
    async with restartable.run(agent=agent) as harness:
        with harness.platform.outage():
            for person in (*people, MINE):
                await harness.platform.says(person, "hello")
            await harness.wait_until_idle()
            await harness.gateway.drain()
    restartable.clock.step(timedelta(minutes=10))
    async with restartable.run(agent=agent, lanes=[key(restartable, MINE)]) as harness:
        with harness.platform.outage():
            await harness.wait_until_idle()
        await restartable.clock.advance(timedelta(minutes=10))
        await harness.wait_until_idle()
    assert [one.target.chat_id for one in restartable.platform.sent] == [MINE]


async def test_nobody_says_goodbye_to_the_agent_of_a_visitor(restartable: RestartableGateway):
    async with restartable.run(agent=Farewelled()) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
    agent = Farewelled()
    async with restartable.run(agent=agent, lanes=[key(restartable, MINE)]):
        await restartable.clock.advance(A_WEEK)
    assert agent.farewells == []


async def test_without_upkeep_no_session_ends_by_itself(restartable: RestartableGateway):
    ended: list[str] = []

    async def note(event: SessionFinalized) -> None:
        ended.append(event.session_id)

    async with restartable.run(agent=Farewelled()) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
    before = rows_of_lane(restartable.home, key(restartable, "ann"))
    visiting = SessionStore.open(restartable.home, restartable.config, clock=restartable.clock, upkeep=False)
    async with visiting as store, Gateway(store, agent=Farewelled(), lanes=[]):
        await restartable.clock.advance(A_WEEK)
    assert rows_of_lane(restartable.home, key(restartable, "ann")) == before
    async with SessionStore.open(restartable.home, restartable.config, clock=restartable.clock, hooks=[note]):
        await restartable.clock.advance(timedelta(hours=1))
    assert len(ended) == 1
