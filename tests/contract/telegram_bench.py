"""A fake Telegram with one person, and one of the adapters to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from gateway_sessions.core.delivery.retry_policy import SendFailure
from gateway_sessions.integrations.telegram.adapter import TelegramAdapter
from gateway_sessions.testing.contract.adapter import PATIENCE_SECONDS, AdapterBench
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RateLimit, RefusedCall
from gateway_sessions.testing.fakes.telegram import FakeTelegram

PAUSE_SECONDS = 0.02
KINDS = ("photo", "video", "audio", "voice", "document")
FAULTS: dict[SendFailure, Fault] = {
    SendFailure.RATE_LIMITED: RateLimit(PAUSE_SECONDS),
    SendFailure.REFUSED: RefusedCall(400, "Bad Request: not enough rights to send text messages to the chat"),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}
SHOWS = ("sendMessage", "sendPhoto", "sendVideo", "sendAudio", "sendVoice", "sendDocument")


class TelegramBench(AdapterBench):
    """The person is called ann."""

    def __init__(self, fake: FakeTelegram, adapter: TelegramAdapter) -> None:
        self.fake = fake
        self.adapter: TelegramAdapter = adapter
        self.last = 0

    async def says(self, text: str) -> bool:
        self.last = self.fake.says("ann", text)
        return await self.fake.is_taken(self.last, seconds=PATIENCE_SECONDS)

    async def writes_unheard(self, text: str) -> None:
        self.fake.says("ann", text)

    async def presses(self, label: str) -> None:
        self.fake.presses("ann", label)

    async def delivers_again(self) -> bool:
        message = list(self.fake.chat_of("ann").messages.values())[-1]
        return await self.fake.is_taken(self.fake.chats.add_update("message", message))

    async def garbles(self) -> bool:
        broken = {"message_id": "seven", "chat": []}
        return await self.fake.is_taken(self.fake.chats.add_update("message", broken))

    async def shown(self) -> str:
        return "\n".join(as_seen(self.fake, message) for message in self.fake.shown("ann"))

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
        self.fake.faults.plan(fault, matches=lambda method, _: method in SHOWS, times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()
            await asyncio.sleep(2 * PAUSE_SECONDS)


def as_seen(fake: FakeTelegram, message: dict[str, Any]) -> str:
    """Return the text of a message, and the names and contents of its files."""
    files = [one for kind in KINDS if (one := message.get(kind))]
    files = [file[0] if isinstance(file, list) else file for file in files]
    shown = [f"{file.get('file_name')} {fake.files[file['file_id']].decode()}" for file in files]
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    buttons = [str(button["text"]) for row in rows for button in row]
    return " ".join([str(message.get("text", message.get("caption", ""))), *shown, *buttons])
