"""The fake LINE is proven with LINE's own SDK, which reads what the fake posts, and is understood."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from linebot.v3.exceptions import InvalidSignatureError
from linebot.v3.messaging import (
    ApiClient,
    ApiException,
    Configuration,
    MessagingApi,
    MessagingApiBlob,
    PostbackAction,
    PushMessageRequest,
    QuickReply,
    QuickReplyItem,
    ReplyMessageRequest,
    ShowLoadingAnimationRequest,
    TextMessage,
)
from linebot.v3.webhook import WebhookParser
from linebot.v3.webhooks import (
    GroupSource,
    ImageMessageContent,
    MessageEvent,
    PostbackEvent,
    TextMessageContent,
    UnsendEvent,
)

from gateway_sessions.testing.fakes.line import FakeLine
from tests.integration.platforms.client_libraries.webhook_catcher import caught_from


async def test_its_parser_accepts_what_the_fake_posts():
    async with FakeLine() as fake, caught_from(fake) as requests:
        parser = WebhookParser(fake.channel_secret)

        async def next_event() -> object:
            request = await requests.get()
            (event,) = parser.parse(request.body.decode(), request.headers["x-line-signature"])
            return event

        fake.says("ann", "hello", group="team", mentions=True)
        said = await next_event()
        assert isinstance(said, MessageEvent)
        assert isinstance(said.source, GroupSource)
        assert isinstance(said.message, TextMessageContent)
        assert (said.message.text, said.message.mention.mentionees[0].is_self) == ("@Helper hello", True)
        fake.sends_content("ann", "image", b"png")
        pictured = await next_event()
        assert isinstance(pictured, MessageEvent)
        assert isinstance(pictured.message, ImageMessageContent)
        fake.takes_back("ann", said.message.id)
        taken_back = await next_event()
        assert isinstance(taken_back, UnsendEvent)
        assert taken_back.unsend.message_id == said.message.id
        fake.says("ann", "again")
        request = await requests.get()
        with pytest.raises(InvalidSignatureError):
            parser.parse(request.body.decode(), "bm90IHNpZ25lZA==")


async def test_its_client_replies_pushes_and_fetches():
    async with FakeLine() as fake, caught_from(fake) as requests:
        parser = WebhookParser(fake.channel_secret)
        with ApiClient(Configuration(host=fake.url, access_token=fake.channel_access_token)) as client:
            api, files = MessagingApi(client), MessagingApiBlob(client)

            async def next_event() -> MessageEvent | PostbackEvent:
                request = await requests.get()
                return parser.parse(request.body.decode(), request.headers["x-line-signature"])[0]

            assert (await asyncio.to_thread(api.get_bot_info)).user_id == fake.bot_id
            fake.says("ann", "hello")
            event = await next_event()
            yes = QuickReplyItem(action=PostbackAction(label="Yes", data="yes"))
            question = TextMessage(text="Sure?", quick_reply=QuickReply(items=[yes]))
            answer = ReplyMessageRequest(reply_token=event.reply_token, messages=[question])
            replied = await asyncio.to_thread(api.reply_message, answer)
            assert replied.sent_messages[0].id == fake.messages[-1][1]["id"]
            with pytest.raises(ApiException, match="Invalid reply token"):
                await asyncio.to_thread(api.reply_message, answer)
            fake.presses("ann", "Yes")
            pressed = await next_event()
            assert isinstance(pressed, PostbackEvent)
            assert pressed.postback.data == "yes"
            push = PushMessageRequest(to=fake.person("ann"), messages=[TextMessage(text="good day")])
            key = str(uuid.uuid4())
            await asyncio.to_thread(api.push_message, push, x_line_retry_key=key)
            with pytest.raises(ApiException) as repeated:
                await asyncio.to_thread(api.push_message, push, x_line_retry_key=key)
            assert repeated.value.status == 409
            await asyncio.to_thread(
                api.show_loading_animation, ShowLoadingAnimationRequest(chat_id=fake.person("ann"))
            )
            assert fake.texts("ann") == ["Sure?\n[Yes]", "good day"]
            assert fake.loading == [fake.person("ann")]
            delivery = fake.sends_content("ann", "image", b"\x89PNG")
            assert await fake.is_taken(delivery)
            sent = await next_event()
            assert bytes(await asyncio.to_thread(files.get_message_content, sent.message.id)) == b"\x89PNG"
