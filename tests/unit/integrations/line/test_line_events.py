"""Which messages LINE's events bring, and the calls by which they are answered."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    OutboundMessage,
    ReplyTarget,
)
from gateway_sessions.adapters.group_talk import GroupRules, GroupTalk, as_group_rules
from gateway_sessions.adapters.webhooks import (
    CallLimited,
    CallRefused,
    CallSucceeded,
    CallSuperseded,
    CallUnauthorized,
    CallUnknown,
    PassedOver,
    PlatformAnswer,
    Request,
    UnreadableEvent,
    Verdict,
)
from gateway_sessions.adapters.webhooks.signatures import hmac_base64
from gateway_sessions.core.delivery.outbound_messages import Button
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.line.events import LineReadingRules, read_batch
from gateway_sessions.integrations.line.platform import TOKEN_LIFE, LinePlatform, LineSettings
from gateway_sessions.integrations.line.sending import LONGEST_TEXT, messages_of, outcome_of, retry_key
from tests.unit.adapters.webhooks.fuzz import assert_forgeries_fail, assert_survives

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
USER = {"type": "user", "userId": "Uann"}
GROUP = {"type": "group", "groupId": "Cteam", "userId": "Uann"}
TARGET = ReplyTarget(platform="line", chat_id="Uann", metadata={"reply_token": "token"})


def event(kind: str = "message", **members: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "mode": "active",
        "timestamp": int(NOW.timestamp() * 1000),
        "source": USER,
        "webhookEventId": "01FZ1",
        "deliveryContext": {"isRedelivery": False},
        "replyToken": "token",
        **members,
    }


def text(words: str = "hello", **members: Any) -> dict[str, Any]:
    return {"id": "444", "type": "text", "text": words, "quoteToken": "q", **members}


def read(*events: dict[str, Any], groups: Any = "mention", **rules: Any) -> list[Any]:
    return list(
        read_batch(
            json.dumps({"destination": "U", "events": events}).encode(),
            LineReadingRules(groups=as_group_rules(groups), **rules),
        )
    )


def message_of(one: dict[str, Any], **rules: Any) -> InboundMessage:
    (message,) = read(one, **rules)
    assert isinstance(message, InboundMessage), message
    return message


@pytest.fixture
def platform() -> LinePlatform:
    return LinePlatform(LineSettings(channel_secret=SECRET, channel_access_token="token"), LineReadingRules())


# In


def test_a_private_message_tells_who_where_and_when():
    message = message_of(event(message=text()), account="sales")
    assert (message.text, message.message_id, message.account) == ("hello", "444", "sales")
    assert (message.source.chat_id, message.source.user_id, message.source.chat_type) == (
        "Uann",
        "Uann",
        "dm",
    )
    assert (message.sent_at, message.metadata) == (NOW, {"reply_token": "token"})


def test_a_redelivered_message_is_the_same_one():
    again = event(message=text(), deliveryContext={"isRedelivery": True})
    assert message_of(again).idempotency_key == message_of(event(message=text())).idempotency_key


@pytest.mark.parametrize(
    ("source", "chat"),
    [(GROUP, "Cteam"), ({"type": "room", "roomId": "Rx"}, "Rx"), ({"type": "group", "groupId": "Cx"}, "Cx")],
)
def test_groups_and_rooms_are_groups(source: dict[str, str], chat: str):
    source_in = message_of(event(message=text(), source=source), groups=GroupTalk.ALL).source
    assert (source_in.chat_id, source_in.chat_type, source_in.user_id) == (
        chat,
        "group",
        source.get("userId"),
    )


def test_what_people_say_to_each_other_is_observed_if_that_is_wanted():
    observing = GroupRules("mention", observe=True)
    talk = message_of(event(message=text(), source=GROUP), groups=observing)
    assert (talk.observed, talk.source.user_id) == (True, "Uann")
    assert read(event(message=text(), source=GROUP)) == [PassedOver("message for nobody")]
    assert not message_of(event(message=text("/new"), source=GROUP), groups=observing).observed
    assert not message_of(event(message=text()), groups=observing).observed


def test_in_a_group_only_what_addresses_the_account_is_for_it():
    me = {"index": 4, "length": 7, "isSelf": True, "type": "user"}
    mention = {"mentionees": [{"index": 0, "length": 3, "type": "all"}, me]}
    talk = event(message=text(), source=GROUP)
    assert read(talk) == [PassedOver("message for nobody")]
    addressed = message_of(
        {**talk, "message": text("😀😀 @Helper hi", mention={"mentionees": [{**me, "index": 5}]})}
    )
    assert addressed.text == "😀😀 @Helper hi"
    assert (
        message_of(
            {**talk, "message": text("@Helper, hi", mention={"mentionees": [{**me, "index": 0}]})}
        ).text
        == "hi"
    )
    assert message_of({**talk, "message": text("ab  @Helper", mention=mention)}).text == "ab"
    own = message_of({**talk, "message": text(quotedMessageId="7")}, own_messages={"7"})
    assert own.reply_to is not None
    assert (own.reply_to.message_id, own.reply_to.own) == ("7", True)
    assert read({**talk, "message": text(quotedMessageId="8")}, own_messages={"7"}) == [
        PassedOver("message for nobody")
    ]


@pytest.mark.parametrize(
    ("message", "kind", "url"),
    [
        ({"id": "1", "type": "image", "contentProvider": {"type": "line"}}, "photo", "line:1"),
        (
            {
                "id": "1",
                "type": "image",
                "contentProvider": {"type": "external", "originalContentUrl": "https://e.org/1"},
            },
            "photo",
            "https://e.org/1",
        ),
        ({"id": "1", "type": "video", "duration": 7, "contentProvider": {"type": "line"}}, "video", "line:1"),
        ({"id": "1", "type": "audio", "duration": 7}, "audio", "line:1"),
        ({"id": "1", "type": "file", "fileName": "a.pdf", "fileSize": 7}, "document", "line:1"),
        (
            {"id": "1", "type": "location", "latitude": 1.5, "longitude": 2, "title": "x"},
            "location",
            "geo:1.5,2.0",
        ),
        ({"id": "1", "type": "sticker", "packageId": "4", "stickerId": "5"}, "sticker", "line-sticker:4/5"),
    ],
)
def test_what_comes_with_a_message(message: dict[str, Any], kind: str, url: str):
    (attachment,) = message_of(event(message=message)).attachments
    assert (str(attachment.kind), attachment.url) == (kind, url)


def test_pictures_that_were_sent_together_are_one_turn():
    picture = {"id": "1", "type": "image", "imageSet": {"id": "set", "index": 1, "total": 2}}
    assert message_of(event(message=picture)).group_id == "set"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            {"id": "1", "type": "sticker", "packageId": "4", "stickerId": "5", "keywords": ["hi", "wave"]},
            "[sticker: hi, wave]",
        ),
        ({"id": "1", "type": "sticker", "stickerId": "5"}, "[sticker]"),
        ({"id": "1", "type": "sticker", "stickerId": "5", "text": "written"}, "written"),
        ({"id": "1", "type": "location", "title": "x", "address": "y"}, "x y"),
        ({"id": "1", "type": "hologram"}, "[hologram]"),
    ],
)
def test_the_words_for_what_has_none(message: dict[str, Any], words: str):
    assert message_of(event(message=message)).text == words


def test_a_button_is_an_action_and_what_is_taken_back_is_deleted():
    press = message_of(event("postback", postback={"data": "go"}))
    assert (press.action, press.text, press.message_id) == ("go", "go", "01FZ1")
    deletion = message_of(event("unsend", unsend={"messageId": "444"}))
    assert (deletion.kind, deletion.message_id) == (MessageKind.DELETE, "444")


def test_what_is_nobodys_message_is_passed_over():
    assert read() == [PassedOver("a test of the webhook")]
    assert read(event("follow"), event(message=text(), mode="standby"), event()) == [
        PassedOver("follow, active"),
        PassedOver("message, standby"),
        PassedOver("message for nobody"),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"type": 7},
        event(message=text(), source={"type": "user"}),
        event(message=text(), source={"type": "elsewhere"}),
        event(message={"id": 7, "type": "text"}),
        event(message=text(), timestamp=10**18),
        event(message={**text(), "id": "\x00"}),
    ],
)
def test_what_cannot_be_read_does_not_stop_what_stands_behind_it(broken: dict[str, Any]):
    unreadable, message = read(broken, event(message=text()))
    assert isinstance(unreadable, UnreadableEvent)
    assert unreadable.problem.startswith("an event of LINE cannot be read")
    assert isinstance(message, InboundMessage)


@pytest.mark.parametrize("raw", [b"", b"\xff", b"[]", b"{}", b'{"events": 7}', b"[" * 100_000])
def test_a_webhook_of_nobody_is_told(raw: bytes):
    with pytest.raises(InvalidInputError, match="a webhook of LINE cannot be read"):
        read_batch(raw, LineReadingRules())


SECRET = "secret"


def signed(body: bytes, secret: str = SECRET) -> Request:
    return Request("POST", "/line", {"x-line-signature": hmac_base64(secret, body)}, body)


def test_only_line_can_sign(platform: LinePlatform):
    body = json.dumps({"events": [event(message=text())]}).encode()
    assert platform.verify(signed(body), NOW) is Verdict.GENUINE
    assert platform.verify(signed(body, "other"), NOW) is Verdict.FORGED
    assert platform.verify(Request("POST", "/line", {}, body), NOW) is Verdict.FORGED
    assert_forgeries_fail(platform, signed(body))


def test_ten_thousand_broken_webhooks_lose_nothing(platform: LinePlatform):
    events = [
        event(
            message=text("@Helper hi", mention={"mentionees": [{"index": 0, "length": 7, "isSelf": True}]})
        ),
        event(
            message={"id": "1", "type": "image", "imageSet": {"id": "s"}, "contentProvider": {"type": "line"}}
        ),
        event(message={"id": "2", "type": "location", "title": "t", "latitude": 1.0, "longitude": 2.0}),
        event("postback", postback={"data": "x"}, source=GROUP),
        event("unsend", unsend={"messageId": "1"}),
        event("follow"),
    ]
    bodies = [json.dumps({"destination": "U", "events": events[at:]}).encode() for at in range(len(events))]
    seen = assert_survives(platform, [signed(body) for body in bodies], lambda request: signed(request.body))
    assert (
        min(seen[kind] for kind in ("InboundMessage", "PassedOver", "UnreadableEvent", "unreadable body"))
        > 300
    )


# Out


def body_of(call: Any) -> dict[str, Any]:
    return json.loads(call.body)


def render(platform: LinePlatform, key: str = "k", target: ReplyTarget = TARGET) -> list[Any]:
    return list(platform.render(OutboundMessage(text="hi"), target, idempotency_key=key))


def test_the_first_answer_goes_by_the_reply_token_and_the_next_ones_are_pushed(platform: LinePlatform):
    (first,), (again,), (second,) = render(platform), render(platform), render(platform, "k2")
    assert body_of(first) == {"replyToken": "token", "messages": [{"type": "text", "text": "hi"}]}
    assert body_of(again) == body_of(first)
    assert (second.url, body_of(second)["to"]) == ("https://api.line.me/v2/bot/message/push", "Uann")


def test_the_key_of_a_push_is_always_the_same(platform: LinePlatform):
    unasked = ReplyTarget(platform="line", user_id="Uann")
    (call,), (again,) = render(platform, target=unasked), render(platform, target=unasked)
    assert call.headers["x-line-retry-key"] == again.headers["x-line-retry-key"] == retry_key("k", 0)
    assert len({retry_key("k", 0), retry_key("k", 1), retry_key("k2", 0)}) == 3


def test_more_than_five_messages_take_several_calls(platform: LinePlatform):
    photos = tuple(Attachment(kind=AttachmentKind.PHOTO, url=f"https://e.org/{at}") for at in range(6))
    message = OutboundMessage(text="look", attachments=photos)
    reply, push = platform.render(message, TARGET, idempotency_key="k")
    assert [len(body_of(call)["messages"]) for call in (reply, push)] == [5, 2]


def test_a_target_without_a_place_is_refused(platform: LinePlatform):
    with pytest.raises(DeliveryRefusedError, match="neither a chat nor a person"):
        render(platform, target=ReplyTarget(platform="line"))


def test_typing_is_shown_to_people_only(platform: LinePlatform):
    call = platform.render_typing(TARGET)
    assert call is not None
    assert body_of(call) == {"chatId": "Uann", "loadingSeconds": 20}
    assert platform.render_typing(ReplyTarget(platform="line", chat_id="Cteam")) is None


def test_buttons_are_quick_replies_of_the_last_message():
    buttons = (
        Button("Yes", "y"),
        Button("A label that is longer than twenty", "n"),
        Button("Web", url="https://e.org"),
    )
    photo = Attachment(kind=AttachmentKind.PHOTO, url="https://e.org/1")
    first, last = messages_of(OutboundMessage(text="x", attachments=(photo,), buttons=buttons))
    assert "quickReply" not in first
    actions = [item["action"] for item in last["quickReply"]["items"]]
    assert actions[0] == {"type": "postback", "label": "Yes", "data": "y", "displayText": "Yes"}
    assert len(actions[1]["label"]) == 20
    assert actions[1]["displayText"] == "A label that is longer than twenty"
    assert actions[2] == {"type": "uri", "label": "Web", "uri": "https://e.org"}


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (OutboundMessage(text="😀" * (LONGEST_TEXT // 2) + "x"), "5000 UTF-16 units, this one has 5001"),
        (OutboundMessage(), "a message needs a text"),
        (OutboundMessage(text="x", buttons=(Button("b"),) * 14), "may have 13 buttons, this one has 14"),
        (OutboundMessage(text="x", buttons=(Button("b", "v" * 301),)), "may have 300 characters"),
        (
            OutboundMessage(attachments=(Attachment(kind=AttachmentKind.PHOTO, url="http://e.org"),)),
            "no https address",
        ),
        (
            OutboundMessage(attachments=(Attachment(kind=AttachmentKind.VIDEO, url="https://e.org"),)),
            "is no picture",
        ),
    ],
)
def test_what_line_would_refuse_is_refused(message: OutboundMessage, problem: str):
    with pytest.raises(DeliveryRefusedError, match=problem):
        messages_of(message)


def test_what_is_meant_for_line_alone_is_sent():
    flex = {"type": "flex", "altText": "t", "contents": {}}
    assert messages_of(OutboundMessage(extra={"line": {"messages": [flex]}})) == [flex]


def answer(status: int, message: str = "", **members: Any) -> PlatformAnswer:
    return PlatformAnswer(status, {}, json.dumps({"message": message, **members}).encode())


SENT = {"sentMessages": [{"id": "7", "quoteToken": "q"}]}


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (answer(200, **SENT), CallSucceeded("7")),
        (answer(202), CallSucceeded(None)),
        (answer(409, "The retry key is already accepted", **SENT), CallSucceeded("7")),
        (answer(429, "The API rate limit has been exceeded."), CallLimited(None, everywhere=True)),
        (answer(400, "May not be empty"), CallRefused("May not be empty")),
    ],
)
def test_what_became_of_a_call(given: PlatformAnswer, outcome: object):
    assert outcome_of(given, NOW) == outcome


def test_what_else_became_of_a_call():
    used_up = outcome_of(answer(429, "You have reached your monthly limit."), NOW)
    assert isinstance(used_up, CallRefused)
    assert "see the plan of the account" in used_up.problem
    assert isinstance(outcome_of(answer(401, "Authentication failed."), NOW), CallUnauthorized)
    assert isinstance(outcome_of(PlatformAnswer(500, {}, b"<html>"), NOW), CallUnknown)


SPENT = answer(400, "Invalid reply token")


def test_a_reply_whose_token_is_spent_is_pushed(platform: LinePlatform):
    (reply,) = render(platform)
    platform.authorize(reply, NOW)
    outcome = platform.outcome(reply, SPENT, NOW)
    assert isinstance(outcome, CallSuperseded)
    assert outcome.call.name == "push"
    assert platform.outcome(outcome.call, SPENT, NOW) == CallRefused("Invalid reply token")


def test_a_reply_without_an_answer_that_has_used_the_token_was_shown(platform: LinePlatform):
    platform.parse(signed(json.dumps({"events": [event(message=text())]}).encode()))
    (reply,) = render(platform)
    platform.authorize(reply, NOW)  # the answer to this attempt is lost
    platform.authorize(reply, NOW)
    soon, late = NOW + timedelta(seconds=5), NOW + TOKEN_LIFE
    assert platform.outcome(reply, SPENT, soon) == CallSucceeded(None)
    (reply,) = render(platform)
    for _ in range(2):
        platform.authorize(reply, NOW)
    assert isinstance(platform.outcome(reply, SPENT, late), CallSuperseded)


@pytest.mark.parametrize("name", ["channel_secret", "channel_access_token"])
def test_settings_that_cannot_work_are_told_at_once(name: str):
    with pytest.raises(InvalidInputError, match=f"{name} is missing"):
        LineSettings(**{"channel_secret": "s", "channel_access_token": "t", name: ""})
