"""The adapters to Slack, with Bolt and without it, pass the contract on a fake Slack."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.slack import FakeSlack, SlackTiming
from tests.contract.platforms.slack_bench import SlackBench
from tests.integration.platforms.slack_doors import bolt_door, events_door, socket_door


class SlackContract(AdapterContract):
    abilities = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures = frozenset(SendFailure)

    @pytest.fixture
    async def slack(self) -> AsyncGenerator[FakeSlack]:
        async with FakeSlack(timing=SlackTiming(retries=(0.0, 10.0, 20.0))) as slack:
            yield slack


class TestBoltByHttp(SlackContract):
    @pytest.fixture
    async def bench(self, slack: FakeSlack) -> AsyncGenerator[AdapterBench]:
        async with bolt_door(slack) as adapter:
            yield SlackBench(slack, adapter)


class TestBoltBySocketMode(SlackContract):
    @pytest.fixture
    async def bench(self, slack: FakeSlack) -> AsyncGenerator[AdapterBench]:
        async with socket_door(slack) as adapter:
            yield SlackBench(slack, adapter)


class TestEventsWithoutBolt(SlackContract):
    @pytest.fixture
    async def bench(self, slack: FakeSlack) -> AsyncGenerator[AdapterBench]:
        async with events_door(slack) as adapter:
            yield SlackBench(slack, adapter)


class TestThreadOfChannel(SlackContract):
    @pytest.fixture
    async def bench(self, slack: FakeSlack) -> AsyncGenerator[AdapterBench]:
        # A mention comes twice otherwise, and a gateway knows it again by its id.
        slack.people.events.discard("app_mention")
        async with events_door(slack) as adapter:
            yield SlackBench(slack, adapter, "team")
