"""The adapter for Teams keeps the contract of all adapters, on a fake Teams over real bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import pytest

from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.integrations.teams import TeamsAdapter
from gateway_sessions.testing.contract.adapter import Ability, AdapterBench, AdapterContract, SendFailure
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RateLimit, RefusedCall
from gateway_sessions.testing.fakes.teams import FakeTeams
from gateway_sessions.testing.fakes.webhook_platform import WebhookDelivery
from tests.integration.platforms.teams.teams_world import settings_of

FAULTS: dict[SendFailure, Fault] = {
    SendFailure.UNAVAILABLE: RefusedCall(412, "PreconditionFailed"),
    SendFailure.RATE_LIMITED: RateLimit(0),
    SendFailure.REFUSED: RefusedCall(403, "BotNotInConversationRoster"),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}


class PortedTeams(TeamsAdapter):
    """Tells the fake at which port it listens."""

    def __init__(self, fake: FakeTeams) -> None:
        super().__init__(settings_of(fake), port=0)
        self._fake = fake

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        async with super().connect(submit):
            self._fake.webhook_url = self.url
            yield


class TeamsBench(AdapterBench):
    """Ann writes to a bot in private."""

    def __init__(self, fake: FakeTeams) -> None:
        self.fake = fake
        self.adapter = PortedTeams(fake)
        self.last: WebhookDelivery | None = None

    async def says(self, text: str) -> bool:
        self.last = self.fake.says("ann", text)
        return (await self.fake.settle(self.last)).status == 200

    async def garbles(self) -> bool:
        activity = {"type": "message", "channelId": "msteams", "serviceUrl": self.fake.service_url}
        return await self.fake.is_taken(self.fake.deliver({**activity, "id": 7}))

    async def shown(self) -> str:
        return "\n".join(self.fake.texts("ann"))

    async def presses(self, label: str) -> None:
        assert await self.fake.is_taken(self.fake.presses("ann", label))

    async def delivers_again(self) -> bool:
        assert self.last is not None
        return await self.fake.is_taken(self.fake.again(self.last))

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        self.fake.faults.plan(Delay(60), method="sendActivity", times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        return self._failing(FAULTS[how])

    @asynccontextmanager
    async def _failing(self, fault: Fault) -> AsyncIterator[None]:
        self.fake.faults.plan(fault, method="sendActivity", times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()


class TestTeamsAdapter(AdapterContract):
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures: ClassVar[frozenset[SendFailure]] = frozenset(FAULTS)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeTeams() as fake:
            yield TeamsBench(fake)
