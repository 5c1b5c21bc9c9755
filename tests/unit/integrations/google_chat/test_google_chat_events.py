"""Which messages Google Chat's events bring, who may send them, and the calls by which they are answered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions.adapters import Attachment, AttachmentKind, InboundMessage, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallLimited,
    CallNeeded,
    CallRefused,
    CallSucceeded,
    CallUnknown,
    PassedOver,
    PlatformAnswer,
    Request,
    Verdict,
)
from gateway_sessions.core.delivery.outbound_messages import Button
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.google_chat.events import read_event
from gateway_sessions.integrations.google_chat.platform import (
    CHAT,
    GoogleChatPlatform,
    GoogleChatSettings,
    body_of,
    own_message_id,
)
from gateway_sessions.testing.fakes.token_issuer import FakeIssuer
from tests.unit.adapters.webhooks.fuzz import NOW, assert_survives

AUDIENCE = "https://bots.example/google_chat"
DM = {"name": "spaces/D1", "type": "DM", "spaceType": "DIRECT_MESSAGE"}
ROOM = {"name": "spaces/R1", "type": "ROOM", "displayName": "Team"}
ANN = {"name": "users/1", "displayName": "Ann", "type": "HUMAN"}
ACCOUNT = FakeIssuer("bot@project.iam.gserviceaccount.com")
KEY = {"client_email": ACCOUNT.issuer, "private_key": ACCOUNT.private_pem(), "private_key_id": "k1"}
TARGET = ReplyTarget(platform="google_chat", chat_id="spaces/R1", thread_id="spaces/R1/threads/7")


def event(kind: str = "MESSAGE", **members: Any) -> dict[str, Any]:
    return {"type": kind, "eventTime": "2026-11-20T12:00:00.000001Z", "space": DM, "user": ANN, **members}


def said(text: str = "hello", **members: Any) -> dict[str, Any]:
    return {
        "name": "spaces/D1/messages/m.m",
        "sender": ANN,
        "createTime": "2026-11-20T12:00:00Z",
        "text": text,
        "argumentText": text,
        "thread": {"name": "spaces/R1/threads/7"},
        **members,
    }


def message_of(one: dict[str, Any]) -> InboundMessage:
    message = read_event(json.dumps(one).encode(), "sales")
    assert isinstance(message, InboundMessage), message
    return message


# In


def test_a_private_message_tells_who_where_and_when():
    message = message_of(event(message=said()))
    source = message.source
    assert (message.text, message.message_id, message.account) == ("hello", "spaces/D1/messages/m.m", "sales")
    assert (source.chat_id, source.chat_type, source.thread_id) == ("spaces/D1", "dm", None)
    assert (source.user_id, source.user_name, source.is_bot) == ("users/1", "Ann", False)
    assert message.sent_at == datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_a_thread_of_a_space_is_a_place_of_its_own_and_the_mention_is_gone():
    message = message_of(event(space=ROOM, message=said("@Helper hi", argumentText=" hi ")))
    assert (message.source.thread_id, message.source.chat_name) == ("spaces/R1/threads/7", "Team")
    assert message.text == "hi"


def test_whoever_adds_the_app_by_a_mention_says_something():
    assert message_of(event("ADDED_TO_SPACE", message=said())).text == "hello"
    assert read_event(json.dumps(event("ADDED_TO_SPACE")).encode()) == "ADDED_TO_SPACE"
    assert read_event(json.dumps(event("REMOVED_FROM_SPACE")).encode()) == "REMOVED_FROM_SPACE"
    assert read_event(json.dumps(event(message=said(" ", argumentText=None))).encode()) == "MESSAGE"


def test_files_and_quotes_come_with_a_message():
    files = [
        {"contentName": "a.png", "contentType": "image/png", "attachmentDataRef": {"resourceName": "r=="}},
        {"contentName": "b.pdf"},
    ]
    quote = {"name": "spaces/D1/messages/client-1"}
    message = message_of(event(message=said("", attachment=files, quotedMessageMetadata=quote)))
    assert [(one.kind, one.url, one.name) for one in message.attachments] == [
        (AttachmentKind.PHOTO, "google-chat:r==", "a.png"),
        (AttachmentKind.DOCUMENT, "", "b.pdf"),
    ]
    assert message.reply_to is not None
    assert message.reply_to.own


def slash(name: str | None, arguments: str, number: str | int = "7", **members: Any) -> dict[str, Any]:
    used = {"type": "INVOKE", "commandId": number} | ({"commandName": name} if name else {})
    found = [{"type": "USER_MENTION"}, {"type": "SLASH_COMMAND", "slashCommand": used}]
    told = {"argumentText": arguments, "slashCommand": {"commandId": number}, "annotations": found}
    return event(message=said(**{"text": f"{name or '/new'}{arguments}", **told, **members}))


@pytest.mark.parametrize(
    ("used", "text"),
    [
        (slash("/new", " of plans"), "/new of plans"),
        (slash("/undo-reset", ""), "/undo-reset"),
        (slash("new", "", number=7), "/new"),
        (slash(None, " of plans"), "/new of plans"),
        (slash(None, " x", text="x", number=2), "/status x"),
        (event("APP_COMMAND", appCommandMetadata={"appCommandId": 1}), "/stop"),
        (event("APP_COMMAND", appCommandMetadata={"appCommandId": "2"}), "/status"),
        ({**slash("/new", " of plans"), "appCommandMetadata": {"appCommandId": 7}}, "/new of plans"),
    ],
)
def test_a_command_is_what_a_person_would_type(used: dict[str, Any], text: str):
    message = read_event(json.dumps(used).encode(), "sales", ("stop", "/status"))
    assert isinstance(message, InboundMessage)
    assert message.text == text
    assert (message.source.user_id, message.account) == ("users/1", "sales")


def test_a_command_of_a_menu_has_an_id_and_a_thread_of_its_own():
    chosen = {
        "appCommandMetadata": {"appCommandId": 1},
        "space": ROOM,
        "thread": {"name": "spaces/R1/threads/7"},
    }
    events = [
        event("APP_COMMAND", **chosen),
        event("APP_COMMAND", **chosen, eventTime="2026-11-20T13:00:00Z"),
    ]
    first, later = (read_event(json.dumps(one).encode(), commands=("stop",)) for one in events)
    assert isinstance(first, InboundMessage)
    assert isinstance(later, InboundMessage)
    assert first.source.thread_id == "spaces/R1/threads/7"
    assert first.idempotency_key != later.idempotency_key


def test_a_command_whose_name_nobody_has_told_is_kept_and_told():
    chosen = event("APP_COMMAND", appCommandMetadata={"appCommandId": 3})
    with pytest.raises(InvalidInputError, match="the command with the id 3: list it in `commands`"):
        read_event(json.dumps(chosen).encode(), commands=("stop",))
    nobody = {**chosen, "appCommandMetadata": {"appCommandId": 1}, "user": None}
    assert read_event(json.dumps(nobody).encode(), commands=("stop",)) == "APP_COMMAND"


def clicked(*parameters: dict[str, str], **members: Any) -> dict[str, Any]:
    action = {"actionMethodName": "press", "parameters": list(parameters)}
    return event("CARD_CLICKED", message=said(), action=action, **members)


def test_the_press_of_a_button_is_an_action_and_has_an_id_of_its_own():
    first = message_of(clicked({"key": "action", "value": "go"}, {"key": "label", "value": "Go!"}))
    assert (first.action, first.text) == ("go", "Go!")
    assert first.reply_to is not None
    assert first.reply_to.own
    later = message_of(clicked({"key": "action", "value": "go"}, eventTime="2026-11-20T12:00:01Z"))
    assert first.idempotency_key != later.idempotency_key
    assert (message_of(clicked()).action, later.text) == ("press", "go")
    for missing in ("action", "message", "user"):
        assert read_event(json.dumps({**clicked(), missing: None}).encode()) == "CARD_CLICKED"
    nameless = {**clicked(), "action": {"parameters": []}}
    assert read_event(json.dumps(nameless).encode()) == "CARD_CLICKED"


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b'{"type": "MESSAGE"}'),
        json.dumps(event(message=said(name="\x00"))).encode(),
        json.dumps(event(message=said(createTime="yesterday"))).encode(),
    ],
)
def test_what_cannot_be_read_is_told(raw: bytes):
    with pytest.raises(InvalidInputError, match="an event of Google Chat cannot be read"):
        read_event(raw)


# Who may send it


class SignedChat:
    """The part of an app, with the keys of an issuer that signs for Google."""

    def __init__(self, audience: str = AUDIENCE, issuer: str = "https://accounts.google.com") -> None:
        self.issuer = FakeIssuer(issuer)
        self.platform = GoogleChatPlatform(GoogleChatSettings.from_key(KEY, audience=audience))
        self.asked: list[str] = []

    def request(self, body: bytes = b"{}", **claims: Any) -> Request:
        given = {
            "aud": AUDIENCE,
            "exp": NOW.timestamp() + 60,
            "email": CHAT,
            "email_verified": True,
            **claims,
        }
        return Request("POST", "/google_chat", {"authorization": f"Bearer {self.issuer.sign(given)}"}, body)

    def verdict(self, **claims: Any) -> object:
        request = self.request(**claims)
        verification = self.platform.verify(request, NOW)
        if isinstance(verification, CallNeeded):
            self.asked.append(verification.call.url)
            keys = json.dumps(self.issuer.key_set()).encode()
            self.platform.learn(verification.call, PlatformAnswer(200, {}, keys), NOW)
            verification = self.platform.verify(request, NOW)
        return verification


def test_an_app_with_an_address_is_called_with_an_identity_token():
    chat = SignedChat()
    assert chat.verdict() is Verdict.GENUINE
    assert chat.asked == ["https://www.googleapis.com/oauth2/v3/certs"]


def test_an_app_with_a_project_number_is_called_by_the_account_of_google_chat():
    chat = SignedChat("123456789", CHAT)
    assert chat.verdict(aud="123456789", email=None) is Verdict.GENUINE
    assert chat.asked == [f"https://www.googleapis.com/service_accounts/v1/jwk/{CHAT}"]


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ({"aud": "https://another.example"}, "for somebody else"),
        ({"iss": "https://evil.example"}, "of another issuer"),
        ({"exp": NOW.timestamp() - 400}, "expired"),
        ({"email": "stranger@project.iam.gserviceaccount.com"}, "of another caller than Google Chat"),
        ({"email_verified": False}, "of another caller than Google Chat"),
        ({"email": None}, "of another caller than Google Chat"),
    ],
)
def test_a_forged_event_is_refused_for_a_reason(claims: dict[str, Any], problem: str):
    chat = SignedChat()
    assert chat.verdict(**claims) is Verdict.FORGED
    assert problem in chat.platform.why_forged(chat.request(**claims), NOW)


def test_ten_thousand_broken_events_lose_nothing():
    chat = SignedChat()
    assert chat.verdict() is Verdict.GENUINE
    token = chat.request().headers
    files = [{"contentName": "a", "contentType": "image/png", "attachmentDataRef": {"resourceName": "r"}}]
    events = [
        event(message=said()),
        event(space=ROOM, message=said("@Helper hi", attachment=files, quotedMessageMetadata={"name": "n"})),
        clicked({"key": "action", "value": "go"}),
        event("ADDED_TO_SPACE"),
        slash("/new", " of plans"),
        event("APP_COMMAND", appCommandMetadata={"appCommandId": 1, "appCommandType": "QUICK_COMMAND"}),
    ]
    recorded = [Request("POST", "/google_chat", dict(token), json.dumps(one).encode()) for one in events]
    seen = assert_survives(chat.platform, recorded, lambda request: request)
    assert min(seen[kind] for kind in ("InboundMessage", "PassedOver", "unreadable body")) > 300, seen


def test_what_is_nobodys_message_is_passed_over():
    chat = SignedChat()
    request = chat.request(json.dumps(event("REMOVED_FROM_SPACE")).encode())
    assert chat.platform.parse(request) == [PassedOver("REMOVED_FROM_SPACE")]
    assert chat.platform.response(request, []).body == b"{}"


# Out


@pytest.fixture
def platform() -> GoogleChatPlatform:
    return GoogleChatPlatform(GoogleChatSettings.from_key(json.dumps(KEY), audience=AUDIENCE))


def test_a_message_is_created_in_its_thread_under_a_name_of_its_own(platform: GoogleChatPlatform):
    (call,) = platform.render(OutboundMessage(text="hi"), TARGET, idempotency_key="k")
    own = own_message_id("k")
    assert call.url.startswith(
        f"https://chat.googleapis.com/v1/spaces/R1/messages?messageId={own}&requestId={own}"
    )
    assert "messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD" in call.url
    body = json.loads(call.body)
    assert body.pop("markupSyntax") == "MARKUP_SYNTAX_CHAT", (
        "new apps have Markdown unless a message says else"
    )
    assert body == {"text": "hi", "thread": {"name": "spaces/R1/threads/7"}}
    assert len(own) <= 63
    assert own_message_id("k2") != own


@pytest.mark.parametrize("space", ["", "users/1", "spaces/", "spaces/../x", "spaces/a?b"])
def test_what_is_no_space_is_refused(platform: GoogleChatPlatform, space: str):
    target = ReplyTarget(platform="google_chat", chat_id=space)
    with pytest.raises(DeliveryRefusedError, match="is no space of Google Chat"):
        platform.render(OutboundMessage(text="hi"), target, idempotency_key="k")


def test_an_edit_changes_a_message_of_its_space_only(platform: GoogleChatPlatform):
    call = platform.render_edit(OutboundMessage(text="hi"), TARGET, "spaces/R1/messages/client-1")
    assert (call.method, call.url.partition("?")[2]) == ("PATCH", "updateMask=text,cardsV2")
    assert json.loads(call.body)["markupSyntax"] == "MARKUP_SYNTAX_CHAT"
    for other in ("spaces/R2/messages/client-1", "spaces/R1/messages/../x", "spaces/R1/messages/a?b"):
        with pytest.raises(DeliveryRefusedError, match="is not in that space"):
            platform.render_edit(OutboundMessage(text="hi"), TARGET, other)


def test_pictures_and_buttons_are_a_card():
    photo = Attachment(kind=AttachmentKind.PHOTO, url="https://e.org/1", name="p")
    buttons = (Button("Yes", "y"), Button("Web", url="https://e.org"))
    extra = {"google_chat": {"fallbackText": "x"}}
    body = body_of(
        OutboundMessage(markup="*x*", text="x", attachments=(photo,), buttons=buttons, extra=extra)
    )
    image, row = body["cardsV2"][0]["card"]["sections"][0]["widgets"]
    assert image["image"]["imageUrl"] == "https://e.org/1"
    yes, web = row["buttonList"]["buttons"]
    assert yes["onClick"]["action"]["parameters"][0] == {"key": "action", "value": "y"}
    assert web["onClick"] == {"openLink": {"url": "https://e.org"}}
    assert (body["text"], body["fallbackText"]) == ("*x*", "x")


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (OutboundMessage(text="x" * 4097), "4096 UTF-16 units, this one has 4097"),
        (
            OutboundMessage(text="x", extra={"google_chat": {"cardsV2": ["y" * 32_000]}}),
            "may have 32000 bytes",
        ),
        (
            OutboundMessage(attachments=(Attachment(kind=AttachmentKind.VIDEO, url="https://e.org"),)),
            "is no picture",
        ),
        (
            OutboundMessage(attachments=(Attachment(kind=AttachmentKind.PHOTO, url="http://e.org"),)),
            "is no picture",
        ),
    ],
)
def test_what_google_would_refuse_is_refused(message: OutboundMessage, problem: str):
    with pytest.raises(DeliveryRefusedError, match=problem):
        body_of(message)


def test_only_google_chat_sees_the_token(platform: GoogleChatPlatform):
    needed = platform.authorize(platform.check_call(), NOW)
    assert isinstance(needed, CallNeeded)
    assert needed.call.url == "https://oauth2.googleapis.com/token"
    platform.learn(needed.call, PlatformAnswer(200, {}, b'{"access_token": "t", "expires_in": 3599}'), NOW)
    authorized = platform.authorize(platform.check_call(), NOW)
    assert isinstance(authorized, ApiCall)
    assert authorized.headers["authorization"] == "Bearer t"
    elsewhere = platform.authorize(ApiCall(url="https://evil.example/"), NOW)
    assert isinstance(elsewhere, ApiCall)
    assert not elsewhere.headers


def test_what_became_of_a_call(platform: GoogleChatPlatform):
    (create,) = platform.render(OutboundMessage(text="hi"), TARGET, idempotency_key="k")
    name = f"spaces/R1/messages/{own_message_id('k')}"
    taken = PlatformAnswer(409, {}, b'{"error": {"message": "exists"}}')
    assert platform.outcome(create, PlatformAnswer(200, {}, b"{}"), NOW) == CallSucceeded(name)
    assert platform.outcome(create, taken, NOW) == CallSucceeded(name)
    assert platform.outcome(platform.check_call(), taken, NOW) == CallRefused("exists")
    assert platform.outcome(create, PlatformAnswer(429, {}, b"{}"), NOW) == CallLimited(None)
    assert isinstance(platform.outcome(create, PlatformAnswer(502, {}, b"<html>"), NOW), CallUnknown)
    assert isinstance(platform.outcome(create, PlatformAnswer(400, {}, b"<html>"), NOW), CallRefused)


@pytest.mark.parametrize(
    ("key", "audience", "problem"),
    [
        (KEY, "bots.example", "must be the address of the endpoint or the project's number"),
        ("{", AUDIENCE, "no key of a service account"),
        ({}, AUDIENCE, "no key of a service account"),
        ({**KEY, "private_key": "no key"}, AUDIENCE, "the private key is none"),
    ],
)
def test_settings_that_cannot_work_are_told_at_once(key: Any, audience: str, problem: str):
    with pytest.raises(InvalidInputError, match=problem):
        GoogleChatSettings.from_key(key, audience=audience)


def test_a_private_key_is_not_shown():
    assert "PRIVATE" not in repr(GoogleChatSettings.from_key(KEY, audience=AUDIENCE))
