"""What Slack tells is read as people meant it, and nothing that is broken gets through or raises."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from gateway_sessions.adapters import AttachmentKind, InboundMessage, MessageKind
from gateway_sessions.adapters.group_talk import GroupRules, GroupTalk, as_group_rules
from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallLimited,
    CallRefused,
    CallSucceeded,
    CallUnauthorized,
    CallUnavailable,
    CallUnknown,
    PassedOver,
    PlatformAnswer,
    Request,
    Verdict,
)
from gateway_sessions.adapters.webhooks.signatures import hmac_hex
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.slack import ThreadSessions
from gateway_sessions.integrations.slack.platform import SlackPlatform
from gateway_sessions.integrations.slack.reading import (
    SlackIdentity,
    SlackRules,
    UnreadableSlackError,
    millionths_of,
    new_message_in,
    read_payload,
    timestamp_of,
    typed_text,
)
from gateway_sessions.integrations.slack.refusals import REFUSED, UNAUTHORIZED, UNAVAILABLE
from tests.unit.adapters.webhooks.fuzz import NOW, assert_forgeries_fail, assert_survives

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
BOT = SlackIdentity("U0BOT", "B0BOT", "T1", "helper")
SAID: dict[str, Any] = {
    **{"type": "message", "channel": "D1", "user": "U1", "text": "hello", "ts": "1760000000.000100"},
    **{"event_ts": "1760000000.000100", "channel_type": "im", "client_msg_id": "6c1b", "team": "T1"},
}


def event(**changes: Any) -> dict[str, Any]:
    content = {name: value for name, value in {**SAID, **changes}.items() if value is not None}
    return {"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": content}


def read(payload: dict[str, Any], groups: Any = "mention", **rules: Any) -> InboundMessage | None:
    return read_payload(payload, SlackRules(groups=as_group_rules(groups), **rules), BOT)


def heard(payload: dict[str, Any], **rules: Any) -> InboundMessage:
    message = read(payload, **rules)
    assert message is not None
    return message


# For whom


@pytest.mark.parametrize(
    ("changes", "is_heard"),
    [
        ({}, True),
        ({"user": "U0BOT"}, False),
        ({"user": "USLACKBOT"}, False),
        ({"bot_id": "B9"}, False),
        ({"user": None}, False),
        ({"text": ""}, False),
        ({"subtype": "channel_join"}, False),
        ({"subtype": "me_message"}, True),
        ({"subtype": "thread_broadcast"}, True),
        ({"type": "reaction_added"}, False),
        ({"channel": "C1"}, False),
        ({"channel": "C1", "text": "hi <@U0BOT> there"}, True),
        ({"channel": "C1", "type": "app_mention", "channel_type": None}, True),
        ({"channel": "C1", "thread_ts": "1.1", "parent_user_id": "U0BOT"}, True),
        ({"channel": "C1", "thread_ts": "1760000000.000100"}, False),
    ],
)
def test_only_what_is_for_the_bot_is_heard(changes: dict[str, Any], is_heard: bool):
    assert (read(event(**changes)) is not None) is is_heard


def test_what_is_said_in_a_thread_is_decided_by_the_thread():
    message = heard(event(channel="C1", thread_ts="1.1", parent_user_id="U2"))
    assert message.metadata == {"undecided": "1.1"}
    assert read(event(channel="C1"), groups=GroupTalk.ALL) is not None
    assert heard(event(channel="C1", thread_ts="1.1"), groups=lambda _: True).metadata == {}
    assert read(event(channel="C1", text="<@U0BOT>"), groups=lambda _: False) is None


def test_what_people_say_to_each_other_is_observed_if_that_is_wanted():
    observing = GroupRules("mention", observe=True)
    talk = heard(event(channel="C1"), groups=observing)
    assert (talk.observed, talk.metadata) == (True, {})
    assert read(event(channel="C1")) is None
    assert not heard(event(channel="C1", text="hi <@U0BOT>"), groups=observing).observed
    assert not heard(event(), groups=observing).observed
    in_thread = heard(event(channel="C1", thread_ts="1.1"), groups=observing)
    assert (in_thread.observed, in_thread.metadata) == (False, {"undecided": "1.1"})
    assert read(event(channel="C1", user="U0BOT"), groups=observing) is None


# Where


@pytest.mark.parametrize(
    ("threads", "channel", "thread", "lane", "answered_in"),
    [
        (ThreadSessions.CHANNELS, "C1", None, "1760000000.000100", None),
        (ThreadSessions.CHANNELS, "C1", "1.1", "1.1", None),
        (ThreadSessions.CHANNELS, "D1", None, None, None),
        (ThreadSessions.CHANNELS, "D1", "1.1", None, "1.1"),
        (ThreadSessions.EVERYWHERE, "D1", None, None, None),
        (ThreadSessions.EVERYWHERE, "D1", "1.1", "1.1", None),
        (ThreadSessions.NOWHERE, "C1", None, None, None),
        (ThreadSessions.NOWHERE, "C1", "1.1", None, "1.1"),
    ],
)
def test_a_thread_is_a_session_where_the_app_wants_it(
    threads: ThreadSessions, channel: str, thread: str | None, lane: str | None, answered_in: str | None
):
    message = heard(event(channel=channel, thread_ts=thread), threads=threads, groups=GroupTalk.ALL)
    assert (message.source.thread_id, message.metadata.get("thread_ts")) == (lane, answered_in)
    assert (message.source.chat_type, message.source.guild_id) == (
        "dm" if channel == "D1" else "channel",
        "T1",
    )


def test_a_mention_and_its_message_are_one():
    told = [heard(event(channel="C1", text="<@U0BOT> hi", type=kind)) for kind in ("message", "app_mention")]
    assert told[0].idempotency_key == told[1].idempotency_key
    assert told[0].source == told[1].source


# What


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<https://e.org>", "https://e.org"),
        ("<https://e.org/a?b=1&amp;c=2>", "https://e.org/a?b=1&c=2"),
        ("<http://e.org|e.org>", "e.org"),
        ("<https://e.org|the page>", "[the page](https://e.org)"),
        ("<mailto:a@e.org|a@e.org>", "a@e.org"),
        ("<tel:+491|+491>", "+491"),
        ("<#C1|general>", "#general"),
        ("<#C1>", "#C1"),
        ("<!here> <!channel>", "@here @channel"),
        ("<!subteam^S1|@team>", "@team"),
        ("<!subteam^S1>", "@subteam"),
        ("<!date^1^{date}|yesterday>", "yesterday"),
        ("<@U1> <@U2|bob>", "<@U1> <@U2>"),
    ],
)
def test_texts_are_read_as_they_were_typed(sent: str, typed: str):
    assert typed_text(sent) == typed


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ("<@U0BOT> hi", "hi"),
        ("<@U0BOT>, hi", "hi"),
        ("<@U0BOT|helper>: hi", "hi"),
        ("hi <@U0BOT>", "hi"),
        ("<@U0BOT> hi <@U0BOT>", "hi <@U0BOT>"),
        ("tell <@U0BOT> hi", "tell <@U0BOT> hi"),
        ("<@U0BOT> /new Trip", "/new Trip"),
        (" /new Trip", "/new Trip"),
        ("  indented", "  indented"),
    ],
)
def test_a_mention_at_the_ends_only_tells_for_whom_it_is(sent: str, text: str):
    assert heard(event(text=sent)).text == text


def test_the_bot_may_be_unknown_still():
    message = read_payload(event(text="<@U1> hi"), SlackRules(), SlackIdentity(""))
    assert message is not None
    assert message.text == "<@U1> hi"


@pytest.mark.parametrize(
    ("mimetype", "subtype", "kind"),
    [
        ("image/png", "", AttachmentKind.PHOTO),
        ("video/mp4", "", AttachmentKind.VIDEO),
        ("audio/mpeg", "", AttachmentKind.AUDIO),
        ("audio/webm", "slack_audio", AttachmentKind.VOICE),
        ("application/pdf", "", AttachmentKind.DOCUMENT),
        (None, "", AttachmentKind.DOCUMENT),
    ],
)
def test_files_have_kinds(mimetype: str | None, subtype: str, kind: AttachmentKind):
    file = {"id": "F1", "name": "a", "mimetype": mimetype, "subtype": subtype, "size": 3}
    (attachment,) = heard(event(subtype="file_share", text="", files=[file])).attachments
    assert (attachment.kind, attachment.url, attachment.size) == (kind, "slack:F1", 3)


# Changes

EDITED = {"user": "U1", "ts": "1760000009.000000"}


def changed(now: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    inner = {**SAID, **now}
    return event(
        subtype="message_changed", user=None, text=None, event_ts="1760000009.000200", message=inner,
        previous_message=before,
    )  # fmt: skip


def test_an_edit_has_the_id_of_its_message_and_a_number_that_rises():
    message = heard(changed({"text": "better", "edited": EDITED}, SAID))
    assert (message.kind, message.text, message.message_id) == (MessageKind.EDIT, "better", SAID["ts"])
    assert message.revision == 1760000009000200
    assert message.sent_at == datetime.fromisoformat("2025-10-09T08:53:20.000100+00:00")


def test_what_slack_adds_by_itself_is_no_edit():
    assert read(changed({"attachments": [{}]}, SAID)) is None
    assert read(changed({"edited": EDITED, "attachments": [{}]}, {**SAID, "edited": EDITED})) is None
    assert read(changed({"user": "U0BOT", "edited": EDITED}, SAID)) is None


def test_a_deletion_names_its_message_and_who_wrote_it():
    gone = event(subtype="message_deleted", user=None, deleted_ts=SAID["ts"], previous_message=SAID)
    tomb = changed({"subtype": "tombstone", "user": "USLACKBOT"}, {**SAID, "thread_ts": SAID["ts"]})
    for payload in (gone, tomb):
        message = heard(payload)
        assert (message.kind, message.message_id, message.text) == (MessageKind.DELETE, SAID["ts"], "")
        assert message.source.user_id == "U1"
    assert read(event(subtype="message_deleted", deleted_ts="1.1")) is None
    assert read(event(subtype="message_deleted")) is None
    elsewhere = {**gone["event"], "channel": "C1"}
    assert heard({**gone, "event": elsewhere}).kind is MessageKind.DELETE


def test_a_change_is_for_whoever_took_the_message():
    talk = event(channel="C1", subtype="message_changed", message={**SAID, "edited": EDITED})
    assert heard(talk).kind is MessageKind.EDIT


# Buttons and commands

PRESS: dict[str, Any] = {
    "type": "block_actions",
    "user": {"id": "U1", "name": "ann", "username": "ann"},
    "team": {"id": "T1"},
    "channel": {"id": "C1", "name": "team"},
    "container": {"type": "message", "message_ts": "1760000000.000100", "channel_id": "C1"},
    "message": {"type": "message", "ts": "1760000000.000100", "thread_ts": "1.1", "user": "U0BOT"},
    "actions": [
        {"action_id": "gateway:0", "value": "yes", "text": {"text": "Yes!"}, "action_ts": "1760000001.000000"}
    ],
}
COMMAND = {
    **{"command": "/new", "text": "Trip", "channel_id": "D1", "user_id": "U1", "user_name": "ann"},
    **{"team_id": "T1", "trigger_id": "7.8"},
}


def test_a_pressed_button_is_a_message_of_its_thread():
    message = heard(PRESS)
    assert (message.action, message.text, message.source.thread_id) == ("yes", "Yes!", "1.1")
    assert message.source.user_name == "ann"
    again = heard(PRESS)
    assert message.idempotency_key == again.idempotency_key is not None
    (action,) = PRESS["actions"]
    assert heard({**PRESS, "actions": [{**action, "text": None}]}).text == "yes"
    assert read({**PRESS, "actions": [{**action, "value": None}]}) is None
    assert read({**PRESS, "actions": [{**action, "action_id": "mine"}]}) is None


@pytest.mark.parametrize(
    ("changes", "own", "text"),
    [
        ({}, "", "/new Trip"),
        ({"text": ""}, "", "/new"),
        ({"command": "/helper", "text": "new Trip"}, "/helper", "/new Trip"),
        ({"command": "/helper", "text": "/new"}, "/helper", "/new"),
        ({"command": "/helper", "text": " "}, "/helper", "/help"),
        ({"command": "/other", "text": "x"}, "/helper", "/other x"),
    ],
)
def test_a_slash_command_is_a_command_of_the_gateway(changes: dict[str, str], own: str, text: str):
    message = heard({**COMMAND, **changes}, command=own)
    assert (message.text, message.message_id, message.source.user_id) == (text, "command:7.8", "U1")


@pytest.mark.parametrize(
    "payload",
    [
        event(ts="seven"),
        event(ts=7),
        event(channel="", text="<@U0BOT>"),
        event(thread_ts="x", channel="C1", text="<@U0BOT>"),
        {"type": "event_callback"},
        {"type": "block_actions"},
        {"command": "/x"},
        changed({"edited": EDITED, "ts": ""}, SAID),
    ],
)
def test_what_has_another_form_is_told_so(payload: dict[str, Any]):
    with pytest.raises(UnreadableSlackError, match="an event of Slack cannot be read"):
        read(payload)


def test_what_is_nobody_s_message_is_none():
    created = {"type": "event_callback", "event": {"type": "channel_created", "channel": {"id": "C1"}}}
    for payload in ({}, {"type": "view_submission"}, {"type": "app_rate_limited"}, created):
        assert read(payload) is None


# By HTTP


def platform(*secrets: str) -> SlackPlatform:
    made = SlackPlatform("xoxb-1", secrets or (SECRET,))
    made.bot = BOT
    return made


def signed(request: Request) -> Request:
    timestamp = str(int(NOW.timestamp()))
    signature = hmac_hex(SECRET, b"v0:" + timestamp.encode() + b":" + request.body)
    headers = {"x-slack-request-timestamp": timestamp, "x-slack-signature": f"v0={signature}"}
    return Request(request.method, request.target, {**request.headers, **headers}, request.body)


def posted(payload: Any) -> Request:
    kind = {"content-type": "application/json"}
    return signed(Request("POST", "/slack", kind, json.dumps(payload).encode()))


def form(fields: dict[str, str]) -> Request:
    kind = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    return signed(Request("POST", "/slack", kind, urlencode(fields).encode()))


RECORDED = [
    posted(event()),
    posted(event(channel="C1", text="<@U0BOT> look", subtype="file_share", files=[{"id": "F1", "size": 1}])),
    posted(changed({"text": "better", "edited": EDITED}, SAID)),
    posted(event(subtype="message_deleted", user=None, deleted_ts=SAID["ts"], previous_message=SAID)),
    posted({"type": "url_verification", "challenge": "c"}),
    form({"payload": json.dumps(PRESS)}),
    form(COMMAND),
]


def test_ten_thousand_broken_events_are_read_passed_over_or_told_unreadable():
    seen = assert_survives(platform(), RECORDED, signed)
    assert min(seen[kind] for kind in ("InboundMessage", "PassedOver", "unreadable body")) > 1000, seen


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({"type": "message"}, ("C1", "17.5")),
        ({"type": "app_mention", "subtype": None}, ("C1", "17.5")),
        ({"type": "message", "subtype": "file_share"}, ("C1", "17.5")),
        ({"type": "message", "subtype": "message_changed"}, None),
        ({"type": "message", "subtype": ["file_share"]}, None),
        ({"type": "message", "bot_id": "B1"}, None),
        ({"type": ["message"]}, None),
        ({"type": "message", "channel": 7}, None),
        ({"type": "message", "channel": ""}, None),
        ({"type": "message", "ts": 17.5}, None),
        ({"type": "message", "ts": "seven"}, None),
        ({"type": "reaction_added"}, None),
    ],
)
def test_a_new_message_is_told_from_all_else(event: dict[str, Any], found: tuple[str, str] | None):
    whole = {"channel": "C1", "ts": "17.5", **event}
    assert new_message_in({"type": "event_callback", "event": whole}) == found
    assert new_message_in({"type": "block_actions", "event": whole}) is None
    assert new_message_in({"type": "event_callback", "event": [whole]}) is None


def test_timestamps_are_numbers_that_tell_the_order():
    assert [millionths_of(one) for one in ("17.5", "17.000005", "x", None, 7)] == [
        17500000,
        17000005,
        0,
        0,
        0,
    ]
    assert timestamp_of(17000005) == "17.000005"


def test_nothing_but_the_signed_bytes_is_genuine():
    assert_forgeries_fail(platform(), RECORDED[0])


def test_a_signature_is_slack_s_own_and_not_old():
    # The example of Slack's documentation.
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "x-slack-request-timestamp": "1531420618",
        "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        "content-type": "application/x-www-form-urlencoded",
    }
    request = Request("POST", "/slack", headers, body)
    then = datetime.fromisoformat("2018-07-12T18:37:00+00:00")
    assert platform().verify(request, then) is Verdict.GENUINE
    assert platform("new", SECRET).verify(request, then) is Verdict.GENUINE
    assert platform("new").verify(request, then) is Verdict.FORGED
    assert SlackPlatform("xoxb-1").verify(request, then) is Verdict.FORGED
    assert platform().verify(request, NOW) is Verdict.FORGED
    assert "correct the signing secret" in platform("new").why_forged(request, then)
    assert "is the clock of this machine right?" in platform().why_forged(request, NOW)


def test_the_challenge_is_answered_with_its_word():
    answer = platform().answer_challenge(posted({"type": "url_verification", "challenge": "3eZ"}))
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"3eZ")
    assert platform().answer_challenge(posted(event())) is None
    assert platform().answer_challenge(posted({"type": "url_verification", "challenge": 7})) is None


def test_what_is_passed_over_is_named():
    assert platform().parse(posted({"type": "view_submission"})) == [PassedOver("view_submission")]
    joined = event(type="member_joined_channel")
    assert platform().parse(posted(joined)) == [PassedOver("member_joined_channel")]


@pytest.mark.parametrize("secret", ["", " "])
def test_empty_secrets_are_refused(secret: str):
    with pytest.raises(InvalidInputError, match="is empty: without it, anybody could post messages"):
        SlackPlatform("xoxb-1", [secret])
    with pytest.raises(InvalidInputError, match="the token of the bot is empty"):
        SlackPlatform(secret)


@pytest.mark.parametrize(
    ("url", "is_given"),
    [
        ("https://slack.com/api/files.info", True),
        ("https://files.slack.com/files-pri/T1-F1/a.png", True),
        ("http://files.slack.com/files-pri/T1-F1/a.png", False),
        ("https://evil-slack.com/a", False),
        ("https://slack.com.evil.org/a", False),
        ("https://evil.org/?https://slack.com/api/", False),
    ],
)
def test_the_token_goes_to_slack_alone(url: str, is_given: bool):
    call = platform().authorize(ApiCall(url=url), NOW)
    assert ("authorization" in call.headers) is is_given


# What became of a call


def outcome(status: int, body: Any, *, name: str = "chat.postMessage", **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    shows = name.startswith("chat.")
    call = ApiCall(url="https://slack.com/api/x", name=name, shows=shows)
    return platform().outcome(call, PlatformAnswer(status, headers, content), NOW)


def test_each_answer_has_one_meaning():
    assert outcome(200, {"ok": True, "ts": "1.1"}) == CallSucceeded("1.1")
    assert outcome(200, {"ok": True}) == CallSucceeded(None)
    assert outcome(429, {"ok": False, "error": "ratelimited"}, **{"retry-after": "7"}) == CallLimited(7.0)
    assert outcome(200, {"ok": False, "error": "ratelimited"}) == CallLimited(None)
    assert outcome(200, b"OK - 3", name="upload") == CallSucceeded(None)
    assert isinstance(outcome(200, b"<html>"), CallUnknown)
    assert isinstance(outcome(502, b"<html>"), CallUnknown)
    assert isinstance(outcome(503, b"<html>"), CallUnavailable)
    assert isinstance(outcome(200, {"ok": False, "error": "fatal_error"}), CallUnknown)
    assert isinstance(outcome(200, {"ok": "yes"}), CallUnknown)


@pytest.mark.parametrize("error", sorted(UNAUTHORIZED))
def test_a_token_that_opens_nothing_is_told_with_what_to_do(error: str):
    told = outcome(200, {"ok": False, "error": error})
    assert isinstance(told, CallUnauthorized)
    assert "OAuth & Permissions" in told.problem
    assert error in told.problem


def test_a_missing_scope_is_named():
    answer = {"ok": False, "error": "missing_scope", "needed": "chat:write", "provided": "users:read"}
    told = outcome(200, answer)
    assert isinstance(told, CallUnavailable)
    assert told.problem.startswith("the app lacks the scope chat:write: add it under OAuth & Permissions")
    assert isinstance(outcome(200, answer, name="users.info"), CallRefused)


@pytest.mark.parametrize("error", sorted(UNAVAILABLE))
def test_what_may_work_later_is_unavailable(error: str):
    assert isinstance(outcome(200, {"ok": False, "error": error}), CallUnavailable)


@pytest.mark.parametrize("error", [*sorted(REFUSED), "something_new", ""])
def test_everything_else_is_refused_in_words(error: str):
    told = outcome(200, {"ok": False, "error": error})
    assert isinstance(told, CallRefused)
    assert (error or "without a reason") in told.problem
    assert told.markup is False


def test_blocks_that_are_refused_leave_the_text():
    told = outcome(200, {"ok": False, "error": "invalid_blocks", "errors": ["must be an array"]})
    assert told == CallRefused("the blocks are refused (invalid_blocks: must be an array)", markup=True)
