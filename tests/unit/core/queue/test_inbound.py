"""What a platform hands over: who said it, whether it was told before, what it asks, and what a turn says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions import InvalidInputError, SessionSource
from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.core.queue.inbound import (
    SEPARATOR,
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
    make_user_row,
    message_id_in,
    turn_content,
    turn_text,
)
from gateway_sessions.core.transcript.messages import NO_EXTRA, Role
from gateway_sessions.errors import InvalidSourceError

AT = datetime(2026, 6, 10, 12, tzinfo=UTC)
PRIVATE = SessionSource(platform="telegram", chat_id="5", user_id="5", user_name="Anne")
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:///a.jpg", media_type="image/jpeg")


def said(text: str = "", *attachments: Attachment, **others: Any) -> InboundMessage:
    return InboundMessage(source=PRIVATE, text=text, attachments=attachments, **others)


class TestWhoSaidIt:
    @pytest.mark.parametrize(
        ("source", "sender"),
        [
            (SessionSource(platform="x", chat_id="c", chat_type="group", user_id="u"), "u"),
            (SessionSource(platform="x", chat_id="c", chat_type="group", user_id="u", user_id_alt="a"), "a"),
            (SessionSource(platform="x", chat_id="c", chat_type="dm"), "c"),
            (SessionSource(platform="x", chat_type="dm"), ""),
        ],
    )
    def test_the_person_else_the_private_chat(self, source, sender):
        assert InboundMessage(source=source, text="x").sender == sender

    @pytest.mark.parametrize("kind", ["group", "channel", "thread", "forum"])
    def test_two_nameless_people_in_a_room_are_not_taken_for_one(self, kind):
        source = SessionSource(platform="x", chat_id="c", chat_type=kind)
        assert InboundMessage(source=source, text="x").sender == ""


class TestWhatCannotBeTaken:
    @pytest.mark.parametrize("kind", [MessageKind.EDIT, MessageKind.DELETE])
    def test_a_change_must_say_of_what(self, kind):
        with pytest.raises(InvalidInputError, match=f"{kind.value}.*message_id"):
            said("x", kind=kind)

    @pytest.mark.parametrize("name", ["message_id", "account"])
    @pytest.mark.parametrize("value", [f"a{SEPARATOR}b", "a\nb", "\ud800", 7, "x" * 513])
    def test_ids_that_could_be_mistaken_for_others_are_refused(self, name, value):
        with pytest.raises(InvalidSourceError, match=name):
            said("x", **{name: value})

    @pytest.mark.parametrize(
        ("name", "value", "problem"),
        [
            ("text", None, "text of a message must be str, not None"),
            ("text", b"x", "text of a message must be str, not bytes"),
            ("attachments", "x.jpg", "attachments of a message must be tuple, not str"),
            ("attachments", None, "attachments of a message must be tuple, not None"),
            ("attachments", ["x"], "each of attachments must be Attachment, not str"),
            ("attachments", (PHOTO, {"kind": "photo"}), "each of attachments must be Attachment, not dict"),
            ("source", "telegram", "source of a message must be SessionSource, not str"),
            ("kind", "new", "kind of a message must be MessageKind, not str"),
            ("revision", True, "revision of a message must be int, not bool"),
            ("sent_at", 17, "sent_at of a message must be datetime or None, not int"),
            ("reply_to", "m1", "reply_to of a message must be ReplyTo or None, not str"),
            ("internal", 1, "internal of a message must be bool, not int"),
            ("metadata", [], "metadata of a message must be Mapping, not list"),
        ],
    )
    def test_values_of_another_type_are_refused_by_name(self, name, value, problem):
        with pytest.raises(InvalidInputError, match=f"^{problem}$"):
            InboundMessage(**{"source": PRIVATE, "attachments": (PHOTO,), name: value})

    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (lambda: Attachment(kind="photo"), "kind of an attachment must be AttachmentKind, not str"),
            (
                lambda: Attachment(kind=AttachmentKind.PHOTO, url=None),
                "url of an attachment must be str, not None",
            ),
            (lambda: ReplyTo(message_id=7), "message_id of reply_to must be str, not int"),
        ],
    )
    def test_so_is_what_belongs_to_it(self, make, problem):
        with pytest.raises(InvalidInputError, match=f"^{problem}$"):
            make()

    def test_attachments_in_a_list_are_taken_as_well(self):
        assert InboundMessage(source=PRIVATE, attachments=[PHOTO]).attachments == (PHOTO,)

    def test_a_time_without_a_zone_is_refused(self):
        with pytest.raises(InvalidInputError, match="time zone"):
            said("x", sent_at=AT.replace(tzinfo=None))
        assert said("x", sent_at=AT).sent_at == AT


IDS = st.one_of(
    st.sampled_from(["1", "2", "12", "new", "edit 1", ":", "a:b"]), st.text("12:/ |\\", max_size=3)
)
OPTIONAL_IDS = st.one_of(st.none(), IDS)


def parts_of(message: InboundMessage) -> tuple[object, ...]:
    """What must tell two events apart: where, through whom, which message, and what happened to it."""
    source = message.source
    person = (source.participant_id or None, source.thread_id or None)  # an empty id is none
    place = (source.chat_id,) if source.chat_id else person
    revision = message.revision if message.kind is MessageKind.EDIT else None
    return source.platform, message.account, *place, message.message_id, message.kind, revision


class TestToldBefore:
    messages = st.builds(
        lambda platform, chat, user, thread, number, account, kind, revision: InboundMessage(
            source=SessionSource(platform=platform, chat_id=chat, user_id=user, thread_id=thread),
            message_id=number,
            account=account,
            kind=kind,
            revision=revision,
        ),
        st.sampled_from(["irc", "sms"]),
        IDS,
        OPTIONAL_IDS,
        OPTIONAL_IDS,
        IDS.filter(bool),
        IDS,
        st.sampled_from(MessageKind),
        st.integers(0, 2),
    )

    @given(messages, messages)
    def test_two_events_have_one_key_exactly_if_they_are_the_same(self, one, other):
        alike = one.idempotency_key == other.idempotency_key
        assert alike == (parts_of(one) == parts_of(other))

    @pytest.mark.parametrize("number", [None, ""])
    def test_without_an_id_nothing_can_be_told_again(self, number):
        assert said("x", message_id=number).idempotency_key is None

    def test_a_new_message_its_edits_and_its_deletion_are_different_events(self):
        kinds: list[dict[str, Any]] = [
            {},
            {"kind": MessageKind.DELETE},
            {"kind": MessageKind.EDIT, "revision": 1},
            {"kind": MessageKind.EDIT, "revision": 2},
        ]
        assert len({said("x", message_id="7", **kind).idempotency_key for kind in kinds}) == 4

    def test_what_was_said_does_not_matter(self):
        first = said("x", message_id="7", sent_at=AT)
        again = said("y", PHOTO, message_id="7", metadata={"attempt": 2})
        assert first.idempotency_key == again.idempotency_key

    def test_where_there_are_no_chats_two_people_may_both_send_their_first_message(self):
        first, second = (
            InboundMessage(source=SessionSource(platform="sms", user_id=number), text="hi", message_id="1")
            for number in ("+49", "+33")
        )
        assert first.idempotency_key != second.idempotency_key


class TestCommands:
    @pytest.mark.parametrize(
        ("text", "command", "arguments"),
        [
            ("/stop", "stop", ""),
            ("/stop@our_bot", "stop", ""),
            ("/stop@our_bot now", "stop", "now"),
            ("/STOP Now", "stop", "Now"),
            ("/undo-reset", "undo-reset", ""),
            ("/title  My  trip ", "title", "My  trip"),
            ("/title\nMy trip", "title", "My trip"),
            ("/queue\tfirst\n\nthen second", "queue", "first\n\nthen second"),
            ("/compress \u2014force \u2013n 3", "compress", "--force -n 3"),
            ("/queue of dashes \u2014 and 2\u20134 \u2013", "queue", "of dashes \u2014 and 2\u20134 \u2013"),
            ("/5", "5", ""),
        ],
    )
    def test_a_command_has_a_name_and_arguments(self, text, command, arguments):
        message = said(text)
        assert (message.command, message.arguments) == (command, arguments)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "/",
            "//",
            "/ x",
            "/\nstop",
            "/\u00a0stop",
            "/@our_bot",
            "/path/to/file",
            "/path/to/file is broken",
            "/anne@host:/etc",
            " /stop",
            "stop",
            "see /stop",
            "hello there",
        ],
    )
    def test_a_path_or_a_lone_slash_or_prose_is_no_command(self, text):
        message = said(text)
        assert (message.command, message.arguments) == (None, "")

    @pytest.mark.parametrize("kind", [MessageKind.EDIT, MessageKind.DELETE])
    def test_an_edit_does_not_give_a_command_again(self, kind):
        message = said("/stop now", kind=kind, message_id="7", revision=1)
        assert (message.command, message.arguments) == (None, "")

    @given(st.text())
    def test_no_text_whatever_breaks_the_reading(self, text):
        message = said("/" + text)
        assert message.arguments == "" or message.command


class TestWhatATurnSays:
    def test_the_texts_stand_below_each_other_in_their_order(self):
        assert turn_text([said(" one "), said("two"), said("  "), said("three")]) == "one\ntwo\nthree"

    def test_words_said_twice_are_said_twice(self):
        assert turn_text([said("no"), said("no")]) == "no\nno"

    def test_an_albums_caption_is_said_once(self):
        album = [said("Our trip", PHOTO), said("Our trip ", PHOTO), said("", PHOTO), said("The sea", PHOTO)]
        assert turn_text(album) == "Our trip\nThe sea"

    def test_a_caption_is_not_lost_because_a_longer_one_holds_it(self):
        album = [said("Our trip to the sea", PHOTO), said("the sea", PHOTO), said("Our trip", PHOTO)]
        assert turn_text(album) == "Our trip to the sea\nthe sea\nOur trip"

    def test_text_alone_is_text(self):
        assert turn_content([said("one"), said("two")]) == "one\ntwo"
        assert turn_content([said("")]) == ""

    def test_what_came_with_it_stands_behind_the_text_in_its_order(self):
        voice = Attachment(kind=AttachmentKind.VOICE, url="file:///b.ogg", size=9)
        assert turn_content([said("look", PHOTO), said("", voice)]) == [
            {"type": "text", "text": "look"},
            {"type": "attachment", "kind": "photo", "url": "file:///a.jpg", "media_type": "image/jpeg"},
            {"type": "attachment", "kind": "voice", "url": "file:///b.ogg", "size": 9},
        ]
        assert turn_content([said("", voice)]) == [
            {"type": "attachment", "kind": "voice", "url": "file:///b.ogg", "size": 9}
        ]

    @pytest.mark.parametrize(
        ("message", "empty"),
        [
            (said(), True),
            (said(" \n"), True),
            (said(" \u200b \u200b"), True),
            (said("\ufeff" * 9), True),
            (said("x"), False),
            (said("\u200b x"), False),
            (said("\u2764\ufe0f"), False),
            (said("\u200b", PHOTO), False),
            (said("", PHOTO), False),
        ],
    )
    def test_a_message_is_empty_if_it_says_and_brings_nothing(self, message, empty):
        assert message.is_empty is empty

    def test_it_has_media_if_something_came_with_it(self):
        assert said("", PHOTO).has_media
        assert not said("x").has_media


class TestTheRowOfATurn:
    def test_one_message_is_one_row_with_its_name_id_and_time(self):
        row = make_user_row([said("hello", message_id="7", sent_at=AT)])
        assert (row.role, row.content, row.sent_at) == (Role.USER, "hello", AT)
        assert row.platform_message_id == "7"
        assert row.extra == {"name": "Anne"}

    def test_a_merged_turn_keeps_the_id_of_every_message(self):
        numbers = ["7", None, "8", "9"]
        row = make_user_row([said(f"part {number}", message_id=number) for number in numbers])
        assert row.platform_message_id == "7"
        assert row.extra["platform_message_ids"] == ["7", "8", "9"]
        assert row.content == "part 7\npart None\npart 8\npart 9"

    def test_of_an_album_the_only_id_is_that_of_the_row(self):
        row = make_user_row([said("", PHOTO), said("", PHOTO, message_id="8")])
        assert row.platform_message_id == "8"
        assert "platform_message_ids" not in row.extra

    def test_a_nameless_message_needs_nothing_more(self):
        row = make_user_row([InboundMessage(source=SessionSource(platform="x", chat_id="c"), text="x")])
        assert row.platform_message_id is None
        assert row.extra is NO_EXTRA

    def test_a_message_that_was_given_to_a_running_turn_says_so(self):
        assert make_user_row([said("x")], steered=True).extra == {"name": "Anne", "steered": True}


class TestAccounts:
    """An adapter names itself in the message, in its source, or in both: all of that says the same."""

    PLAIN = SessionSource(platform="telegram", chat_id="1")
    NAMED = SessionSource(platform="telegram", chat_id="1", account="support")

    @pytest.mark.parametrize(("source", "account"), [(PLAIN, "support"), (NAMED, ""), (NAMED, "support")])
    def test_message_and_source_name_the_same(self, source, account):
        message = InboundMessage(source=source, account=account, message_id="1")
        assert (message.account, message.source) == ("support", self.NAMED)
        assert ReplyTarget.answering(message).account == "support"

    def test_two_different_ones_are_refused(self):
        with pytest.raises(InvalidInputError, match=r"'sales'.*'support'"):
            InboundMessage(source=self.NAMED, account="sales")

    def test_a_place_at_an_account_is_answered_there(self):
        assert ReplyTarget.at(self.NAMED).account == "support"

    def test_what_an_earlier_version_stored_of_a_named_account_is_read_as_its_own(self):
        stored = b'{"source":{"platform":"telegram","chat_id":"1"},"account":"support"}'
        assert msgspec.json.decode(stored, type=InboundMessage).source == self.NAMED


def test_a_message_is_the_same_after_it_was_stored():
    message = said(
        "look",
        PHOTO,
        message_id="7",
        account="second",
        kind=MessageKind.EDIT,
        revision=2,
        sent_at=AT,
        metadata={"a": [1]},
    )
    for one in (message, said("x")):
        stored = msgspec.json.encode(one, enc_hook=dict)
        assert msgspec.json.decode(stored, type=InboundMessage) == one


class TestWhatAModelIsTold:
    """A message that answers another one, or is said in a room, needs more than its own words."""

    ANSWERED = ReplyTo(message_id="3", text="Shall I book it?\nIt is cheap.", own=True)

    def test_nothing_more_than_a_message_that_stands_for_itself(self):
        assert make_user_row([said("yes")]).api_content is None

    def test_what_a_message_answers_to(self):
        row = make_user_row([said("yes", reply_to=self.ANSWERED)])
        assert row.content == "yes"
        assert row.api_content == "[In reply to what you said:]\n> Shall I book it?\n> It is cheap.\n\nyes"

    def test_who_said_it_on_a_lane_that_people_share(self):
        assert make_user_row([said("yes")], shared=True).api_content == "[Anne] yes"

    def test_both_beside_a_picture(self):
        row = make_user_row([said("look", PHOTO, reply_to=self.ANSWERED)], shared=True)
        assert isinstance(row.api_content, list)
        text, picture = row.api_content
        assert text["text"].endswith("\n\n[Anne] look")
        assert picture == row.content[1]  # type: ignore[index]

    def test_no_more_of_an_earlier_message_than_it_takes_to_know_it(self):
        row = make_user_row(
            [said("yes", reply_to=ReplyTo(message_id="3", text="x" * 9_000, author_name="Bob"))]
        )
        assert isinstance(row.api_content, str)
        assert len(row.api_content) < 600
        assert "what Bob said" in row.api_content


def test_the_key_of_a_message_tells_its_id():
    message = InboundMessage(source=PRIVATE, text="hello", message_id="7")
    assert message_id_in(message.idempotency_key) == "7"
    assert message_id_in(None) is None
