"""A clock that was ahead and is set right makes nobody wait for longer than they would have waited anyway."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway_sessions import InboundMessage, SessionStore
from gateway_sessions.config import AgentConfig, HooksConfig
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.sessions.recovery import CleanShutdown, ended_at
from gateway_sessions.runtime.alarm import ClockSteps
from gateway_sessions.runtime.duties.hooks import SessionFinalized
from gateway_sessions.storage.transactions.queue import clock_set_back
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import ScriptedAgent, hangs
from tests.integration.gateway.gateway_harness import QUICK, House
from tests.integration.gateway.restartable_gateway import AT_ONCE, Lives

AHEAD = pytest.mark.parametrize(
    "ahead", [timedelta(seconds=40), timedelta(minutes=20), timedelta(days=1), timedelta(days=4000)]
)
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


def answers(house: House) -> list[str]:
    return [one.text for one in house.platform.sent if not one.message.is_notice]


def sent_now(house: House, text: str) -> InboundMessage:
    return InboundMessage(source=house.platform.source("ann"), text=text, sent_at=house.clock.now())


@AHEAD
async def test_a_burst_is_answered_when_its_own_time_has_passed(lives: Lives, ahead: timedelta):
    lives.clock.step(ahead)
    async with lives.life(agent=ScriptedAgent()) as house:
        await house.platform.says("ann", "look", attachments=(PHOTO,))  # more may come with it
        lives.clock.step(-ahead)
        await house.clock.advance(seconds=2)
        assert answers(house) == ["you said: look"]


@AHEAD
@pytest.mark.parametrize("known", [False, True])
async def test_a_burst_that_came_since_is_waited_for_however_late_the_clock_is_noticed(
    lives: Lives, ahead: timedelta, known: bool
):
    lives.clock.step(ahead)
    async with lives.life(agent=ScriptedAgent()) as house:
        lives.clock.step(-ahead)
        if known:
            house.gateway.look_again()
            await house.clock.advance()
        await house.platform.says("ann", "look", attachments=(PHOTO,))
        for _ in range(2):  # the duties look one after another, and begin what another one has set right
            house.store.hooks.wake()
            house.gateway.look_again()
            await house.clock.advance(seconds=0.15)
            assert answers(house) == []
        await house.clock.advance(seconds=0.05)
        assert answers(house) == ["you said: look"]


@AHEAD
@pytest.mark.parametrize("killed", [False, True])
async def test_a_burst_is_answered_after_a_restart(lives: Lives, ahead: timedelta, killed: bool):
    lives.clock.step(ahead)
    async with lives.life(killed=killed, agent=ScriptedAgent([hangs()])) as house:
        await house.platform.says("ann", "one")
        await house.wait_until_idle()
        await house.platform.says("ann", "look", attachments=(PHOTO,))
        if not killed:
            await house.gateway.drain(AT_ONCE)
    lives.clock.step(-ahead)
    async with lives.life(agent=ScriptedAgent()) as house:
        await house.clock.advance(seconds=2)
        await house.wait_until_idle()
        assert answers(house) == ["you said: one", "you said: look"]


@AHEAD
async def test_a_reply_is_tried_again_when_its_own_pause_has_passed(lives: Lives, ahead: timedelta):
    async with lives.life(agent=ScriptedAgent()) as house:
        lives.clock.step(ahead)
        with house.platform.outage():
            await house.platform.says("ann", "one")
            await house.clock.advance(seconds=1)
        lives.clock.step(-ahead)
        await house.clock.advance(minutes=1)
        assert answers(house) == ["you said: one"]


@AHEAD
@pytest.mark.parametrize("killed", [False, True])
async def test_a_reply_is_sent_after_a_restart(lives: Lives, ahead: timedelta, killed: bool):
    lives.clock.step(ahead)
    with lives.platform.outage():
        async with lives.life(killed=killed, agent=ScriptedAgent()) as house:
            await house.platform.says("ann", "one")
            await house.clock.advance(seconds=1)
            await house.gateway.drain(AT_ONCE)
    lives.clock.step(-ahead)
    async with lives.life(agent=ScriptedAgent()) as house:
        await house.clock.advance(seconds=2)
        assert answers(house) == ["you said: one"]


@AHEAD
async def test_a_turn_whose_database_failed_is_tried_again_after_its_own_pause(
    lives: Lives, ahead: timedelta
):
    async with SessionStore.open(lives.home, QUICK, clock=lives.clock) as store:
        lives.clock.step(ahead)
        await store.enqueue(InboundMessage(source=lives.platform.source("ann"), text="one"))
        turn = await store.claim()
        assert turn is not None
        await turn.release(retry_at=lives.clock.now() + timedelta(seconds=30), counted=True)
    lives.clock.step(-ahead)
    async with lives.life(agent=ScriptedAgent()) as house:
        await house.clock.advance(seconds=2)
        assert answers(house) == ["you said: one"]


@AHEAD
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_hook_is_called_again_when_its_own_pause_has_passed(
    lives: Lives, ahead: timedelta, restarts: bool
):
    called: list[int] = []

    async def hook(ending: SessionFinalized) -> None:
        called.append(ending.attempt)
        if ending.attempt == 1:
            raise ConnectionError

    config = replace(QUICK, hooks=HooksConfig(retry=timedelta(seconds=5)))

    def opened() -> SessionStore:
        return SessionStore.open(lives.home, config, clock=lives.clock, hooks={"hook": hook})

    async with opened() as store:
        entry = await store.get_or_create_session(lives.platform.source("ann"))
        lives.clock.step(ahead)
        await store.reset_session(entry.session_key)
        await lives.clock.advance(seconds=1)
        assert called == [1]
        if not restarts:
            lives.clock.step(-ahead)
            await lives.clock.advance(seconds=30)
    if restarts:
        lives.clock.step(-ahead)
        async with opened():
            await lives.clock.advance(seconds=30)
    assert called == [1, 2]


@AHEAD
async def test_whoever_was_erased_by_a_clock_that_was_ahead_may_come_back(lives: Lives, ahead: timedelta):
    lives.clock.step(ahead)
    async with lives.life(agent=ScriptedAgent()) as house:
        await house.gateway.submit(sent_now(house, "one"))
        await house.wait_until_idle()
        entry = await house.store.get_session(house.key("ann"))
        assert entry is not None
        await house.store.erase(house.platform.source("ann"))
    lives.clock.step(-ahead + timedelta(seconds=10))
    async with lives.life(agent=ScriptedAgent()) as house:
        lives.clock.step(timedelta(seconds=1))
        await house.gateway.submit(sent_now(house, "two"))
        await house.wait_until_idle()
        assert answers(house)[-1] == "you said: two"


async def test_a_clock_that_is_right_ends_no_pause_at_a_restart(lives: Lives):
    lives.config = replace(QUICK, agent=AgentConfig(max_restart_attempts=9))
    async with SessionStore.open(lives.home, lives.config, clock=lives.clock) as store:
        await store.enqueue(InboundMessage(source=lives.platform.source("ann"), text="one"))
        turn = await store.claim()
        assert turn is not None
        await turn.release(retry_at=lives.clock.now() + timedelta(hours=1))
    async with lives.life(agent=ScriptedAgent()) as house:
        assert not await house.store.db.read(lambda: clock_set_back.was_ahead(lives.clock.now(), None))
        await house.clock.advance(minutes=59)
        assert answers(house) == []
        await house.clock.advance(minutes=2)
        assert answers(house) == ["you said: one"]


def test_steps_back_are_noticed_once_and_corrections_are_none(fake_clock: FakeClock):
    steps = ClockSteps(fake_clock)
    assert not steps.was_set_back()
    fake_clock.step(timedelta(days=1))
    assert not steps.was_set_back()
    fake_clock.step(timedelta(milliseconds=-100))
    assert not steps.was_set_back()
    fake_clock.step(timedelta(hours=-1))
    assert steps.was_set_back()
    assert not steps.was_set_back()


@pytest.mark.parametrize("marker", [None, b"", b"{}", b'{"epoch":1}', b'{"epoch":1,"at":"soon"}', b"\xff"])
def test_a_marker_that_tells_no_time_tells_none(marker: bytes | None):
    assert ended_at(marker) is None


def test_a_marker_tells_when_its_process_ended():
    at = datetime(2026, 3, 2, tzinfo=UTC)
    assert ended_at(CleanShutdown(1, at).encode()) == at
