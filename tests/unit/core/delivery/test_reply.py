"""Replies: what is sent of them, and what the transcript keeps."""

import pytest

from gateway_sessions.core.delivery.outbound_messages import NOTHING, OutboundMessage, Reply, TextFormat
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.core.transcript.model_history import conversation_of
from gateway_sessions.errors import InvalidInputError

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:///a.png")


def test_a_text_is_sent_and_becomes_a_row():
    reply = Reply("hello", format=TextFormat.MARKDOWN, finish_reason="stop", reasoning="they greeted me")
    assert reply.message == OutboundMessage(text="hello", format=TextFormat.MARKDOWN)
    assert reply.row == Message(
        "assistant", "hello", finish_reason="stop", reasoning="they greeted me", extra=reply.extra
    )


def test_what_comes_with_a_text_is_part_of_both():
    reply = Reply("look", attachments=[PHOTO])  # type: ignore[arg-type]  # a list is taken as well
    assert reply.message == OutboundMessage(text="look", attachments=(PHOTO,))
    attached = {"type": "attachment", "kind": "photo", "url": "file:///a.png"}
    assert reply.row.content == [{"type": "text", "text": "look"}, attached]
    assert Reply(attachments=(PHOTO,)).row.content == [attached]


def test_a_silent_reply_is_kept_and_not_sent():
    reply = Reply("for the record", silent=True)
    assert reply.message is None
    assert reply.row.content == "for the record"


def test_a_recorded_reply_is_sent_and_adds_no_row():
    reply = Reply("hello", recorded=True)
    assert reply.message == OutboundMessage(text="hello")
    assert reply.row is None


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_reply_is_not_sent_and_a_model_is_told_of_the_silence(text):
    reply = Reply(text)
    assert reply.is_empty
    assert reply.message is None
    said = conversation_of([Message("user", "hi"), reply.row, Message("user", "and?")])
    assert [one["content"] for one in said] == ["hi", NOTHING, "and?"]


def test_further_members_of_the_row_are_kept_known_or_not():
    row = Reply("hi", extra={"reasoning_details": [1], "api_content": "hi!", "mood": "good"}).row
    assert (row.reasoning_details, row.api_content, row.extra) == ([1], "hi!", {"mood": "good"})


@pytest.mark.parametrize("member", ["role", "content", "finish_reason", "reasoning"])
def test_a_reply_s_own_members_cannot_come_in_twice(member):
    with pytest.raises(InvalidInputError, match=member):
        Reply("hi", extra={member: "x"})


@pytest.mark.parametrize("text", [None, 3, b"hi"])
def test_only_text_is_a_text(text):
    with pytest.raises(InvalidInputError, match=type(text).__name__):
        Reply(text)


def test_what_is_attached_must_be_an_attachment():
    with pytest.raises(InvalidInputError, match="attachments of a reply must be Attachment, not str"):
        Reply("look", attachments=("file:///a.png",))  # type: ignore[arg-type]


def test_a_format_may_be_given_by_its_name_and_no_other():
    assert Reply("hi", format="markdown").format is TextFormat.MARKDOWN  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="format must be one of plain, markdown"):
        Reply("hi", format="bogus")  # type: ignore[arg-type]
