"""The fake WhatsApp is proven with pywa: it reads what the fake posts, and the fake shows what it sends."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx
import pytest
from pywa.errors import WhatsAppError
from pywa_async import WhatsApp
from pywa_async.types import Button, CallbackButton, Message, MessageStatus, MessageStatusType

from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp
from gateway_sessions.testing.fakes.whatsapp.server import ACCESS_TOKEN, APP_SECRET, PHONE_NUMBER_ID
from tests.integration.platforms.client_libraries.webhook_catcher import caught_from


async def test_pywa_accepts_the_webhooks_and_is_understood():
    heard: asyncio.Queue[Message | CallbackButton | MessageStatus] = asyncio.Queue()
    async with FakeWhatsApp() as fake, caught_from(fake) as requests, httpx.AsyncClient() as session:
        bot = WhatsApp(PHONE_NUMBER_ID, ACCESS_TOKEN, session=session, server=None, app_secret=APP_SECRET)
        session.base_url = f"{fake.url}/v24.0"

        @bot.on_message
        @bot.on_callback_button
        @bot.on_message_status
        async def keep(_: WhatsApp, update: Message | CallbackButton | MessageStatus) -> None:
            heard.put_nowait(update)

        async def next_update() -> Message | CallbackButton | MessageStatus:
            request = await requests.get()
            signature = request.headers["x-hub-signature-256"]
            assert await bot.webhook_update_validator(request.body, signature) is None
            assert (await bot.webhook_update_handler(request.body))[1] == 200
            return await heard.get()

        fake.says("ann", "hello")
        message = await next_update()
        assert isinstance(message, Message)
        assert (message.text, message.from_user.name) == ("hello", "ann")
        sent = await message.reply("Sure?", buttons=[Button("Yes", "yes"), Button("No", "no")])
        assert [one["id"] for one in fake.person("ann").shown] == [sent.id]
        for status in (MessageStatusType.SENT, MessageStatusType.DELIVERED):
            report = await next_update()
            assert isinstance(report, MessageStatus)
            assert (report.status, report.id) == (status, sent.id)
        fake.presses("ann", "No")
        pressed = await next_update()
        assert isinstance(pressed, CallbackButton)
        assert (pressed.data, pressed.title, pressed.reply_to_message.id) == ("no", "No", sent.id)
        fake.sends("ann", "image", b"\x89PNG", media_type="image/png", caption="my cat")
        pictured = await next_update()
        assert isinstance(pictured, Message)
        assert pictured.image is not None
        assert (pictured.caption, await pictured.image.get_bytes()) == ("my cat", b"\x89PNG")
        forged = await bot.webhook_update_validator(b"{}", "sha256=00")
        assert forged is not None


async def test_pywa_understands_the_refusals_and_the_end_of_the_window():
    clock = FakeClock()
    fake = FakeWhatsApp(clock=clock, reports=False)
    async with fake, caught_from(fake) as requests, httpx.AsyncClient() as session:
        bot = WhatsApp(PHONE_NUMBER_ID, ACCESS_TOKEN, session=session, server=None, app_secret=APP_SECRET)
        session.base_url = f"{fake.url}/v24.0"
        fake.says("ann", "hello")
        await requests.get()
        ann = fake.person("ann").phone
        with pytest.raises(WhatsAppError, match="at most 4096 characters"):
            await bot.send_message(ann, "x" * 4097)
        assert (await bot.send_message(ann, "good day")).id
        await clock.advance(timedelta(days=2))
        late = await bot.send_message(ann, "are you still there?")
        failed = (await requests.get()).body.decode()
        assert late.id in failed
        assert "131047" in failed
        assert fake.texts("ann") == ["good day"]
