"""A fake WhatsApp with one person, and the adapter to it on a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.retry_policy import SendFailure
from gateway_sessions.integrations.whatsapp import WhatsApp, WhatsAppSettings
from gateway_sessions.testing.contract.adapter import PATIENCE_SECONDS, AdapterBench
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RateLimit
from gateway_sessions.testing.fakes.webhook_platform import WebhookDelivery
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp, graph_error
from gateway_sessions.testing.fakes.whatsapp.server import ACCESS_TOKEN, APP_SECRET, PHONE_NUMBER_ID

PAUSE_SECONDS = 0.02
VERIFY_TOKEN = "a word of our choice"
FAULTS: dict[SendFailure, Fault] = {
    SendFailure.RATE_LIMITED: RateLimit(PAUSE_SECONDS),
    SendFailure.REFUSED: graph_error(131026),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}


def settings_for(fake: FakeWhatsApp, **changed: str) -> WhatsAppSettings:
    settings = WhatsAppSettings(
        phone_number_id=PHONE_NUMBER_ID,
        access_token=ACCESS_TOKEN,
        app_secret=APP_SECRET,
        verify_token=VERIFY_TOKEN,
        api_url=fake.url,
    )
    return replace(settings, **changed)


class BenchedWhatsApp(WhatsApp):
    """Tells the fake where it listens, as its operator does in the dashboard."""

    def __init__(self, fake: FakeWhatsApp) -> None:
        super().__init__(settings_for(fake), port=0)
        self._fake = fake

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncIterator[None]:
        async with super().connect(submit):
            self._fake.webhook_url = self.url
            yield


class WhatsAppBench(AdapterBench):
    """The person is called ann."""

    def __init__(self, fake: FakeWhatsApp) -> None:
        self.fake = fake
        self.adapter: WhatsApp = BenchedWhatsApp(fake)
        self.last: WebhookDelivery | None = None

    async def says(self, text: str) -> bool:
        self.last = self.fake.says("ann", text)
        return await self._is_taken(self.last)

    async def delivers_again(self) -> bool:
        assert self.last is not None
        return await self._is_taken(self.fake.again(self.last))

    async def garbles(self) -> bool:
        return await self._is_taken(self.fake.writes("ann", "text", ["no text"]))

    async def presses(self, label: str) -> None:
        await self._is_taken(self.fake.presses("ann", label))

    async def _is_taken(self, delivery: WebhookDelivery) -> bool:
        """Return whether the first attempt was a success: a later one would be another delivery."""
        attempt = await self.fake.settle(delivery, seconds=PATIENCE_SECONDS)
        return attempt.status == 200

    async def shown(self) -> str:
        return "\n".join(as_seen(self.fake, message) for message in self.fake.person("ann").shown)

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        async with self._with_fault(Delay(1000)):
            yield

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        if how is SendFailure.UNAVAILABLE:
            return self.fake.outage()
        return self._with_fault(FAULTS[how])

    @asynccontextmanager
    async def _with_fault(self, fault: Fault) -> AsyncIterator[None]:
        self.fake.faults.plan(fault, matches=lambda method, _: method in ("messages", "upload"), times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()
            await asyncio.sleep(2 * PAUSE_SECONDS)


def as_seen(fake: FakeWhatsApp, message: dict[str, object]) -> str:
    """Return the words of a message: text, labels, names and contents of files."""
    words: list[str] = []
    open_values: list[object] = [message[str(message["type"])]]
    while open_values:
        match open_values.pop(0):
            case dict() as members:
                open_values += members.values()
            case list() as items:
                open_values += items
            case str(text) if text in fake.files:
                words.append(f"{fake.files[text].name} {fake.files[text].content.decode()}")
            case str(text):
                words.append(text)
            case _:
                pass
    return " ".join(words)
