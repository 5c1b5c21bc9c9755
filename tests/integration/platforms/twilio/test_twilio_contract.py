"""The adapter for Twilio keeps the contract of all adapters."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

import pytest

from gateway_sessions.integrations.twilio import TwilioAdapter, TwilioSettings
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.twilio import FakeTwilio
from tests.integration.platforms.webhook_bench import WebhookBench


def settings_of(fake: FakeTwilio, **changes: Any) -> TwilioSettings:
    return TwilioSettings(
        **{
            "account_sid": fake.account_sid,
            "auth_token": fake.auth_token,
            "sender": fake.number,
            "public_url": fake.public_url,
            "api_url": fake.url,
            **changes,
        }
    )


class TwilioBench(WebhookBench):
    faults: ClassVar[Mapping[SendFailure, Fault]] = {
        SendFailure.UNAVAILABLE: ServerFault(503),
        SendFailure.RATE_LIMITED: RateLimit(0),
        SendFailure.REFUSED: RefusedCall(400, "Invalid 'To' Phone Number"),
        SendFailure.UNKNOWN: CutConnection.AFTER,
    }
    sending = frozenset({"send"})

    async def garbles(self) -> bool:
        return await self.fake.is_taken(self.fake.posts({"From": "+1", "Body": "no id"}))


class TestTwilioAdapter(AdapterContract):
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures: ClassVar[frozenset[SendFailure]] = frozenset(TwilioBench.faults)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeTwilio() as fake:
            yield TwilioBench(fake, TwilioAdapter(settings_of(fake), port=0))
