"""The calls that show a message in Teams, and what became of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions.adapters import Attachment, AttachmentKind, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallLimited,
    CallNeeded,
    CallRefused,
    CallSucceeded,
    CallUnauthorized,
    CallUnavailable,
    CallUnknown,
    PlatformAnswer,
)
from gateway_sessions.core.delivery.outbound_messages import Button
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.teams.activities import TeamsReadingRules
from gateway_sessions.integrations.teams.platform import TeamsPlatform
from gateway_sessions.integrations.teams.sending import LARGEST_PICTURE, LONGEST_TEXT, activity_of, outcome_of
from gateway_sessions.integrations.teams.settings import TeamsSettings
from gateway_sessions.testing.fakes.teams.connector import check_activity

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SERVICE = "https://smba.trafficmanager.net/amer/"
CHANNEL = ReplyTarget(
    platform="teams",
    chat_id="19:c@thread.tacv2",
    thread_id="1700",
    reply_to="1764",
    metadata={"service_url": SERVICE},
)


@pytest.fixture
def platform() -> TeamsPlatform:
    return TeamsPlatform(TeamsSettings(app_id="app", app_secret="hidden"), TeamsReadingRules())


def body_of(call: ApiCall) -> dict[str, Any]:
    return json.loads(call.body)


def test_an_answer_is_sent_to_its_thread(platform: TeamsPlatform):
    (call,) = platform.render(OutboundMessage(text="hi"), CHANNEL, idempotency_key="k")
    place = "v3/conversations/19%3Ac%40thread.tacv2%3Bmessageid%3D1700/activities/1764"
    assert (call.method, call.url) == ("POST", SERVICE + place)
    assert body_of(call) == {"type": "message", "text": "hi", "textFormat": "plain", "replyToId": "1764"}


def test_an_edit_names_its_message(platform: TeamsPlatform):
    call = platform.render_edit(OutboundMessage(text="hi"), CHANNEL, "17/../65")
    assert (call.method, call.url.rpartition("/")[2]) == ("PUT", "17%2F..%2F65")
    assert body_of(call)["id"] == "17/../65"


def test_typing_is_shown_to_the_conversation(platform: TeamsPlatform):
    call = platform.render_typing(CHANNEL)
    assert (body_of(call), call.shows) == ({"type": "typing"}, False)
    assert call.url.endswith("/activities")


def test_markup_is_markdown():
    activity = activity_of(CHANNEL, OutboundMessage(text="bold", markup="**bold**"))
    assert (activity["text"], activity["textFormat"]) == ("**bold**", "markdown")


def test_pictures_are_shown_and_other_files_are_not():
    photos = (
        Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/p.png", name="p.png"),
        Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/q", media_type="image/gif"),
        Attachment(kind=AttachmentKind.PHOTO, url="data:image/jpeg;base64,AAAA"),
    )
    activity = activity_of(CHANNEL, OutboundMessage(attachments=photos))
    assert [(one["contentType"], one["name"]) for one in activity["attachments"]] == [
        ("image/*", "p.png"),
        ("image/gif", "picture"),
        ("image/jpeg", "picture"),
    ]
    check_activity(activity)


@pytest.mark.parametrize(
    ("attachment", "problem"),
    [
        (Attachment(kind=AttachmentKind.DOCUMENT, url="https://e.org/1"), "is no picture"),
        (Attachment(kind=AttachmentKind.PHOTO, url="/etc/passwd"), "has no address that Teams can read"),
        (Attachment(kind=AttachmentKind.PHOTO, url="http://e.org/1"), "has no address that Teams can read"),
        (Attachment(kind=AttachmentKind.PHOTO, url="data:text/html,x"), "has no address that Teams can read"),
        (
            Attachment(kind=AttachmentKind.PHOTO, url="data:image/png;base64," + "A" * LARGEST_PICTURE),
            "send its https address",
        ),
    ],
)
def test_what_teams_would_not_show_is_refused(attachment: Attachment, problem: str):
    with pytest.raises(DeliveryRefusedError, match=problem):
        activity_of(CHANNEL, OutboundMessage(text="look", attachments=(attachment,)))


def test_a_text_that_is_too_long_is_refused():
    activity_of(CHANNEL, OutboundMessage(text="é" * (LONGEST_TEXT // 2)))
    for message in (
        OutboundMessage(text="é" * (LONGEST_TEXT // 2) + "x"),
        OutboundMessage(text="x", markup="x" * (LONGEST_TEXT + 1)),
    ):
        with pytest.raises(DeliveryRefusedError, match="a text may have 20000 bytes, this one has 20001"):
            activity_of(CHANNEL, message)


def test_buttons_are_a_card_in_rows_that_teams_shows_whole():
    buttons = (
        *(Button(f"B{number}", f"v{number}") for number in range(7)),
        Button("Web", url="https://e.org"),
    )
    activity = activity_of(CHANNEL, OutboundMessage(text="choose", buttons=buttons))
    check_activity(activity)
    (card,) = activity["attachments"]
    rows = card["content"]["body"]
    assert [len(row["actions"]) for row in rows] == [6, 2]
    assert rows[0]["actions"][1]["data"] == {"action": "v1", "label": "B1"}
    assert rows[1]["actions"][1] == {"type": "Action.OpenUrl", "title": "Web", "url": "https://e.org"}


def test_buttons_that_take_too_much_room_are_refused():
    buttons = tuple(Button(f"B{number}", "v" * 1000) for number in range(30))
    with pytest.raises(DeliveryRefusedError, match="a message may have 28672 bytes with its buttons"):
        activity_of(CHANNEL, OutboundMessage(text="choose", buttons=buttons))


def test_what_is_meant_for_teams_alone_is_part_of_the_activity():
    card = {"contentType": "application/vnd.microsoft.card.hero", "content": {"title": "t"}}
    extra = {"teams": {"importance": "high", "attachments": [card]}, "slack": {"blocks": []}}
    photo = Attachment(kind=AttachmentKind.PHOTO, url="https://e.org/1")
    activity = activity_of(CHANNEL, OutboundMessage(text="x", extra=extra, attachments=(photo,)))
    assert activity["importance"] == "high"
    assert [one["contentType"] for one in activity["attachments"]] == ["image/*", card["contentType"]]
    assert "blocks" not in activity
    assert "attachments" not in activity_of(CHANNEL, OutboundMessage(text="x", extra={"teams": 7}))


def test_a_person_without_a_conversation_cannot_be_written_to(platform: TeamsPlatform):
    target = ReplyTarget(platform="teams", user_id="29:ann")
    with pytest.raises(DeliveryRefusedError, match="a message needs a conversation"):
        platform.render(OutboundMessage(text="hi"), target, idempotency_key="k")


@pytest.mark.parametrize("service", ["https://evil.example/", "http://169.254.169.254/", "file:///etc", 7])
def test_a_stored_target_cannot_lead_elsewhere(platform: TeamsPlatform, service: object):
    target = ReplyTarget(platform="teams", chat_id="a:1", metadata={"service_url": service})
    with pytest.raises(DeliveryRefusedError, match="a service that is none of Teams'"):
        platform.render(OutboundMessage(text="hi"), target, idempotency_key="k")


# Tokens


def test_only_services_of_teams_see_the_token(platform: TeamsPlatform):
    call = platform.render_typing(CHANNEL)
    needed = platform.authorize(call, NOW)
    assert isinstance(needed, CallNeeded)
    assert needed.call.url == "https://login.microsoftonline.com/botframework.com/oauth2/v2.0/token"
    assert b"client_secret=hidden" in needed.call.body
    assert "hidden" not in repr(needed)
    platform.learn(needed.call, PlatformAnswer(200, {}, b'{"access_token":"t","expires_in":3600}'), NOW)
    authorized = platform.authorize(call, NOW)
    assert isinstance(authorized, ApiCall)
    assert authorized.headers["authorization"] == "Bearer t"
    elsewhere = platform.authorize(ApiCall(url="https://contoso.sharepoint.com/1"), NOW)
    assert isinstance(elsewhere, ApiCall)
    assert "authorization" not in elsewhere.headers
    assert platform.forget_token()
    assert isinstance(platform.authorize(call, NOW), CallNeeded)


# Outcomes


def answer(status: int, code: str = "", **headers: str) -> PlatformAnswer:
    body = json.dumps({"error": {"code": code, "message": "in words"}}).encode() if code else b"<html>"
    return PlatformAnswer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (PlatformAnswer(201, {}, b'{"id":"1765"}'), CallSucceeded("1765")),
        (PlatformAnswer(200, {}, b""), CallSucceeded(None)),
        (PlatformAnswer(200, {}, b'{"id":7}'), CallSucceeded(None)),
        (answer(429, "TooManyRequests", retry_after="7"), CallLimited(7.0)),
        (answer(429), CallLimited(None)),
    ],
)
def test_what_is_shown_and_what_has_to_wait(given: PlatformAnswer, outcome: object):
    assert outcome_of(given, NOW) == outcome


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, CallUnauthorized),
        (412, CallUnavailable),
        (500, CallUnknown),
        (502, CallUnknown),
        (504, CallUnknown),
    ],
)
def test_what_may_be_tried_again(status: int, kind: type):
    assert isinstance(outcome_of(answer(status), NOW), kind)


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        (403, "BotNotInConversationRoster", "the bot is not part of the conversation any more: add it again"),
        (403, "MessageWritesBlocked", "the person or the administrator has blocked the bot"),
        (404, "ConversationNotFound", "the conversation does not exist any more"),
        (413, "MessageSizeTooBig", "the message is larger than Teams takes"),
        (400, "BadSyntax", "BadSyntax: in words"),
        (400, "", "answered with status 400: <html>"),
    ],
)
def test_a_refusal_says_why(status: int, code: str, problem: str):
    outcome = outcome_of(answer(status, code), NOW)
    assert isinstance(outcome, CallRefused)
    assert outcome.problem.startswith(problem)
