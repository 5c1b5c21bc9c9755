"""Schedules of a bot that is given a name: they go on, as that account, in the same conversation."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Scope
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import echo, open_harness

LATER = timedelta(hours=3)


@pytest.mark.parametrize(
    ("task", "shown"), [({"say": "Wake up."}, "Wake up."), ({"prompt": "What is new?"}, "What is new?")]
)
async def test_a_schedule_from_before_the_name_runs_as_the_named_account(
    tmp_path: Path, task: dict[str, str], shown: str
):
    async with open_harness(tmp_path, agent=echo) as harness:
        clock = harness.clock
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        source = harness.platform.source("ann")
        session_id = await harness.store.peek_session_id(harness.store.key_for(source))
        await harness.gateway.schedules.add("news", to=source, at=clock.now() + LATER, **task)
        await harness.store.assign_lanes({"fake": "support"}, unnamed_too=True)
    support = FakePlatform("fake", "support")
    async with open_harness(tmp_path, agent=echo, clock=clock, platform=support) as harness:
        await clock.advance(2 * LATER)
        await harness.wait_until_idle()
        assert support.shown("ann") == [shown]
        lane = harness.store.key_for(support.source("ann"))
        assert await harness.store.peek_session_id(lane) == session_id
        assert len(await harness.store.list_sessions(scope=Scope.operator())) == 1
