"""The adapter for Google Chat keeps the contract of all adapters."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

import pytest

from gateway_sessions.integrations.google_chat import GoogleChatAdapter, GoogleChatSettings
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat
from tests.integration.platforms.webhook_bench import WebhookBench


def settings_of(fake: FakeGoogleChat, **changes: Any) -> GoogleChatSettings:
    given = {"audience": fake.audience, "api_url": fake.url, "keys_url": fake.url, **changes}
    return GoogleChatSettings.from_key(fake.key, **given)


class GoogleChatBench(WebhookBench):
    faults: ClassVar[Mapping[SendFailure, Fault]] = {
        SendFailure.UNAVAILABLE: ServerFault(503),
        SendFailure.RATE_LIMITED: RateLimit(0),
        SendFailure.REFUSED: RefusedCall(403, "The app is not a member of the space."),
        SendFailure.UNKNOWN: CutConnection.AFTER,
    }
    sending = frozenset({"create"})

    async def garbles(self) -> bool:
        return await self.fake.is_taken(self.fake.happens("ann", "MESSAGE", message={"name": 7}))


class TestGoogleChatAdapter(AdapterContract):
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures: ClassVar[frozenset[SendFailure]] = frozenset(GoogleChatBench.faults)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeGoogleChat() as fake:
            yield GoogleChatBench(fake, GoogleChatAdapter(settings_of(fake), port=0))
