"""Telegram's updates as messages: where and who, for whom, and what; and whatever else may come."""

from __future__ import annotations

import copy
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_sessions.adapters.group_talk import GroupRules, GroupTalk, as_group_rules
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
)
from gateway_sessions.integrations.telegram.updates import (
    BotIdentity,
    ReadingRules,
    UnreadableUpdateError,
    read_update,
)
from gateway_sessions.testing.fakes.telegram.entities import found_entities

BOT = BotIdentity(7, "Helper_Bot")
ANN = {"id": 1, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann"}
PRIVATE = {"id": 1, "type": "private", "first_name": "Ann"}
GROUP = {"id": -100, "type": "supergroup", "title": "Team"}
FILE = {"file_id": "F1", "file_unique_id": "u", "file_size": 12, "mime_type": "a/b", "file_name": "n.x"}


def message(text: str | None = None, **more: Any) -> dict[str, Any]:
    said = {} if text is None else {"text": text, "entities": found_entities(text)}
    return {"message_id": 5, "from": ANN, "chat": PRIVATE, "date": 1_700_000_000, **said, **more}


def read(
    content: dict[str, Any], *, kind: str = "message", groups: Any = "mention", **rules: Any
) -> InboundMessage | None:
    return read_update(
        {"update_id": 99, kind: content}, ReadingRules(BOT, groups=as_group_rules(groups), **rules)
    )


def heard(content: dict[str, Any], **more: Any) -> InboundMessage:
    found = read(content, **more)
    assert found is not None
    return found


# Where and who


def test_a_private_message_says_all_that_telegram_tells():
    found = heard(message("hello"), account="main")
    assert (found.text, found.message_id, found.kind, found.revision) == ("hello", "5", MessageKind.NEW, 0)
    assert found.sent_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    source = found.source
    assert (source.platform, source.chat_type, source.chat_id, source.user_id) == ("telegram", "dm", "1", "1")
    assert (source.user_name, source.account, source.thread_id, source.is_bot) == (
        "Ann Lee",
        "main",
        None,
        False,
    )


@pytest.mark.parametrize(
    ("kind", "chat_type"), [("group", "group"), ("supergroup", "group"), ("channel", "channel")]
)
def test_groups_and_channels_have_their_names(kind: str, chat_type: str):
    source = heard(message("/x", chat={**GROUP, "type": kind})).source
    assert (source.chat_type, source.chat_id, source.chat_name) == (chat_type, "-100", "Team")


def test_a_topic_is_a_thread_and_a_thread_of_answers_is_none():
    topic = message("/x", chat=GROUP, message_thread_id=3, is_topic_message=True)
    assert heard(topic).source.thread_id == "3"
    assert heard(message("/x", chat=GROUP, message_thread_id=3)).source.thread_id is None


def test_who_writes_in_the_name_of_a_chat_is_that_chat():
    source = heard(
        message("/x", chat=GROUP, sender_chat={"id": -5, "type": "channel", "title": "News"})
    ).source
    assert (source.user_id, source.user_name, source.is_bot) == ("-5", "News", False)


def test_an_edit_is_numbered_by_its_update():
    found = heard(message("hello!"), kind="edited_message")
    assert (found.kind, found.revision, found.message_id) == (MessageKind.EDIT, 99, "5")


# For whom


@pytest.mark.parametrize(
    ("content", "is_heard"),
    [
        (message("hello", chat=GROUP), False),
        (message("@helper_bot hello", chat=GROUP), True),
        (message("hello @someone_else", chat=GROUP), False),
        (message("/new", chat=GROUP), True),
        (message("/new@helper_bot", chat=GROUP), True),
        (message("/new@other_bot", chat=GROUP), False),
        (message("/new@other_bot"), False),
        (message("please /new", chat=GROUP), False),
        (
            message(
                "yes", chat=GROUP, reply_to_message=message("?", **{"from": {"id": 7, "first_name": "B"}})
            ),
            True,
        ),
        (message("yes", chat=GROUP, reply_to_message=message("?")), False),
        (
            message(
                "yes",
                chat=GROUP,
                message_thread_id=5,
                is_topic_message=True,
                reply_to_message=message("", **{"from": {"id": 7, "first_name": "B"}}),
            ),
            False,
        ),
        (
            message(
                "Helper?",
                chat=GROUP,
                entities=[
                    {"type": "text_mention", "offset": 0, "length": 6, "user": {"id": 7, "first_name": "H"}}
                ],
            ),
            True,
        ),
        (message("echo", **{"from": {"id": 7, "is_bot": True, "first_name": "Helper"}}), False),
    ],
    ids=range(13),
)
def test_in_groups_only_what_addresses_the_bot_is_heard(content: dict[str, Any], is_heard: bool):
    assert (read(content) is not None) is is_heard


def test_what_people_say_to_each_other_is_observed_if_that_is_wanted():
    observing = GroupRules("mention", observe=True)
    talk = read(message("hello", chat=GROUP), groups=observing)
    assert talk is not None
    assert (talk.observed, talk.text, talk.source.user_name) == (True, "hello", "Ann Lee")
    assert read(message("hello", chat=GROUP)) is None
    addressed = read(message("hello @helper_bot", chat=GROUP), groups=observing)
    assert addressed is not None
    assert (addressed.observed, addressed.text) == (False, "hello")
    assert read(message("/stop@other_bot", chat=GROUP), groups=observing) is None
    private = read(message("hello"), groups=observing)
    assert private is not None
    assert not private.observed


def test_a_group_may_be_heard_whole_or_as_a_function_says():
    assert read(message("hello", chat=GROUP), groups=GroupTalk.ALL) is not None
    rule = {"groups": lambda update: "!" in update["message"]["text"]}
    assert read(message("hello!", chat=GROUP), **rule) is not None
    assert read(message("hello", chat=GROUP), **rule) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("@helper_bot, what now?", "what now?"),
        ("what now? @Helper_Bot", "what now?"),
        ("ask @helper_bot about it", "ask @helper_bot about it"),
        ("\U0001f600 @helper_bot", "\U0001f600"),
    ],
)
def test_a_mention_at_an_end_is_no_part_of_the_text(text: str, left: str):
    assert heard(message(text, chat=GROUP)).text == left


# What


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"document": FILE}, AttachmentKind.DOCUMENT),
        ({"video": FILE}, AttachmentKind.VIDEO),
        ({"animation": FILE, "document": FILE}, AttachmentKind.VIDEO),
        ({"video_note": FILE}, AttachmentKind.VIDEO),
        ({"audio": FILE}, AttachmentKind.AUDIO),
        ({"voice": FILE}, AttachmentKind.VOICE),
        ({"sticker": FILE}, AttachmentKind.STICKER),
    ],
    ids=str,
)
def test_a_file_is_an_attachment_with_the_id_by_which_it_is_fetched(
    content: dict[str, Any], kind: AttachmentKind
):
    found = heard(message(None, caption="look", **content))
    assert found.text == "look"
    expected = Attachment(kind=kind, url="telegram:F1", media_type="a/b", name="n.x", size=12)
    assert found.attachments == (expected,)


def test_of_a_photo_the_largest_size_is_taken():
    sizes = [{"file_id": f"P{side}", "width": side, "height": side} for side in (90, 1280, 320)]
    assert [one.url for one in heard(message(None, photo=sizes)).attachments] == ["telegram:P1280"]


def test_photos_of_an_album_tell_their_album():
    found = heard(message(None, photo=[{"file_id": "P", "width": 1, "height": 1}], media_group_id="77"))
    assert found.group_id == "77"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"contact": {"phone_number": "+49 1", "first_name": "Bob"}}, "[contact: Bob +49 1]"),
        (
            {"poll": {"question": "When?", "options": [{"text": "now"}, {"text": "later"}]}},
            "[poll: When? (now, later)]",
        ),
        ({"dice": {"emoji": "\U0001f3b2", "value": 4}}, "\U0001f3b2 4"),
    ],
)
def test_what_has_no_file_is_told_in_words(content: dict[str, Any], text: str):
    assert heard(message(None, **content)).text == text


def test_a_place_is_an_attachment():
    (place,) = heard(message(None, location={"latitude": 1.5, "longitude": -2})).attachments
    assert (place.kind, place.url) == (AttachmentKind.LOCATION, "geo:1.5,-2.0")


def test_an_answer_names_what_it_answers():
    question = {**message("a long question"), "message_id": 3}
    expected = ReplyTo(message_id="3", text="a long question", author_id="1", author_name="Ann Lee")
    assert heard(message("yes", reply_to_message=question)).reply_to == expected
    quoting = heard(message("yes", reply_to_message=question, quote={"text": "long"}))
    assert quoting.reply_to is not None
    assert quoting.reply_to.text == "long"
    own = {**question, "from": {"id": 7, "is_bot": True, "first_name": "Helper"}}
    answer = heard(message("yes", reply_to_message=own)).reply_to
    assert answer is not None
    assert answer.own


@pytest.mark.parametrize(
    "update",
    [
        {"update_id": 1},
        {"update_id": 1, "callback_query": {"id": "1", "from": ANN, "data": "x"}},
        {"update_id": 1, "message": message(None, new_chat_members=[ANN])},
        {"update_id": 1, "message": message(None, pinned_message=message("x"))},
    ],
    ids=range(4),
)
def test_updates_without_a_message_for_the_bot_are_none(update: dict[str, Any]):
    assert read_update(update, ReadingRules(BOT)) is None


@pytest.mark.parametrize(
    "content",
    [
        7,
        {"message_id": "five"},
        message("x", chat={"id": 1, "type": "unknown"}),
        message("x", date=10**20),
        message("x", **{"from": {"id": "ann"}}),
        message("x", entities=[{"type": "mention", "offset": "0", "length": 1}]),
    ],
    ids=range(6),
)
def test_what_has_another_form_is_unreadable(content: Any):
    with pytest.raises(UnreadableUpdateError, match="an update of Telegram cannot be read"):
        read_update({"update_id": 1, "message": content}, ReadingRules(BOT))


def test_no_change_of_an_update_raises_anything_else():
    seeds: list[dict[str, Any]] = [
        message(
            "@helper_bot \U0001f600 hello", chat=GROUP, reply_to_message=message("x"), media_group_id="1"
        ),
        message(
            None,
            caption="c",
            photo=[{**FILE, "width": 1, "height": 2}],
            location={"latitude": 1, "longitude": 2},
        ),
        message(
            None, poll={"question": "q", "options": [{"text": "a"}]}, sender_chat=GROUP, quote={"text": "q"}
        ),
    ]
    draw = random.Random(20261120)
    outcomes = {"message": 0, "none": 0, "unreadable": 0}
    for _ in range(10_000):
        content = copy.deepcopy(draw.choice(seeds))
        for _ in range(draw.randint(1, 3)):
            mutate(content, draw)
        update = {"update_id": 1, draw.choice(["message", "edited_message"]): content}
        try:
            found = read_update(update, ReadingRules(BOT, groups=GroupRules("all")))
        except UnreadableUpdateError:
            outcomes["unreadable"] += 1
        else:
            outcomes["none" if found is None else "message"] += 1
            assert found is None or json.loads(json.dumps(dict(found.metadata))) == dict(found.metadata)
    assert min(outcomes.values()) > 100, outcomes


ODD = [
    None,
    True,
    -1,
    10**18,
    10**30,
    1.5,
    float("nan"),
    "",
    "x",
    "\udc80",
    "\x00",
    [],
    [None],
    {},
    {"id": 1},
]


def mutate(value: Any, draw: random.Random) -> None:
    """Change, drop or add something, somewhere."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and draw.random() < 0.6:
            value = value[key]
            continue
        if draw.random() < 0.3:
            del value[key]
        else:
            value[key] = copy.deepcopy(draw.choice(ODD))
        return
