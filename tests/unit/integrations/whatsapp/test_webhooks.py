"""What WhatsApp's webhooks say, read from bodies as Meta documents them, whole and broken."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions.adapters import AttachmentKind, InboundMessage
from gateway_sessions.adapters.webhooks import (
    DeliveryState,
    DeliveryStatus,
    PassedOver,
    Request,
    UnreadableEvent,
    Verdict,
    WebhookEvent,
)
from gateway_sessions.adapters.webhooks.signatures import hmac_hex
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.whatsapp import WhatsAppRules, WhatsAppSettings
from tests.unit.adapters.webhooks.fuzz import assert_forgeries_fail, assert_survives

SECRET = "the app's secret"
RULES = WhatsAppRules(
    WhatsAppSettings(
        phone_number_id="106540352242922", access_token="t", app_secret=["new", SECRET], verify_token="word"
    ),
    account="shop",
)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ANN = {"profile": {"name": "Ann"}, "wa_id": "16505551234", "user_id": "US.1349120865530274"}


def body(*messages: Any, number: str = "106540352242922", **more: Any) -> dict[str, Any]:
    metadata = {"display_phone_number": "15550783881", "phone_number_id": number}
    value = {"messaging_product": "whatsapp", "metadata": metadata, "contacts": [ANN], **more}
    if messages:
        value["messages"] = list(messages)
    change = {"field": "messages", "value": value}
    return {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [change]}]}


def message(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    ids = {"from": "16505551234", "from_user_id": "US.1349120865530274", "id": "wamid.1"}
    return {**ids, "timestamp": "1749416383", "type": kind, kind: content, **more}


def signed(request: Request) -> Request:
    signature = {"x-hub-signature-256": f"sha256={hmac_hex(SECRET, request.body)}"}
    return Request(request.method, request.target, {**request.headers, **signature}, request.body)


def posted(told: Any) -> Request:
    content = told if isinstance(told, bytes) else json.dumps(told).encode()
    return signed(Request("POST", "/whatsapp", {"content-type": "application/json"}, content))


def events(told: Any) -> list[WebhookEvent]:
    return list(RULES.parse(posted(told)))


def read(told: dict[str, Any]) -> InboundMessage:
    (event,) = events(body(told))
    assert isinstance(event, InboundMessage), event
    return event


# Whose


def test_a_person_is_known_by_the_id_for_the_business_and_by_the_number():
    said = read(message("text", {"body": "hello"}))
    source = said.source
    assert (source.platform, source.chat_type, source.account) == ("whatsapp", "dm", "shop")
    assert (source.chat_id, source.chat_id_alt) == ("US.1349120865530274", "16505551234")
    assert (source.user_id, source.user_id_alt) == ("16505551234", "US.1349120865530274")
    assert (source.user_name, source.participant_id) == ("Ann", "US.1349120865530274")
    assert (said.text, said.message_id) == ("hello", "wamid.1")
    assert said.sent_at == datetime.fromtimestamp(1749416383, UTC)


def test_a_person_without_a_number_has_the_same_chat_as_before():
    hidden = message("text", {"body": "hello"})
    del hidden["from"]
    unnumbered = {"profile": {"name": "Ann", "username": "ann"}, "user_id": ANN["user_id"]}
    (event,) = events(body(hidden, contacts=[unnumbered]))
    assert isinstance(event, InboundMessage)
    source = event.source
    assert (source.chat_id, source.chat_id_alt) == ("US.1349120865530274", None)
    assert (source.user_id, source.user_id_alt) == ("US.1349120865530274", "US.1349120865530274")


def test_a_person_without_an_id_for_the_business_is_known_by_the_number():
    old = message("text", {"body": "hello"})
    del old["from_user_id"]
    (event,) = events(body(old, contacts=[{"profile": {}, "wa_id": "16505551234"}]))
    assert isinstance(event, InboundMessage)
    assert (event.source.chat_id, event.source.user_id) == ("16505551234", "16505551234")
    assert (event.source.user_id_alt, event.source.user_name) == (None, None)


def test_names_go_to_those_who_have_them():
    bob = {"profile": {"username": "bob"}, "user_id": "US.2"}
    from_bob = message("text", {"body": "hi"}, **{"from": "17", "from_user_id": "US.2"})
    both = events(body(message("text", {"body": "hello"}), from_bob, contacts=[7, bob, ANN]))
    assert [one.source.user_name for one in both if isinstance(one, InboundMessage)] == ["Ann", "bob"]
    nameless = message("text", {"body": "hi"})
    del nameless["from"], nameless["from_user_id"]
    assert read(nameless).source.chat_id == ANN["user_id"]
    (event,) = events(body(nameless, contacts=[]))
    assert isinstance(event, UnreadableEvent)


def test_a_group_is_a_chat_of_its_own():
    source = read(message("text", {"body": "hello"}, group_id="Y2FwaV9ncm91cDox")).source
    assert (source.chat_type, source.chat_id) == ("group", "Y2FwaV9ncm91cDox")
    assert (source.user_id_alt, source.chat_id_alt) == ("US.1349120865530274", None)


# What


@pytest.mark.parametrize(
    ("kind", "content", "attached", "text"),
    [
        ("image", {"id": "7", "caption": "look"}, AttachmentKind.PHOTO, "look"),
        ("video", {"id": "7"}, AttachmentKind.VIDEO, ""),
        ("audio", {"id": "7", "voice": False}, AttachmentKind.AUDIO, ""),
        ("audio", {"id": "7", "voice": True}, AttachmentKind.VOICE, ""),
        ("document", {"id": "7", "filename": "a.pdf", "caption": "it"}, AttachmentKind.DOCUMENT, "it"),
        ("sticker", {"id": "7", "animated": True}, AttachmentKind.STICKER, ""),
    ],
)
def test_files_are_attached(kind: str, content: dict[str, Any], attached: AttachmentKind, text: str):
    said = read(message(kind, {**content, "mime_type": "x/y", "sha256": "…"}))
    (file,) = said.attachments
    assert (file.kind, file.url, file.media_type, said.text) == (attached, "whatsapp:7", "x/y", text)
    assert file.name == content.get("filename")


def test_a_place_and_a_contact_are_told():
    place = {"latitude": 48.1, "longitude": 11.5, "name": "Pub", "address": "Street 1"}
    said = read(message("location", place))
    assert (said.attachments[0].url, said.text) == ("geo:48.1,11.5", "Pub, Street 1")
    card = {"name": {"formatted_name": "Bob"}, "phones": [{"phone": "+1 7"}]}
    assert read(message("contacts", [card, {}])).text == "[contact: Bob +1 7]\n[contact: ]"


@pytest.mark.parametrize(
    ("kind", "content", "text", "action"),
    [
        (
            "interactive",
            {"type": "button_reply", "button_reply": {"id": "yes:1", "title": "Yes"}},
            "Yes",
            "yes:1",
        ),
        ("interactive", {"type": "list_reply", "list_reply": {"id": "r2", "title": ""}}, "r2", "r2"),
        ("interactive", {"type": "nfm_reply", "nfm_reply": {"response_json": "{}"}}, "{}", None),
        ("button", {"text": "Stop", "payload": "p"}, "Stop", "p"),
        ("button", {"text": "Stop"}, "Stop", "Stop"),
    ],
)
def test_a_choice_is_its_words_and_its_value(kind: str, content: Any, text: str, action: str | None):
    said = read(message(kind, content))
    assert (said.text, said.action) == (text, action)


def test_an_answer_names_what_it_answers():
    answered = read(
        message("text", {"body": "yes"}, context={"from": "15550783881", "id": "wamid.0"})
    ).reply_to
    assert answered is not None
    assert (answered.message_id, answered.own) == ("wamid.0", True)
    other = read(message("text", {"body": "yes"}, context={"from": "17", "id": "wamid.0"})).reply_to
    assert other is not None
    assert not other.own
    assert read(message("text", {"body": "yes"}, context={"forwarded": True})).reply_to is None


def test_a_kind_that_is_not_passed_on_is_told_and_an_unknown_one_is_put_aside():
    assert read(message("unsupported", {"type": "poll"})).text.startswith("[a message of a kind")
    for kind in ("reaction", "system"):
        (event,) = events(body(message(kind, {})))
        assert isinstance(event, PassedOver)
    for unknown in (
        message("hologram", {"id": 1}),
        message("interactive", {"type": "else"}),
        message("text", None),
    ):
        (event,) = events(body(unknown))
        assert isinstance(event, UnreadableEvent)
        assert "unknown type" in event.problem


# Several


def test_every_message_of_every_entry_is_read_by_itself():
    entries = [
        *body(message("text", {"body": "one"}), 7, message("text", {"body": "two"}))["entry"],
        {"changes": 7},
        {"changes": [{"field": "account_update", "value": {}}, {"field": "messages"}]},
        *body(message("text", {"body": "three"}))["entry"],
        *body()["entry"],
        *body(number="8")["entry"],
        *body(metadata=None)["entry"],
        *body(statuses={"id": "x"})["entry"],
    ]
    told = events({"entry": entries})
    assert [one.text for one in told if isinstance(one, InboundMessage)] == ["one", "two", "three"]
    problems = [one.problem for one in told if isinstance(one, UnreadableEvent)]
    assert len(problems) == 6
    assert any("for the number 8" in one for one in problems)
    assert [one.what for one in told if isinstance(one, PassedOver)] == [
        "a change of 'account_update'",
        "a change without messages",
    ]
    assert events({"entry": []}) == [PassedOver("a webhook without entries")]


@pytest.mark.parametrize("told", [b"", b"\xff", b"[" * 99999, {}, [], {"entry": 7}, {"entry": None}, "x"])
def test_what_is_no_webhook_is_refused(told: Any):
    with pytest.raises(InvalidInputError, match="no webhook of WhatsApp"):
        events(told)


# Reports


def test_reports_name_the_key_and_what_to_do():
    error = {
        "code": 131047,
        "title": "Re-engagement message",
        "error_data": {"details": "More than 24 hours have passed"},
    }
    failed = {
        **{"id": "wamid.9", "status": "failed", "timestamp": "1749416383", "recipient_id": "1650"},
        **{"biz_opaque_callback_data": "reply:7", "errors": [error]},
    }
    (event, other, broken) = events(
        body(statuses=[failed, {"id": "wamid.9", "status": "played"}, {"status": "sent"}])
    )
    assert isinstance(event, DeliveryStatus)
    assert (event.state, event.idempotency_key, event.chat_id) == (DeliveryState.FAILED, "reply:7", "1650")
    assert event.problem is not None
    assert "only templates" in event.problem
    assert "More than 24 hours have passed" in event.problem
    assert isinstance(other, PassedOver)
    assert isinstance(broken, UnreadableEvent)


def test_an_error_of_the_account_is_put_aside_in_words():
    (event, odd) = events(body(errors=[{"code": 131042, "title": "Payment"}, 7]))
    assert isinstance(event, UnreadableEvent)
    assert "billing page" in event.problem
    assert isinstance(odd, UnreadableEvent)
    assert "unknown form" in odd.problem


# Who calls


def test_only_meta_is_genuine():
    request = posted(body(message("text", {"body": "hello"})))
    assert RULES.verify(request, NOW) is Verdict.GENUINE
    for signature in ("", "sha256=", request.headers["x-hub-signature-256"].upper(), "sha1=abc"):
        forged = replace(request, headers={"x-hub-signature-256": signature})
        assert RULES.verify(forged, NOW) is Verdict.FORGED
    assert_forgeries_fail(RULES, request)


def test_the_challenge_is_returned_to_who_knows_the_word():
    query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
    genuine = Request("GET", f"/whatsapp?{query}word")
    assert RULES.verify(genuine, NOW) is Verdict.GENUINE
    answer = RULES.answer_challenge(genuine)
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"1158201444")
    for other in (f"{query}guess", query, "", "hub.verify_token=word", "&".join(["a=b"] * 200)):
        assert RULES.verify(Request("GET", f"/whatsapp?{other}"), NOW) is Verdict.FORGED
    assert RULES.answer_challenge(posted({})) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("phone_number_id", "+1 555"),
        ("access_token", ""),
        ("app_secret", ""),
        ("app_secret", []),
        ("verify_token", " "),
    ],
)
def test_settings_that_open_to_all_are_refused(name: str, value: Any):
    given = {"phone_number_id": "1", "access_token": "t", "app_secret": "s", "verify_token": "v", name: value}
    with pytest.raises(InvalidInputError, match=name):
        WhatsAppSettings(**given)


def test_secrets_do_not_show():
    settings = WhatsAppSettings(
        phone_number_id="1", access_token="tttt", app_secret="ssss", verify_token="vvvv"
    )
    assert not {"tttt", "ssss", "vvvv"} & set(repr(settings).replace("'", " ").split())


# Broken in ten thousand ways

RECORDED = [
    body(
        message("text", {"body": "hello"}, context={"from": "15550783881", "id": "wamid.0"}),
        message("image", {"id": "7", "caption": "look", "mime_type": "image/png"}),
    ),
    body(
        message("location", {"latitude": 1.5, "longitude": 2.5, "name": "Pub"}),
        message("contacts", [{"name": {"formatted_name": "Bob"}, "phones": [{"phone": "7"}]}]),
        message("interactive", {"type": "button_reply", "button_reply": {"id": "y", "title": "Yes"}}),
    ),
    body(
        statuses=[
            {
                **{"id": "wamid.9", "status": "failed", "timestamp": "1749416383", "recipient_id": "1650"},
                **{
                    "biz_opaque_callback_data": "k",
                    "errors": [{"code": 131047, "error_data": {"details": "d"}}],
                },
            }
        ],
        errors=[{"code": 1, "title": "x"}],
    ),
]


def test_nothing_that_is_signed_is_lost_however_broken():
    seen = assert_survives(RULES, [posted(one) for one in RECORDED], signed)
    assert (
        min(seen[one] for one in ("InboundMessage", "DeliveryStatus", "UnreadableEvent", "PassedOver")) > 50
    )
