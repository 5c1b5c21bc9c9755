"""What Discord's messages and interactions bring, and which requests show a reply."""

from __future__ import annotations

import base64
import random
import string
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    Button,
    InboundMessage,
    MessageKind,
    OutboundMessage,
    ReplyTo,
)
from gateway_sessions.adapters.group_talk import GroupRules
from gateway_sessions.core.queue.inbound import encode_message
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
)
from gateway_sessions.integrations.discord.api import (
    DiscordApiError,
    DiscordNotSentError,
    DiscordRequest,
    failure_of,
)
from gateway_sessions.integrations.discord.interactions import (
    InteractionAnswer,
    action_of,
    is_alive,
    place_of,
    read_interaction,
    request_in_place,
    request_that_answers,
)
from gateway_sessions.integrations.discord.objects import (
    DiscordInteraction,
    DiscordMessage,
    DiscordPlace,
    DiscordUser,
    milliseconds_of,
    read_as,
    snowflake_at,
)
from gateway_sessions.integrations.discord.reading import DiscordRules, read_deletion, read_message
from gateway_sessions.integrations.discord.sending import (
    LONGEST_NONCE,
    custom_id_of,
    nonce_of,
    request_that_edits,
    requests_that_show,
    rows_of_buttons,
    values_to_remember,
)

BOT = DiscordUser("7", "helper", bot=True)
RULES = DiscordRules(bot_id="7", bot_name="helper", own_roles=frozenset({"70"}))
ALL = replace(RULES, groups=GroupRules("all"))
PRIVATE = DiscordPlace("100")
CHANNEL = DiscordPlace("200", "300", "general")
THREAD = DiscordPlace("201", "300", "general", "200")
ANN = {"id": "8", "username": "ann", "global_name": "Ann"}
NUMBER = str(snowflake_at(1_700_000_000_123) + 5)


def message(content: str = "hello", **more: Any) -> DiscordMessage:
    return read_as(DiscordMessage, {"id": NUMBER, "author": ANN, "content": content, **more})


def read(content: str = "hello", place: DiscordPlace = CHANNEL, **more: Any) -> InboundMessage | None:
    return read_message(message(content, **more), place, ALL)


def text_of(content: str, **more: Any) -> str:
    found = read(content, **more)
    assert found is not None
    return found.text


# For whom


def test_a_message_tells_where_it_stands_and_who_wrote_it():
    found = read(member={"nick": "Annie"})
    assert found is not None
    source = found.source
    assert (source.chat_type, source.chat_id, source.chat_name, source.thread_id) == (
        "group",
        "200",
        "general",
        None,
    )
    assert (source.guild_id, source.user_id, source.user_name, source.is_bot) == ("300", "8", "Annie", False)
    assert found.sent_at == datetime.fromtimestamp(1_700_000_000.123, UTC)
    assert (found.message_id, found.kind, found.revision) == (NUMBER, MessageKind.NEW, 0)


def test_a_thread_is_a_lane_of_its_own_in_its_channel():
    found = read(place=THREAD)
    assert found is not None
    assert (found.source.chat_id, found.source.thread_id) == ("200", "201")
    private = read(place=PRIVATE)
    assert private is not None
    assert (private.source.chat_type, private.source.chat_id) == ("dm", "100")
    assert read_deletion("9", THREAD, RULES).original_key.split("\x1f")[-1] == "200"


@pytest.mark.parametrize(
    ("more", "heard"),
    [
        ({}, False),
        ({"mentions": [{"id": "7"}]}, True),
        ({"mention_roles": ["70"]}, True),
        ({"mention_roles": ["71"]}, False),
        ({"referenced_message": {"id": "1", "author": {"id": "7"}}}, True),
        ({"referenced_message": {"id": "1", "author": {"id": "9"}}}, False),
        ({"mentions": [{"id": "7"}], "type": 6}, False),
        ({"mentions": [{"id": "7"}], "webhook_id": "5"}, False),
        ({"mentions": [{"id": "7"}], "author": {**ANN, "bot": True}}, False),
        ({"mentions": [{"id": "7"}], "author": {"id": "7"}}, False),
    ],
)
def test_in_guilds_only_what_addresses_the_bot_is_for_it(more: dict[str, Any], heard: bool):
    one = message(**more)
    assert (read_message(one, CHANNEL, RULES) is not None) is heard
    if "type" not in more and "author" not in more and "webhook_id" not in more:
        assert read_message(one, PRIVATE, RULES) is not None


def test_what_people_say_to_each_other_is_observed_if_that_is_wanted():
    observing = replace(RULES, groups=GroupRules("mention", observe=True))
    talk = read_message(message(), CHANNEL, observing)
    assert talk is not None
    assert talk.observed
    assert read_message(message(), CHANNEL, RULES) is None
    for one, place in ((message(mentions=[{"id": "7"}]), CHANNEL), (message(), PRIVATE)):
        found = read_message(one, place, observing)
        assert found is not None
        assert not found.observed
    assert read_message(message(author={**ANN, "bot": True}), CHANNEL, observing) is None


def test_a_program_may_say_otherwise():
    only_ann = replace(RULES, groups=GroupRules(lambda one: one.author.username == "ann"))
    assert read_message(message(), CHANNEL, only_ann) is not None
    assert read_message(message(author={"id": "9"}), CHANNEL, only_ann) is None
    loud = replace(ALL, bots=True)
    assert read_message(message(author={**ANN, "bot": True}), CHANNEL, loud) is not None


# What


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<@7> hello", "hello"),
        ("<@!7>, hello", "hello"),
        ("<@&70>: hello", "hello"),
        ("hello <@7>", "hello"),
        ("ask <@7> about it", "ask @helper about it"),
        ("<@8> and <@9> met <@&71>", "@Ann and <@9> met <@&71>"),
        ("7 < @8 > 3", "7 < @8 > 3"),
    ],
)
def test_mentions_are_names_and_none_at_the_ends(content: str, expected: str):
    assert text_of(content, mentions=[ANN, {"id": "7", "username": "helper"}]) == expected


def test_what_is_no_text_is_told_in_words():
    poll = {
        "question": {"text": "When?"},
        "answers": [{"poll_media": {"text": word}} for word in ("now", "later")],
    }
    assert text_of("", poll=poll) == "[poll: When? (now, later)]"
    forwarded = [{"message": {"content": "news", "attachments": [{"url": "u", "filename": "f"}]}}]
    found = read("", message_snapshots=forwarded, message_reference={"message_id": "3", "type": 1})
    assert found is not None
    assert (found.text, found.reply_to, len(found.attachments)) == ("[forwarded:]\nnews", None, 1)
    assert read("") is None


def test_files_have_their_kinds():
    kinds = {
        "image/png": AttachmentKind.PHOTO,
        "video/mp4": AttachmentKind.VIDEO,
        "audio/ogg; codecs=opus": AttachmentKind.AUDIO,
        "text/plain": AttachmentKind.DOCUMENT,
        None: AttachmentKind.DOCUMENT,
    }
    files = [{"url": "u", "filename": "f", "content_type": kind, "size": 3} for kind in kinds]
    found = read("", attachments=files, sticker_items=[{"id": "5", "name": "wave"}])
    assert found is not None
    assert [one.kind for one in found.attachments] == [*kinds.values(), AttachmentKind.STICKER]
    assert found.attachments[2].media_type == "audio/ogg"
    voice = read("", attachments=[files[2]], flags=1 << 13)
    assert voice is not None
    assert voice.attachments[0].kind is AttachmentKind.VOICE


def test_an_answer_names_what_it_answers():
    answered = {"id": "5", "author": {"id": "7"}, "content": "<@8> what?", "mentions": [ANN]}
    found = read(message_reference={"message_id": "5"}, referenced_message=answered)
    assert found is not None
    assert found.reply_to == ReplyTo(message_id="5", text="@Ann what?", author_id="7", own=True)
    gone = read(message_reference={"message_id": "5"})
    assert gone is not None
    assert gone.reply_to == ReplyTo(message_id="5")
    assert read(message_reference={}) is not None


def test_edits_are_counted_and_previews_are_none():
    first = message("x", edited_timestamp="2026-11-20T10:00:00.000001+00:00")
    second = message("y", edited_timestamp="2026-11-20T10:00:00.000002+00:00")
    edits = [read_message(one, CHANNEL, ALL, edited=True) for one in (first, second)]
    assert [one.revision for one in edits if one] == [1795168800000001, 1795168800000002]
    assert {one.kind for one in edits if one} == {MessageKind.EDIT}
    assert read_message(message("z"), CHANNEL, ALL, edited=True) is None


def test_a_deletion_knows_its_author_if_somebody_does():
    assert read_deletion("9", CHANNEL, RULES, DiscordUser("8", "ann")).source.user_id == "8"
    assert read_deletion("9", CHANNEL, RULES).source.user_id is None


# Interactions


def interaction(kind: int, data: dict[str, Any], **more: Any) -> DiscordInteraction:
    base = {"id": NUMBER, "type": kind, "token": "t", "data": data, "user": ANN, "channel_id": "100"}
    return read_as(DiscordInteraction, {**base, **more})


def test_a_command_reads_as_if_it_were_typed():
    options = [{"name": "sub", "options": [{"name": "title", "value": "Trip"}, {"name": "n", "value": 3}]}]
    found = read_interaction(interaction(2, {"name": "new", "options": options}), PRIVATE, RULES, {})
    assert found is not None
    assert (found.text, found.command, found.arguments) == ("/new sub Trip 3", "new", "sub Trip 3")
    assert found.metadata == {"answers": "", "interaction": "t"}


def test_a_press_tells_value_and_label():
    shown = {"id": "5", "author": {"id": "7"}, "components": rows_of_buttons([Button("Yes", "confirm:1")])}
    press = interaction(3, {"custom_id": "gs:confirm:1"}, message=shown, member={"nick": "A", "user": ANN})
    found = read_interaction(press, CHANNEL, RULES, {})
    assert found is not None
    assert (found.action, found.text, found.source.user_name) == ("confirm:1", "Yes", "A")
    assert found.metadata == {"answers": "5"}
    bare = read_interaction(interaction(3, {"custom_id": "gs:x"}), PRIVATE, RULES, {})
    assert bare is not None
    assert (bare.text, bare.action) == ("x", "x")
    assert read_interaction(interaction(3, {"custom_id": "theirs"}), PRIVATE, RULES, {}) is None
    assert read_interaction(interaction(4, {}), PRIVATE, RULES, {}) is None


def test_long_values_are_remembered_under_a_digest():
    button = Button("Go", "v" * 200)
    name = custom_id_of(button)
    assert len(name) <= 100
    assert values_to_remember([button, Button("No", "n"), Button("Page", url="https://e.org")]) == {
        name: "v" * 200
    }
    assert action_of(name, {name: "v" * 200}) == "v" * 200
    assert action_of(name, {}) is None


def test_the_place_of_an_interaction_is_its_channel():
    thread = {"id": "201", "type": 11, "name": "plans", "parent_id": "200"}
    assert place_of(interaction(2, {}, channel=thread, guild_id="300")) == DiscordPlace(
        "201", "300", "plans", "200"
    )
    room = {"id": "200", "type": 0, "name": "general", "parent_id": "1"}
    assert place_of(interaction(2, {}, channel=room, guild_id="300")).thread_id is None
    assert place_of(interaction(2, {})) == PRIVATE


def test_an_interaction_without_a_person_is_unreadable():
    with pytest.raises(InvalidInputError, match="who it is from"):
        read_interaction(read_as(DiscordInteraction, {"id": "1", "type": 2}), PRIVATE, RULES, {})
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_interaction(interaction(2, {"name": "x"}, id="x"), PRIVATE, RULES, {})


def test_answers_to_interactions_are_requests():
    one = interaction(2, {"name": "x"})
    request = request_that_answers(one, InteractionAnswer.LATER_AS_MESSAGE)
    assert (request.url_path, request.json) == (f"/interactions/{NUMBER}/t/callback", {"type": 5})
    (shown,) = requests_that_show("1", OutboundMessage(text="x"), idempotency_key="k", reply_to="5")
    in_place = request_in_place("9", "t", shown)
    assert in_place.url_path == "/webhooks/9/t/messages/@original"
    assert in_place.json == {"content": "x", "allowed_mentions": {"parse": []}}
    began = datetime.fromtimestamp(milliseconds_of(NUMBER) / 1000, UTC)
    assert is_alive(NUMBER, began + timedelta(minutes=13))
    assert not is_alive(NUMBER, began + timedelta(minutes=15))


# Sending


def shown(**facts: Any) -> list[DiscordRequest]:
    return requests_that_show("200", OutboundMessage(**facts), idempotency_key="k")


def test_a_text_is_shown_as_it_is_said_and_wakes_nobody():
    (request,) = shown(text="**a** _b_ @everyone\n# c\n  1. d")
    assert request.json is not None
    assert request.json["content"] == "\\*\\*a\\*\\* \\_b\\_ @\u200beveryone\n\\# c\n  1\\. d"
    assert request.json["allowed_mentions"] == {"parse": []}
    assert (request.json["nonce"], request.json["enforce_nonce"]) == (nonce_of("k"), True)
    (markup,) = shown(text="a", markup="**a**")
    assert markup.json is not None
    assert markup.json["content"] == "**a**"


def test_a_text_that_only_its_escapes_make_too_long_is_sent_without_them():
    (request,) = shown(text="*" * 1500)
    assert request.json is not None
    assert request.json["content"] == "*" * 1500
    with pytest.raises(DeliveryRefusedError, match="2000 UTF-16 units, this one has 2002"):
        shown(text="\U0001f600" * 1001)


def test_notices_make_no_sound_and_extra_is_added():
    (request,) = requests_that_show(
        "200",
        OutboundMessage(text="x", is_notice=True, extra={"discord": {"tts": True}, "slack": {"a": 1}}),
        idempotency_key="k",
        reply_to="5",
    )
    assert request.json is not None
    assert (request.json["flags"], request.json["tts"]) == (1 << 12, True)
    assert request.json["message_reference"] == {"message_id": "5", "fail_if_not_exists": False}
    assert "a" not in request.json


def test_files_are_uploaded_shown_or_named():
    data = "data:text/plain;base64," + base64.b64encode(b"abc").decode()
    files = [Attachment(kind=AttachmentKind.DOCUMENT, url=data) for _ in range(12)]
    picture = Attachment(kind=AttachmentKind.PHOTO, url="https://e.org/p")
    video = Attachment(kind=AttachmentKind.VIDEO, url="https://e.org/v")
    requests = shown(text="look", attachments=(*files, picture, video))
    first, second = requests
    assert first.json is not None
    assert (len(first.files), len(second.files)) == (10, 2)
    assert (first.files[0].name, first.files[0].content) == ("document.txt", b"abc")
    assert first.json["embeds"] == [{"image": {"url": "https://e.org/p"}}]
    assert second.json is not None
    assert second.json["content"] == "https://e.org/v"
    assert len({one.json["nonce"] for one in requests if one.json}) == 2
    only_files = shown(attachments=tuple(files * 2))
    assert [len(one.files) for one in only_files] == [10, 10, 4]


@pytest.mark.parametrize("url", ["ftp://e.org/x", "data:;base64,!!!"])
def test_files_that_cannot_be_sent_are_refused(url: str):
    with pytest.raises(DeliveryRefusedError):
        shown(attachments=(Attachment(kind=AttachmentKind.DOCUMENT, url=url),))


def test_buttons_stand_in_rows_of_five():
    rows = rows_of_buttons([Button(f"b{number}") for number in range(7)])
    assert [len(row["components"]) for row in rows] == [5, 2]
    long, page = rows_of_buttons([Button("x" * 99), Button("Page", url="https://e.org")])[0]["components"]
    assert (len(long["label"]), page["style"], page["url"]) == (80, 5, "https://e.org")
    with pytest.raises(DeliveryRefusedError, match="25 buttons, this one has 26"):
        rows_of_buttons([Button(str(number)) for number in range(26)])


def test_an_edit_holds_one_message():
    request = request_that_edits("200", "5", OutboundMessage(text="x", buttons=(Button("y"),)))
    assert (request.method, request.url_path) == ("PATCH", "/channels/200/messages/5")
    file = Attachment(kind=AttachmentKind.DOCUMENT, url="data:,x")
    with pytest.raises(DeliveryRefusedError, match="does not take the place"):
        request_that_edits("200", "5", OutboundMessage(text="x", attachments=(file,)))


@pytest.mark.parametrize("key", ["", "k" * 5000, "ключ", "\ud800", "a\x1fb"])
def test_every_key_has_a_short_nonce(key: str):
    assert len(nonce_of(key)) == LONGEST_NONCE
    assert nonce_of(key) == nonce_of(key) != nonce_of(key, 1)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (DiscordApiError(429, 0, "x", retry_after=3), RateLimitedError, "for 3 s"),
        (DiscordApiError(401, 0, "401: Unauthorized"), AdapterUnavailableError, "does not know this token"),
        (DiscordApiError(403, 50013, "Missing Permissions"), DeliveryRefusedError, "Send Messages"),
        (DiscordApiError(403, 50001, "Missing Access"), DeliveryRefusedError, "View Channel"),
        (DiscordApiError(404, 10003, "Unknown Channel"), DeliveryRefusedError, "does not exist"),
        (DiscordApiError(400, 50035, "Invalid Form Body"), DeliveryRefusedError, "Invalid Form Body"),
        (DiscordApiError(502, 0, "Bad Gateway"), ConnectionError, "Bad Gateway"),
        (DiscordNotSentError("no route"), AdapterUnavailableError, "cannot be reached"),
        (ValueError("x"), ValueError, "x"),
    ],
)
def test_failures_say_whether_a_message_was_sent(error: Exception, kind: type[Exception], words: str):
    failure = failure_of(error)
    assert type(failure) is kind
    assert words in str(failure)


# Whatever comes

ALPHABET = string.printable + "äß漢😀\u200b\x00\ud83d"
FIELDS = ["id", "author", "content", "edited_timestamp", "type", "flags", "member", "mentions", "data"]
FIELDS += ["attachments", "poll", "message_reference", "referenced_message", "message_snapshots", "user"]
FIELDS += ["components", "custom_id", "options", "name", "value", "token", "channel", "webhook_id"]


def anything(draw: random.Random, depth: int = 0) -> Any:
    """Return a value as JSON may hold it."""
    simple = [None, True, -1, 0, 3.5, 10**30, "", "7", NUMBER, "".join(draw.choices(ALPHABET, k=9))]
    if depth > 3 or draw.random() < 0.5:
        return draw.choice(simple)
    if draw.random() < 0.4:
        return [anything(draw, depth + 1) for _ in range(draw.randrange(4))]
    names = [draw.choice(FIELDS) for _ in range(draw.randrange(6))]
    return {name: anything(draw, depth + 1) for name in names}


def spoiled(value: Any, draw: random.Random) -> Any:
    """Return a good object with something else in it."""
    if isinstance(value, dict):
        return {
            name: anything(draw) if draw.random() < 0.06 else spoiled(one, draw)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [spoiled(one, draw) for one in value]
    return value


GOOD_MESSAGE = {
    "id": NUMBER,
    "author": ANN,
    "content": "<@7> hi",
    "edited_timestamp": "2026-11-20T10:00:00.000001+00:00",
    "mentions": [{"id": "7"}],
    "attachments": [{"url": "u", "filename": "f", "content_type": "image/png", "size": 1}],
    "message_reference": {"message_id": "5"},
    "referenced_message": {"id": "5", "author": {"id": "7"}, "content": "x"},
}
GOOD_INTERACTION = {
    "id": NUMBER,
    "type": 2,
    "token": "t",
    "data": {"name": "new", "custom_id": "gs:x", "options": [{"name": "a", "value": "b"}]},
    "member": {"nick": None, "user": ANN},
    "channel": {"id": "200", "type": 11, "parent_id": "1"},
}


def test_whatever_comes_is_read_or_refused_in_one_way():
    draw = random.Random(20261120)
    read_well = 0
    for number in range(10_000):
        good = GOOD_MESSAGE if number % 2 else GOOD_INTERACTION
        raw = anything(draw) if draw.random() < 0.2 else spoiled(good, draw)
        if not isinstance(raw, dict):
            continue
        try:
            found = _read(raw, draw, as_message=bool(number % 2))
        except InvalidInputError:
            continue
        if found is not None:
            read_well += 1
            assert found.message_id in encode_message(found)
    assert read_well > 1000


def _read(raw: dict[str, Any], draw: random.Random, *, as_message: bool) -> InboundMessage | None:
    if as_message:
        place = draw.choice([PRIVATE, CHANNEL, THREAD])
        return read_message(read_as(DiscordMessage, raw), place, ALL, edited=draw.random() < 0.5)
    press = read_as(DiscordInteraction, {**raw, "type": draw.choice([2, 3])})
    return read_interaction(press, place_of(press), RULES, {})
