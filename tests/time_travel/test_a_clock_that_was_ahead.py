"""A clock that was ahead and is set right makes nobody wait for longer than they would have waited anyway."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway_sessions import InboundMessage, SessionStore
from gateway_sessions.config import AgentConfig, HooksConfig
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.sessions.recovery import CleanShutdown, clean_end_time
from gateway_sessions.runtime.alarm import ClockSteps
from gateway_sessions.runtime.duties.session_hooks import SessionFinalized
from gateway_sessions.storage.transactions.queue import clock_set_back
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import ScriptedAgent, hangs
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness
from tests.integration.gateway.restartable_gateway import AT_ONCE, RestartableGateway

AHEAD = pytest.mark.parametrize(
    "ahead", [timedelta(seconds=40), timedelta(minutes=20), timedelta(days=1), timedelta(days=4000)]
)
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")


@pytest.fixture
def restartable(tmp_path: Path) -> RestartableGateway:
    return RestartableGateway(tmp_path)


def answers(harness: GatewayHarness) -> list[str]:
    return [one.text for one in harness.platform.sent if not one.message.is_notice]


def sent_now(harness: GatewayHarness, text: str) -> InboundMessage:
    return InboundMessage(source=harness.platform.source("ann"), text=text, sent_at=harness.clock.now())


@AHEAD
async def test_a_burst_is_answered_when_its_own_time_has_passed(
    restartable: RestartableGateway, ahead: timedelta
):
    restartable.clock.step(ahead)
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.platform.says("ann", "look", attachments=(PHOTO,))  # more may come with it
        restartable.clock.step(-ahead)
        await harness.clock.advance(seconds=2)
        assert answers(harness) == ["you said: look"]


@AHEAD
@pytest.mark.parametrize("known", [False, True])
async def test_a_burst_that_came_since_is_waited_for_however_late_the_clock_is_noticed(
    restartable: RestartableGateway, ahead: timedelta, known: bool
):
    restartable.clock.step(ahead)
    async with restartable.run(agent=ScriptedAgent()) as harness:
        restartable.clock.step(-ahead)
        if known:
            harness.gateway.look_again()
            await harness.clock.advance()
        await harness.platform.says("ann", "look", attachments=(PHOTO,))
        for _ in range(2):  # the duties look one after another, and begin what another one has set right
            harness.store.hooks.wake()
            harness.gateway.look_again()
            await harness.clock.advance(seconds=0.15)
            assert answers(harness) == []
        await harness.clock.advance(seconds=0.05)
        assert answers(harness) == ["you said: look"]


@AHEAD
@pytest.mark.parametrize("killed", [False, True])
async def test_a_burst_is_answered_after_a_restart(
    restartable: RestartableGateway, ahead: timedelta, killed: bool
):
    restartable.clock.step(ahead)
    async with restartable.run(killed=killed, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "look", attachments=(PHOTO,))
        if not killed:
            await harness.gateway.drain(AT_ONCE)
    restartable.clock.step(-ahead)
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        assert answers(harness) == ["you said: one", "you said: look"]


@AHEAD
async def test_a_reply_is_tried_again_when_its_own_pause_has_passed(
    restartable: RestartableGateway, ahead: timedelta
):
    async with restartable.run(agent=ScriptedAgent()) as harness:
        restartable.clock.step(ahead)
        with harness.platform.outage():
            await harness.platform.says("ann", "one")
            await harness.clock.advance(seconds=1)
        restartable.clock.step(-ahead)
        await harness.clock.advance(minutes=1)
        assert answers(harness) == ["you said: one"]


@AHEAD
@pytest.mark.parametrize("killed", [False, True])
async def test_a_reply_is_sent_after_a_restart(
    restartable: RestartableGateway, ahead: timedelta, killed: bool
):
    restartable.clock.step(ahead)
    with restartable.platform.outage():
        async with restartable.run(killed=killed, agent=ScriptedAgent()) as harness:
            await harness.platform.says("ann", "one")
            await harness.clock.advance(seconds=1)
            await harness.gateway.drain(AT_ONCE)
    restartable.clock.step(-ahead)
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.clock.advance(seconds=2)
        assert answers(harness) == ["you said: one"]


@AHEAD
async def test_a_turn_whose_database_failed_is_tried_again_after_its_own_pause(
    restartable: RestartableGateway, ahead: timedelta
):
    async with SessionStore.open(restartable.home, QUICK, clock=restartable.clock) as store:
        restartable.clock.step(ahead)
        await store.enqueue(InboundMessage(source=restartable.platform.source("ann"), text="one"))
        turn = await store.claim()
        assert turn is not None
        await turn.release(retry_at=restartable.clock.now() + timedelta(seconds=30), counted=True)
    restartable.clock.step(-ahead)
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.clock.advance(seconds=2)
        assert answers(harness) == ["you said: one"]


@AHEAD
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_hook_is_called_again_when_its_own_pause_has_passed(
    restartable: RestartableGateway, ahead: timedelta, restarts: bool
):
    called: list[int] = []

    async def hook(ending: SessionFinalized) -> None:
        called.append(ending.attempt)
        if ending.attempt == 1:
            raise ConnectionError

    config = replace(QUICK, hooks=HooksConfig(retry=timedelta(seconds=5)))

    def opened() -> SessionStore:
        return SessionStore.open(restartable.home, config, clock=restartable.clock, hooks={"hook": hook})

    async with opened() as store:
        entry = await store.get_or_create_session(restartable.platform.source("ann"))
        restartable.clock.step(ahead)
        await store.reset_session(entry.session_key)
        await restartable.clock.advance(seconds=1)
        assert called == [1]
        if not restarts:
            restartable.clock.step(-ahead)
            await restartable.clock.advance(seconds=30)
    if restarts:
        restartable.clock.step(-ahead)
        async with opened():
            await restartable.clock.advance(seconds=30)
    assert called == [1, 2]


@AHEAD
async def test_whoever_was_erased_by_a_clock_that_was_ahead_may_come_back(
    restartable: RestartableGateway, ahead: timedelta
):
    restartable.clock.step(ahead)
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.gateway.submit(sent_now(harness, "one"))
        await harness.wait_until_idle()
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        await harness.store.erase(harness.platform.source("ann"))
    restartable.clock.step(-ahead + timedelta(seconds=10))
    async with restartable.run(agent=ScriptedAgent()) as harness:
        restartable.clock.step(timedelta(seconds=1))
        await harness.gateway.submit(sent_now(harness, "two"))
        await harness.wait_until_idle()
        assert answers(harness)[-1] == "you said: two"


async def test_a_clock_that_is_right_ends_no_pause_at_a_restart(restartable: RestartableGateway):
    restartable.config = replace(QUICK, agent=AgentConfig(max_restart_attempts=9))
    async with SessionStore.open(restartable.home, restartable.config, clock=restartable.clock) as store:
        await store.enqueue(InboundMessage(source=restartable.platform.source("ann"), text="one"))
        turn = await store.claim()
        assert turn is not None
        await turn.release(retry_at=restartable.clock.now() + timedelta(hours=1))
    async with restartable.run(agent=ScriptedAgent()) as harness:
        assert not await harness.store.db.read(
            lambda: clock_set_back.was_clock_ahead(restartable.clock.now(), None)
        )
        await harness.clock.advance(minutes=59)
        assert answers(harness) == []
        await harness.clock.advance(minutes=2)
        assert answers(harness) == ["you said: one"]


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
    assert clean_end_time(marker) is None


def test_a_marker_tells_when_its_process_ended():
    at = datetime(2026, 3, 2, tzinfo=UTC)
    assert clean_end_time(CleanShutdown(1, at).encode()) == at
