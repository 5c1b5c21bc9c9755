"""What the benches of platforms that call a webhook share: a fake, an adapter on a port, planned faults."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

from gateway_sessions.adapters import Adapter
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.testing.contract.adapter import AdapterBench, SendFailure
from gateway_sessions.testing.fakes.faults import ALWAYS, Delay, Fault
from gateway_sessions.testing.fakes.webhook_platform import FakeWebhookPlatform, WebhookDelivery


def told_where(adapter: WebhookAdapter, fake: FakeWebhookPlatform) -> Adapter:
    """Return an adapter that tells its fake at which port it listens, as soon as it does."""
    connect = adapter.connect

    @asynccontextmanager
    async def connect_and_tell(submit: Submit) -> AsyncIterator[None]:
        async with connect(submit):
            fake.webhook_url = adapter.url
            yield

    adapter.connect = connect_and_tell  # type: ignore[method-assign]
    return adapter


class WebhookBench(AdapterBench):
    """Ann writes to an account in private."""

    faults: ClassVar[Mapping[SendFailure, Fault]]
    sending: ClassVar[frozenset[str]]
    """The calls by which the account sends."""

    def __init__(self, fake: FakeWebhookPlatform, adapter: WebhookAdapter) -> None:
        self.fake: Any = fake
        self.adapter = told_where(adapter, fake)
        self.last: WebhookDelivery | None = None

    async def says(self, text: str) -> bool:
        self.last = self.fake.says("ann", text)
        return (await self.fake.settle(self.last)).status in (200, 204)

    @abstractmethod
    async def garbles(self) -> bool: ...

    async def shown(self) -> str:
        return "\n".join(self.fake.texts("ann"))

    async def presses(self, label: str) -> None:
        assert await self.fake.is_taken(self.fake.presses("ann", label))

    async def delivers_again(self) -> bool:
        assert self.last is not None
        return await self.fake.is_taken(self.fake.again(self.last))

    def hanging(self) -> AbstractAsyncContextManager[None]:
        return self._planned(Delay(60))

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        return self._planned(self.faults[how])

    @asynccontextmanager
    async def _planned(self, fault: Fault) -> AsyncIterator[None]:
        self.fake.faults.plan(fault, matches=lambda method, _: method in self.sending, times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()
