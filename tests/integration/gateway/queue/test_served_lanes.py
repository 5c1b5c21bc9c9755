"""A gateway that was given some lanes leaves all others as they are, for the gateway that serves them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Gateway, SessionState, SessionStore
from gateway_sessions.core.delivery.retry_policy import REPEATED
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy
from gateway_sessions.runtime.agents.protocol import SessionEnding
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.duties.hooks import SessionFinalized
from gateway_sessions.testing.agents import ScriptedAgent, hangs
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.gateway.restartable_gateway import Lives
from tests.integration.store.lane_rows import kept

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
def lives(tmp_path: Path) -> Lives:
    return Lives(
        tmp_path, replace(QUICK, session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))
    )


def key(lives: Lives, person: str) -> str:
    return SessionStore.open(lives.home, lives.config).key_for(lives.platform.source(person))


async def leave_work(lives: Lives, *people: str) -> None:
    """Replies that are owed, a turn that was cut off on each lane, and messages that wait behind it."""
    async with lives.life(agent=Farewelled()) as house:
        with house.platform.outage():
            for person in people:
                await house.platform.says(person, "hello")
            await house.wait_until_idle()
            await house.gateway.drain()
    async with lives.life(killed=True, agent=ScriptedAgent(*[[hangs()]] * len(people))) as house:
        with house.platform.outage():
            for person in people:
                await house.platform.says(person, "cut off")
                await house.platform.says(person, "waits")
            await house.wait_until_idle()
    async with SessionStore.open(lives.home, lives.config, clock=lives.clock):
        pass


async def test_all_other_lanes_stay_as_they_are(lives: Lives):
    await leave_work(lives, *OTHERS, MINE)
    before = {person: kept(lives.home, key(lives, person)) for person in OTHERS}
    agent = Farewelled()
    async with lives.life(agent=agent, lanes=[key(lives, MINE)]) as house:
        lives.clock.step(timedelta(seconds=30))
        await house.wait_until_idle()
        await house.gateway.settled()
        assert not house.gateway.busy
    assert agent.heard
    assert {one.target.chat_id for one in lives.platform.sent} == {MINE}
    assert "you said: hello" in [text.removeprefix(REPEATED) for text in lives.platform.shown(MINE)]
    assert {person: kept(lives.home, key(lives, person)) for person in OTHERS} == before
    everybody = Farewelled()
    async with lives.life(agent=everybody) as house:
        await house.wait_until_idle()
        assert "waits" in everybody.heard
        for person in OTHERS:
            entry = await house.store.get_or_create_session(lives.platform.source(person), touch=False)
            assert entry.state is SessionState.ACTIVE
            assert await house.store.queue_depth(entry.session_key) == 0


async def test_the_lane_of_its_own_is_served_as_ever(lives: Lives):
    async with SessionStore.open(lives.home, lives.config, clock=lives.clock) as store:
        for person in OTHERS:
            message = InboundMessage(source=lives.platform.source(person), text="waits", message_id=person)
            await store.enqueue(message, rules=APART)
    agent = Farewelled()
    async with lives.life(agent=agent, lanes=[key(lives, MINE)]) as house:
        await house.platform.says(MINE, "at once")
        message = InboundMessage(source=lives.platform.source(MINE), text="later", message_id="later")
        await house.store.enqueue(message, rules=LATER)
        await house.wait_until_idle()
        assert agent.heard == ["at once"]
        await lives.clock.advance(timedelta(seconds=8))
        assert agent.heard == ["at once", "later"]
        await house.platform.says("dan", "taken in, and left")
        await house.wait_until_idle()
        assert await house.store.queue_depth(key(lives, "dan")) == 1
    assert agent.heard == ["at once", "later"]
    assert lives.platform.shown() == ["you said: at once", "you said: later"]


async def test_a_reply_of_its_own_is_tried_again_behind_those_of_many_others(lives: Lives):
    agent = Farewelled()
    people = [f"p{number:03}" for number in range(150)]
    async with lives.life(agent=agent) as house:
        with house.platform.outage():
            for person in (*people, MINE):
                await house.platform.says(person, "hello")
            await house.wait_until_idle()
            await house.gateway.drain()
    lives.clock.step(timedelta(minutes=10))
    async with lives.life(agent=agent, lanes=[key(lives, MINE)]) as house:
        with house.platform.outage():
            await house.wait_until_idle()
        await lives.clock.advance(timedelta(minutes=10))
        await house.wait_until_idle()
    assert [one.target.chat_id for one in lives.platform.sent] == [MINE]


async def test_nobody_says_goodbye_to_the_agent_of_a_visitor(lives: Lives):
    async with lives.life(agent=Farewelled()) as house:
        await house.platform.says("ann", "hello")
        await house.wait_until_idle()
    agent = Farewelled()
    async with lives.life(agent=agent, lanes=[key(lives, MINE)]):
        await lives.clock.advance(A_WEEK)
    assert agent.farewells == []


async def test_without_upkeep_no_session_ends_by_itself(lives: Lives):
    ended: list[str] = []

    async def note(event: SessionFinalized) -> None:
        ended.append(event.session_id)

    async with lives.life(agent=Farewelled()) as house:
        await house.platform.says("ann", "hello")
        await house.wait_until_idle()
    before = kept(lives.home, key(lives, "ann"))
    visiting = SessionStore.open(lives.home, lives.config, clock=lives.clock, upkeep=False)
    async with visiting as store, Gateway(store, agent=Farewelled(), lanes=[]):
        await lives.clock.advance(A_WEEK)
    assert kept(lives.home, key(lives, "ann")) == before
    async with SessionStore.open(lives.home, lives.config, clock=lives.clock, hooks=[note]):
        await lives.clock.advance(timedelta(hours=1))
    assert len(ended) == 1
