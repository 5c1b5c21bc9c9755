"""What is said, and to whom: stored and read again as it was."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget, TextFormat
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage, MessageKind
from gateway_sessions.core.storable_text import record_as_json
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import InvalidInputError

SOURCE = SessionSource(
    platform="matrix", chat_id="!room", user_id="@ann", thread_id="t1", user_name="Ann", chat_type="group"
)
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:///a.png", name="a.png")


def test_a_reply_goes_where_the_message_came_from():
    message = InboundMessage(
        source=SOURCE, message_id="m7", account="work", metadata={"context": ["a", 1]}, text="hello"
    )
    assert ReplyTarget.answering(message) == ReplyTarget(
        platform="matrix",
        account="work",
        chat_id="!room",
        user_id="@ann",
        thread_id="t1",
        reply_to="m7",
        metadata={"context": ["a", 1]},
    )


def test_what_nobody_asked_for_goes_to_the_same_place_and_answers_nothing():
    assert ReplyTarget.at(SOURCE, account="work") == ReplyTarget(
        platform="matrix", account="work", chat_id="!room", user_id="@ann", thread_id="t1"
    )


def test_a_person_without_a_chat_can_be_answered():
    source = SessionSource(platform="signal", user_id_alt="uuid")
    assert ReplyTarget.at(source) == ReplyTarget(platform="signal", user_id="uuid")


@pytest.mark.parametrize("kind", [MessageKind.EDIT, MessageKind.DELETE])
def test_a_change_is_answered_at_the_message_it_changes(kind: MessageKind):
    message = InboundMessage(source=SOURCE, message_id="m7", kind=kind)
    assert ReplyTarget.answering(message).reply_to == "m7"


@pytest.mark.parametrize(
    "value",
    [
        ReplyTarget(platform="x"),
        ReplyTarget.at(SOURCE),
        ReplyTarget(platform="x", chat_id="c", metadata={"a": {"b": None}}),
        OutboundMessage(),
        OutboundMessage(text="ü\n", attachments=(PHOTO,), is_notice=True, format=TextFormat.MARKDOWN),
    ],
)
def test_what_is_stored_comes_back(value: ReplyTarget | OutboundMessage):
    assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


def test_what_says_nothing_special_is_stored_briefly():
    assert msgspec.json.encode(OutboundMessage(text="hi")) == b'{"text":"hi"}'
    assert msgspec.json.encode(ReplyTarget(platform="x", chat_id="c")) == b'{"platform":"x","chat_id":"c"}'


@pytest.mark.parametrize(
    ("message", "is_empty"),
    [
        (OutboundMessage(), True),
        (OutboundMessage(text=" \n"), True),
        (OutboundMessage(text="a"), False),
        (OutboundMessage(attachments=(PHOTO,)), False),
    ],
)
def test_a_message_without_words_and_things_is_empty(message: OutboundMessage, is_empty: bool):
    assert message.is_empty is is_empty


def test_another_text_changes_nothing_else():
    message = OutboundMessage(text="a", attachments=(PHOTO,), is_notice=True, format=TextFormat.MARKDOWN)
    assert message.with_text("b") == OutboundMessage(
        text="b", attachments=(PHOTO,), is_notice=True, format=TextFormat.MARKDOWN
    )


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("fine", "fine"), ("grüß 😀", "grüß 😀"), ("nul \x00 ä", "nul \ufffd ä"),
        ("half \ud83d", "half \ufffd"), ("\ud83d\ude00", "\ufffd\ufffd"),
    ],
)  # fmt: skip
def test_what_is_sent_is_what_is_stored(text: str, sent: str):
    message = OutboundMessage(text=text)
    assert message.text == sent
    assert OutboundMessage(text="a").with_text(text) == message
    assert msgspec.json.decode(record_as_json("reply", message, {}), type=OutboundMessage) == message
    assert Attachment(kind=AttachmentKind.PHOTO, url=text, name=text) == Attachment(
        kind=AttachmentKind.PHOTO, url=sent, name=sent
    )


@pytest.mark.parametrize(
    ("text", "characters", "utf16", "in_bytes"),
    [("", 0, 0, 0), ("ab", 2, 2, 2), ("ä", 1, 1, 2), ("漢", 1, 1, 3), ("😀", 1, 2, 4), ("\ud83d", 1, 1, 3)],
)
def test_each_unit_counts_its_own_way(text: str, characters: int, utf16: int, in_bytes: int):
    assert [unit.length(text) for unit in LengthUnit] == [characters, utf16, in_bytes]


def test_a_text_fits_up_to_the_limit():
    limited = AdapterCapabilities(max_length=64, length_unit=LengthUnit.UTF16)
    assert limited.fits("😀" * 32)
    assert not limited.fits("😀" * 32 + "a")
    assert AdapterCapabilities().fits("a" * 1_000_000)


def test_a_limit_that_leaves_no_room_for_words_is_refused():
    with pytest.raises(InvalidInputError, match="max_length = 63"):
        AdapterCapabilities(max_length=63)


def test_nothing_is_expected_of_a_platform_that_promises_nothing():
    promised = AdapterCapabilities()
    assert (promised.edit, promised.typing, promised.idempotent_for) == (False, False, None)
    assert promised.min_edit_interval == timedelta(seconds=1)
