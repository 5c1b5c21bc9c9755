"""The adapter for LINE keeps the contract of all adapters, with reply tokens and with pushes alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import ClassVar

import pytest

from gateway_sessions.integrations.line import LineAdapter, LineSettings
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.line import FakeLine
from tests.integration.platforms.webhook_bench import WebhookBench


def settings_of(fake: FakeLine, *, use_reply_tokens: bool = True) -> LineSettings:
    return LineSettings(
        channel_secret=fake.channel_secret,
        channel_access_token=fake.channel_access_token,
        use_reply_tokens=use_reply_tokens,
        api_url=fake.url,
        data_url=fake.url,
    )


class LineBench(WebhookBench):
    faults: ClassVar[Mapping[SendFailure, Fault]] = {
        SendFailure.UNAVAILABLE: ServerFault(503),
        SendFailure.RATE_LIMITED: RateLimit(0),
        SendFailure.REFUSED: RefusedCall(400, "The property, 'to', in the request body is invalid"),
        SendFailure.UNKNOWN: CutConnection.AFTER,
    }
    sending = frozenset({"reply", "push"})

    async def garbles(self) -> bool:
        event = {**self.fake.event("ann", "message"), "message": {"id": 7}}
        return await self.fake.is_taken(self.fake.deliver({"events": [event]}))


class TestLineAdapter(AdapterContract):
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures: ClassVar[frozenset[SendFailure]] = frozenset(LineBench.faults)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeLine() as fake:
            yield LineBench(fake, LineAdapter(settings_of(fake), port=0))


class TestPushingLineAdapter(TestLineAdapter):
    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeLine() as fake:
            adapter = LineAdapter(settings_of(fake, use_reply_tokens=False), port=0)
            yield LineBench(fake, adapter)
