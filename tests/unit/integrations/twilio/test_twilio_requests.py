"""What Twilio's requests tell, who may send them, and the calls by which they are answered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from gateway_sessions.adapters import Attachment, AttachmentKind, InboundMessage, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallLimited,
    CallRefused,
    CallSucceeded,
    CallUnauthorized,
    CallUnknown,
    DeliveryState,
    DeliveryStatus,
    PassedOver,
    PlatformAnswer,
    Request,
    UnreadableEvent,
    Verdict,
)
from gateway_sessions.adapters.webhooks.signatures import hmac_base64
from gateway_sessions.errors import DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.twilio.platform import TwilioPlatform, TwilioSettings
from gateway_sessions.integrations.twilio.reading import is_signed, read_form, read_request
from tests.unit.adapters.webhooks.fuzz import assert_forgeries_fail, assert_survives

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TOKEN = "12345"
URL = "https://bots.example/twilio"
FORM = {"content-type": "application/x-www-form-urlencoded"}
ANN = ReplyTarget(platform="twilio", chat_id="+15551000", metadata={"sender": "+15550100"})
HELLO = {
    "MessageSid": "SM1",
    "From": "+15551000",
    "To": "+15550100",
    "Body": "hello",
    "SmsStatus": "received",
}


def platform_of(**changes: Any) -> TwilioPlatform:
    settings = {
        "account_sid": "AC1",
        "auth_token": TOKEN,
        "sender": "+15550100",
        "public_url": URL,
        **changes,
    }
    return TwilioPlatform(TwilioSettings(**settings), account="sales")


@pytest.fixture
def platform() -> TwilioPlatform:
    return platform_of()


def signed(fields: Mapping[str, str] | bytes, url: str = URL, target: str = "/twilio") -> Request:
    body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
    try:
        pairs = sorted(set(read_form(body)))
    except InvalidInputError:
        pairs = []
    content = (url + "".join(name + value for name, value in pairs)).encode()
    return Request("POST", target, {**FORM, "x-twilio-signature": hmac_base64(TOKEN, content, "sha1")}, body)


def read(fields: Mapping[str, str]) -> Any:
    return read_request(list(fields.items()), account="sales")


# In


def test_a_message_tells_who_wrote_to_which_number():
    message = read(HELLO)
    assert isinstance(message, InboundMessage)
    assert (message.text, message.message_id, message.account) == ("hello", "SM1", "sales")
    assert (message.source.chat_id, message.source.user_id, message.source.chat_type) == (
        "+15551000",
        "+15551000",
        "dm",
    )
    assert message.metadata == {"sender": "+15550100"}


def test_files_and_places_come_with_a_message():
    media = {f"MediaUrl{at}": f"https://api.twilio.com/{at}" for at in range(3)}
    kinds = {"MediaContentType0": "image/jpeg", "MediaContentType1": "text/vcard"}
    place = {"Latitude": "1.5", "Longitude": "2", "Label": "home"}
    found = read({**HELLO, **media, **kinds, **place}).attachments
    assert [(str(one.kind), one.media_type) for one in found] == [
        ("photo", "image/jpeg"),
        ("document", "text/vcard"),
        ("document", None),
        ("location", None),
    ]
    assert (found[3].url, found[3].name) == ("geo:1.5,2", "home")


def test_a_person_on_whatsapp_has_a_name_and_may_press_buttons():
    message = read(
        {
            **HELLO,
            "From": "whatsapp:+1",
            "ProfileName": "Ann",
            "Body": "",
            "ButtonText": "Yes",
            "ButtonPayload": "y",
        }
    )
    assert (message.source.user_name, message.text, message.action) == ("Ann", "Yes", "y")


@pytest.mark.parametrize(("sender", "own"), [("+15550100", True), ("+15551000", False)])
def test_an_answer_names_the_message_that_it_answers(sender: str, own: bool):
    reply = read(
        {**HELLO, "OriginalRepliedMessageSid": "SM0", "OriginalRepliedMessageSender": sender}
    ).reply_to
    assert (reply.message_id, reply.own) == ("SM0", own)


@pytest.mark.parametrize("word", ["STOP", " stop\n", "Unsubscribe", "CANCEL", "START"])
def test_the_agent_hears_no_stop(word: str):
    assert isinstance(read({**HELLO, "Body": word}), PassedOver)


def test_only_whole_words_stop_and_none_on_whatsapp():
    assert isinstance(read({**HELLO, "Body": "please stop"}), InboundMessage)
    assert isinstance(read({**HELLO, "Body": "stop", "From": "whatsapp:+1"}), InboundMessage)
    assert isinstance(read({**HELLO, "Body": "arrêt", "OptOutType": "STOP"}), PassedOver)
    kept = read_request(list({**HELLO, "Body": "stop"}.items()), opt_out_words=frozenset())
    assert isinstance(kept, InboundMessage)


def test_the_fate_of_a_message_is_told():
    delivered = {"MessageSid": "SM1", "MessageStatus": "delivered", "To": "+1"}
    assert read(delivered) == DeliveryStatus(message_id="SM1", state=DeliveryState.DELIVERED, chat_id="+1")
    failed = read({**delivered, "MessageStatus": "undelivered", "ErrorCode": "30007"})
    assert failed.problem == "the carrier took the message for spam (error 30007)"
    unknown = read({**delivered, "MessageStatus": "failed"})
    assert unknown.problem == "Twilio could not deliver it (error unknown)"
    assert isinstance(read({**delivered, "MessageStatus": "queued"}), PassedOver)


@pytest.mark.parametrize("missing", ["MessageSid", "From"])
def test_a_message_without_an_id_or_a_sender_cannot_be_read(missing: str):
    event = read({**HELLO, missing: ""})
    assert isinstance(event, UnreadableEvent)
    assert "names no sender or no message" in event.problem


@pytest.mark.parametrize("raw", [b"\xff", b"a=%ff", "é=1".encode(), b"a=1&" * 300])
def test_what_is_no_form_is_told(raw: bytes):
    with pytest.raises(InvalidInputError, match="a request of Twilio cannot be read"):
        read_form(raw)


# Signatures


def test_the_public_address_is_signed_and_not_the_one_behind_a_proxy(platform: TwilioPlatform):
    assert platform.verify(signed(HELLO, target="/inner/path"), NOW) is Verdict.GENUINE
    assert platform.verify(signed(HELLO, url="http://10.0.0.7/twilio"), NOW) is Verdict.FORGED
    assert platform.verify(signed(HELLO, url=f"{URL}?a=b", target="/x?a=b"), NOW) is Verdict.GENUINE
    assert platform.verify(signed(HELLO, url="https://bots.example:443/twilio"), NOW) is Verdict.GENUINE
    assert platform.verify(signed(b"\xff"), NOW) is Verdict.FORGED
    assert platform.verify(Request("POST", "/twilio", FORM, b""), NOW) is Verdict.FORGED


def test_an_unusual_port_is_signed_as_it_is():
    unusual = "https://bots.example:8443/twilio"
    platform = platform_of(public_url=unusual)
    assert platform.verify(signed(HELLO, url=unusual), NOW) is Verdict.GENUINE
    assert platform.verify(signed(HELLO), NOW) is Verdict.FORGED


def test_the_signature_is_the_one_of_the_documentation():
    form = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+14158675309",
        "Digits": "1234",
        "From": "+14158675309",
        "To": "+18005551212",
    }
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    assert is_signed("RSOYDt4T1cUTdK1PDd93/VVr8B8=", url, list(form.items()), "12345")
    assert not is_signed("RSOYDt4T1cUTdK1PDd93/VVr8B8=", url, [*form.items(), ("x", "y")], "12345")


def test_a_changed_form_is_a_forgery(platform: TwilioPlatform):
    # A flip between `+` and `%20`, or of a hex digit's case, changes no value.
    assert_forgeries_fail(platform, signed({"MessageSid": "SM1", "From": "a", "Body": "hello"}))


def test_ten_thousand_broken_forms_lose_nothing(platform: TwilioPlatform):
    media = {"MediaUrl0": "https://x/0", "MediaContentType0": "image/png", "Latitude": "1", "Longitude": "2"}
    recorded = [
        signed({**HELLO, **media}),
        signed({**HELLO, "Body": "STOP"}),
        signed({"MessageSid": "SM1", "MessageStatus": "failed", "ErrorCode": "30003", "To": "+1"}),
        signed({**HELLO, "ButtonPayload": "x", "OriginalRepliedMessageSid": "SM0"}),
    ]

    class Readable(TwilioPlatform):
        """Takes what is no form for genuine: it cannot be signed, and must be told all the same."""

        def verify(self, request: Request, now: datetime) -> Verdict:
            verdict = super().verify(request, now)
            try:
                read_form(request.body)
            except InvalidInputError:
                assert verdict is Verdict.FORGED
                return Verdict.GENUINE
            return verdict

    platform.__class__ = Readable
    seen = assert_survives(platform, recorded, lambda request: signed(request.body))
    kinds = ("InboundMessage", "DeliveryStatus", "PassedOver", "UnreadableEvent", "unreadable body")
    assert min(seen[kind] for kind in kinds) > 50, seen


def test_the_answer_says_nothing(platform: TwilioPlatform):
    response = platform.response(signed(HELLO), [])
    assert (response.status, response.headers["content-type"]) == (200, "text/xml")
    assert b"<Response></Response>" in response.body


# Out


def fields_of(call: ApiCall) -> list[tuple[str, str]]:
    return parse_qsl(call.body.decode())


def test_an_answer_comes_from_the_number_that_somebody_wrote_to(platform: TwilioPlatform):
    (call,) = platform.render(OutboundMessage(text="hi"), ANN, idempotency_key="k")
    assert call.url == "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json"
    assert fields_of(call) == [
        *(("To", "+15551000"), ("From", "+15550100"), ("StatusCallback", URL), ("Body", "hi")),
    ]


def test_a_messaging_service_sends_what_answers_nothing():
    target = ReplyTarget(platform="twilio", user_id="+1")
    (call,) = platform_of(sender="MG1").render(OutboundMessage(text="hi"), target, idempotency_key="k")
    assert ("MessagingServiceSid", "MG1") in fields_of(call)


def test_files_go_by_their_addresses_and_own_fields_too(platform: TwilioPlatform):
    photos = tuple(Attachment(kind=AttachmentKind.PHOTO, url=f"https://e.org/{at}") for at in range(2))
    message = OutboundMessage(attachments=photos, extra={"twilio": {"ContentSid": "HX1"}})
    (call,) = platform.render(message, ANN, idempotency_key="k")
    assert [value for name, value in fields_of(call) if name == "MediaUrl"] == [
        "https://e.org/0",
        "https://e.org/1",
    ]
    assert ("ContentSid", "HX1") in fields_of(call)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (OutboundMessage(text="x" * 1601), "1600 UTF-16 units, this one has 1601"),
        (
            OutboundMessage(attachments=(Attachment(kind=AttachmentKind.PHOTO, url="http://e.org"),)),
            "no https address",
        ),
        (
            OutboundMessage(attachments=(Attachment(kind=AttachmentKind.PHOTO, url="https://e.org"),) * 11),
            "may have 10 files, this one has 11",
        ),
    ],
)
def test_what_twilio_would_refuse_is_refused(
    platform: TwilioPlatform, message: OutboundMessage, problem: str
):
    with pytest.raises(DeliveryRefusedError, match=problem):
        platform.render(message, ANN, idempotency_key="k")


def test_without_media_files_are_told_of_in_words():
    assert platform_of(media=False).capabilities.attachments == frozenset()


def test_only_twilio_sees_the_secret(platform: TwilioPlatform):
    call = platform.check_call()
    assert platform.authorize(call, NOW).headers["authorization"].startswith("Basic ")
    elsewhere = ApiCall(url="https://api.twilio.com.evil.example/x")
    assert platform.authorize(elsewhere, NOW) == elsewhere


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (201, b'{"sid": "SM7"}', CallSucceeded("SM7")),
        (201, b'{"sid": 7}', CallSucceeded(None)),
        (429, b'{"code": 20429}', CallLimited(None)),
        (
            400,
            b'{"code": 21610, "message": "m"}',
            CallRefused(
                "the person has replied STOP: nothing may be sent until they reply START (error 21610)"
            ),
        ),
        (400, b'{"code": 7, "message": "in words"}', CallRefused("in words (error 7)")),
    ],
)
def test_what_became_of_a_call(platform: TwilioPlatform, status: int, body: bytes, outcome: object):
    assert platform.outcome(platform.check_call(), PlatformAnswer(status, {}, body), NOW) == outcome


def test_what_else_became_of_a_call(platform: TwilioPlatform):
    call = platform.check_call()
    assert isinstance(
        platform.outcome(call, PlatformAnswer(401, {}, b'{"code": 20003}'), NOW), CallUnauthorized
    )
    assert isinstance(platform.outcome(call, PlatformAnswer(502, {}, b"<html>"), NOW), CallUnknown)
    assert isinstance(platform.outcome(call, PlatformAnswer(400, {}, b"<html>"), NOW), CallRefused)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"account_sid": ""}, "account_sid is missing"),
        ({"account_sid": "AC/../1"}, "is no id of an account"),
        ({"auth_token": " "}, "auth_token is missing"),
        ({"sender": ""}, "sender is missing"),
        ({"public_url": "bots.example"}, "must be the address that Twilio posts to"),
        ({"public_url": f"{URL}#rc=3"}, "without a #"),
    ],
)
def test_settings_that_cannot_work_are_told_at_once(changes: dict[str, str], problem: str):
    with pytest.raises(InvalidInputError, match=problem):
        platform_of(**changes)
