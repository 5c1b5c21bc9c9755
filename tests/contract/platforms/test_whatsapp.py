"""The adapter to WhatsApp passes the contract on a fake WhatsApp."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp
from tests.contract.platforms.whatsapp_bench import WhatsAppBench


class TestWhatsApp(AdapterContract):
    abilities = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures = frozenset(SendFailure)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeWhatsApp() as fake:
            yield WhatsAppBench(fake)
