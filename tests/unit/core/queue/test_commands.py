"""What people mean behind a slash, and what they are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions import (
    GatewaySessionsError,
    InvalidInputError,
    Message,
    SessionBusyError,
    SessionNotFoundError,
    SessionSource,
    StorageError,
)
from gateway_sessions.core.notices import command_replies as answers
from gateway_sessions.core.notices import human_units
from gateway_sessions.core.notices.error_replies import error_reply
from gateway_sessions.core.notices.session_replies import session_list
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage, make_user_row
from gateway_sessions.core.queue.items import QueuedMessage
from gateway_sessions.core.queue.slash_commands import (
    QueueAction,
    QueueRequest,
    check_command_name,
    message_to_queue,
    parse_model_name,
    parse_queue_request,
    parse_turn_count,
    shown_in_quotes,
    strip_brackets,
    texts_and_attachments_in,
)
from gateway_sessions.core.sessions.record import SessionSummary
from gateway_sessions.errors import (
    AmbiguousSessionError,
    InvalidTitleError,
    NothingToUndoError,
    SessionCandidate,
    SessionEndedError,
    StoreStoppedError,
    TitleTakenError,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANN = SessionSource(platform="fake", chat_id="ann", user_id="ann", user_name="Ann")
ROOM = SessionSource(platform="fake", chat_id="g", chat_type="group", user_id="ann", user_name="Ann")
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")


def said(text: str, *attachments: Attachment, source: SessionSource = ANN) -> InboundMessage:
    return InboundMessage(source=source, text=text, attachments=attachments, message_id="m1")


class TestNames:
    @pytest.mark.parametrize("name", ["new", "undo-reset", "undo_reset", "2048", "größe", "x" * 32])
    def test_a_word_that_can_be_typed_is_one(self, name: str):
        assert check_command_name(name) == name

    @pytest.mark.parametrize("name", ["", "New", "a b", "/new", "a@b", "-x", "usr/bin", "x" * 33, "ÄRGER"])
    def test_anything_else_is_refused(self, name: str):
        with pytest.raises(InvalidInputError, match="cannot be called"):
            check_command_name(name)


class TestQueue:
    @pytest.mark.parametrize(
        ("arguments", "asked"),
        [
            ("", QueueRequest(QueueAction.LIST)),
            (" List ", QueueRequest(QueueAction.LIST)),
            ("clear", QueueRequest(QueueAction.CLEAR)),
            ("cancel 12", QueueRequest(QueueAction.CANCEL, 12)),
            ("cancel #12", QueueRequest(QueueAction.CANCEL, 12)),
            ("move 12 1", QueueRequest(QueueAction.MOVE, 12, 1)),
            ("move #12 to 3", QueueRequest(QueueAction.MOVE, 12, 3)),
            ("list of things to buy", QueueRequest(QueueAction.ADD)),
            ("cancel my order 12", QueueRequest(QueueAction.ADD)),
            ("cancel", QueueRequest(QueueAction.ADD)),
            ("move 12", QueueRequest(QueueAction.ADD)),
            ("clear the table", QueueRequest(QueueAction.ADD)),
            ("hello", QueueRequest(QueueAction.ADD)),
        ],
    )
    def test_only_its_very_words_are_not_queued(self, arguments: str, asked: QueueRequest):
        assert parse_queue_request(arguments) == asked

    def test_what_stands_behind_it_is_the_message(self):
        queued = message_to_queue(said("/queue  two\n  lines — and a dash"))
        assert queued is not None
        assert queued.text == "two\n  lines — and a dash"
        assert queued.message_id == "m1"

    def test_what_came_with_it_is_queued_even_without_a_word(self):
        queued = message_to_queue(said("/queue", PHOTO))
        assert queued is not None
        assert (queued.text, queued.attachments) == ("", (PHOTO,))

    @pytest.mark.parametrize("text", ["/queue", "/queue list", "/queue cancel 3"])
    def test_a_wish_about_the_queue_brings_no_message(self, text: str):
        assert message_to_queue(said(text)) is None


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "bare"),
        [
            ("<Rome>", "Rome"),
            ("[ Rome ]", "Rome"),
            ('"Rome"', "Rome"),
            ("'Rome'", "Rome"),
            (" Rome ", "Rome"),
            ("'", "'"),
            ("<Rome", "<Rome"),
            ("", ""),
        ],
    )
    def test_brackets_and_quotation_marks_are_not_part_of_it(self, text: str, bare: str):
        assert strip_brackets(text) == bare

    @pytest.mark.parametrize(("text", "turns"), [("", 1), ("3", 3), ("<2>", 2), ("100", 100)])
    def test_turns_are_counted(self, text: str, turns: int):
        assert parse_turn_count(text) == turns

    @pytest.mark.parametrize("text", ["0", "-1", "101", "all", "1.5", "²", "9" * 30])
    def test_no_other_number_of_turns_is_taken(self, text: str):
        assert parse_turn_count(text) is None

    @pytest.mark.parametrize(
        ("text", "name"),
        [("gpt-x", "gpt-x"), ('"a/b:c"', "a/b:c"), ("None", "default"), ("<Default>", "default")],
    )
    def test_a_model_is_one_word(self, text: str, name: str):
        assert parse_model_name(text) == name

    @pytest.mark.parametrize("text", ["two words", "''", "x" * 201, "a\u200bb", "a\nb"])
    def test_nothing_else_is_a_model(self, text: str):
        assert parse_model_name(text) is None


class TestWhatWasSaid:
    def test_it_is_one_message_again_with_all_that_came(self):
        rows = [
            make_user_row([said("look", PHOTO), said("at this")]),
            Message("assistant", "nice"),
            make_user_row([said("and this")], steered=True),
        ]
        assert texts_and_attachments_in(rows) == ("look\nat this\nand this", (PHOTO,))

    def test_parts_of_other_programs_and_observed_rows_are_left_out(self):
        parts = [{"type": "text", "text": "hi"}, {"type": "image_url", "url": "x"}, "odd"]
        rows = [Message("user", parts), Message("user", "overheard", observed=True)]
        assert texts_and_attachments_in(rows) == ("hi\nodd", ())


class TestSentences:
    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            (SessionBusyError("agent:main:secret", "s1"), "/stop ends it"),
            (SessionNotFoundError("Rome"), "“Rome”"),
            (TitleTakenError("Rome", "s1"), "called “Rome” already"),
            (InvalidTitleError(0, 100), "1 to 100 characters, and that one has 0"),
            (InvalidTitleError(101, 100), "101"),
            (NothingToUndoError("agent:main:secret", "why"), "nothing to undo"),
            (SessionEndedError("s1", "idle"), "nothing was changed"),
            (StorageError("/var/secret.db", "is locked"), "cannot reach my memory"),
            (StoreStoppedError("secret"), "cannot reach my memory"),
            (InvalidInputError("give a number"), "Give a number."),
            (InvalidInputError("really?"), "Really?"),
            (GatewaySessionsError("it is raining"), "That did not work: It is raining."),
            (GatewaySessionsError(), "That did not work: Nobody knows why."),
        ],
    )
    def test_an_error_becomes_one_that_a_person_can_read(self, error: GatewaySessionsError, sentence: str):
        told = error_reply(error)
        assert sentence in told
        assert "secret" not in told

    def test_candidates_are_listed(self):
        two = [SessionCandidate("s1", "Rome", "fake"), SessionCandidate("s2", None, "fake")]
        assert error_reply(AmbiguousSessionError("s", two)).splitlines() == [
            "“s” could be any of these; give the whole id:",
            "- s1 (Rome)",
            "- s2 (no title)",
        ]

    def test_a_quotation_is_one_short_line(self):
        assert shown_in_quotes("two\nlines\u202e") == "“two lines”"
        assert len(shown_in_quotes("x" * 500)) == 82


class TestTimes:
    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (-5, "0 s"),
            (0, "0 s"),
            (59.9, "59 s"),
            (60, "1 min"),
            (125, "2 min 5 s"),
            (3600, "1 h"),
            (3661, "1 h 1 min"),
            (90_000, "1 d 1 h"),
            (86_405, "1 d"),
        ],
    )
    def test_a_span_has_two_units_at_most(self, seconds: float, text: str):
        assert human_units.duration_in_words(timedelta(seconds=seconds)) == text

    def test_the_past_is_told_roughly(self):
        assert human_units.ago_in_words(NOW - timedelta(seconds=59), NOW) == "just now"
        assert human_units.ago_in_words(NOW - timedelta(hours=26), NOW) == "1 d ago"


class TestAnswers:
    def test_what_was_ended_is_told_with_its_number(self):
        assert answers.stopped_work_text(stopped=False, cancelled=0) == ""
        assert "I stopped" in answers.stopped_work_text(stopped=True, cancelled=0)
        assert "1 waiting message was" in answers.stopped_work_text(stopped=False, cancelled=1)
        assert answers.stop_answer(running=False, cancelled=0) == answers.NOTHING_TO_STOP
        assert answers.stop_answer(running=True, cancelled=0) == "Stopped."
        assert answers.stop_answer(running=True, cancelled=2) == (
            "Stopped. 2 waiting messages were dropped, and will not be answered."
        )

    def test_the_queue_shows_its_turns_with_their_numbers(self):
        def waits(seq: int, message: InboundMessage, **more: object) -> QueuedMessage:
            return QueuedMessage(seq=seq, session_key="k", message=message, admitted_at=NOW, **more)  # type: ignore[arg-type]

        items = [
            waits(1, said("runs"), running=True),
            waits(2, said("one", source=ROOM)),
            waits(3, said("joined"), merged_into=2),
            waits(4, said("", PHOTO)),
        ]
        assert answers.queue_list(items).splitlines()[1:] == ["#2 Ann: “one” and 1 more", "#4 1 attachment"]
        assert answers.queue_list(items[:1]) == answers.QUEUE_EMPTY
        many = [waits(seq, said(str(seq))) for seq in range(25)]
        assert answers.queue_list(many).splitlines()[-1] == "and 5 more messages"

    def test_conversations_are_numbered_by_title_else_by_how_they_begin(self):
        def summary(session_id: str, title: str | None = None, preview: str = "") -> SessionSummary:
            return SessionSummary(session_id, "fake", title, preview, NOW, NOW, session_id, message_count=1)

        found = [summary("s1", "Rome"), summary("s2", preview="hello"), summary("s3")]
        assert session_list(found, "s2", NOW).splitlines()[1:] == [
            "1. “Rome”, 1 message, just now",
            "2. “hello”, 1 message, just now (this one)",
            "3. s3, 1 message, just now",
        ]
        assert "no conversation" in session_list([], None, NOW)

    def test_the_situation_of_a_lane_is_told(self):
        idle = answers.status_answer(answers.Situation(session_id=None))
        assert idle.splitlines() == ["Now: idle", "Waiting: nothing", answers.NO_CONVERSATION]
        busy = answers.Situation(
            session_id="s1",
            title="Rome",
            messages=3,
            model="gpt",
            running_for=timedelta(seconds=125),
            doing="searching",
            waiting=2,
            next_reset=NOW,
        )
        assert answers.status_answer(busy).splitlines() == [
            "Now: working, for 2 min 5 s, “searching”",
            "Waiting: 2 messages",
            "Conversation: “Rome”, s1, 3 messages",
            "Model: gpt",
            "Next reset: 2026-01-01 12:00 UTC",
        ]
        stopping = answers.Situation(session_id="s1", running_for=timedelta(), stopping=True)
        assert "stopping, for 0 s" in answers.status_answer(stopping)
        assert "Next reset: none" in answers.status_answer(stopping)
        berlin = replace(stopping, next_reset=NOW.astimezone(ZoneInfo("Europe/Berlin")))
        assert answers.status_answer(berlin).endswith(" Europe/Berlin")

    def test_help_names_arguments_and_other_names(self):
        new = answers.CommandHelp(name="new", summary="Begin.", usage="[title]", aliases=("reset",))
        stop = answers.CommandHelp(name="stop", summary="Stop.")
        assert answers.help_list([new, stop]) == "/new [title]: Begin.\n/stop: Stop."
        assert answers.help_for_command(new) == "/new [title]: Begin. Also called /reset."
        assert answers.help_for_command(stop) == "/stop: Stop."
