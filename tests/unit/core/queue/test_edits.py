"""Each message of a row can be changed alone: by its id, by the number of its edit, and for good."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.edits import (
    Effect,
    Rewording,
    has_message_id,
    is_older,
    messages_of,
    plan_transcript_edit,
    replace_text_by_hand,
)
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
    make_user_row,
    rewording_from,
)
from gateway_sessions.core.transcript.messages import Hidden, Message

ANN = SessionSource(platform="irc", chat_id="ann", user_id="ann", user_name="Ann")
PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/1.png")
PART = {"type": "attachment", **msgspec.to_builtins(PHOTO)}


def said(name: str, text: str, **members: Any) -> InboundMessage:
    return InboundMessage(source=ANN, text=text, message_id=name, **members)


def burst(*texts: str, **members: Any) -> Message:
    """The row of messages that are called m1, m2, ..."""
    return make_user_row([said(f"m{number}", text) for number, text in enumerate(texts, 1)], **members)


def edit(name: str, text: str, revision: int = 0) -> Rewording:
    return Rewording(message_id=name, content=text, revision=revision)


def deletion(name: str) -> Rewording:
    return Rewording(message_id=name, deletes=True)


def ids_of(row: Message) -> list[str | None]:
    return row.extra.get("platform_message_ids") or [row.platform_message_id]


@pytest.mark.parametrize(("size", "which"), [(size, at) for size in range(2, 9) for at in range(size)])
def test_an_edit_changes_one_message_of_a_burst(size: int, which: int):
    texts = [f"text {number}" for number in range(size)]
    effect, row = plan_transcript_edit(burst(*texts), edit(f"m{which + 1}", "other"))
    texts[which] = "other"
    assert (effect, row.content) == (Effect.CHANGED, "\n".join(texts))
    assert ids_of(row) == [f"m{number + 1}" for number in range(size)]
    assert row.extra["name"] == "Ann"


@pytest.mark.parametrize(("size", "which"), [(size, at) for size in range(2, 9) for at in range(size)])
def test_a_deletion_takes_one_message_out_and_keeps_nothing_but_its_id(size: int, which: int):
    texts = [f"text {number}" for number in range(size)]
    effect, row = plan_transcript_edit(burst(*texts), deletion(f"m{which + 1}"))
    gone = texts.pop(which)
    assert (effect, row.content) == (Effect.CHANGED, "\n".join(texts))
    assert f"m{which + 1}" not in ids_of(row)
    assert gone not in msgspec.json.encode(row.platform_messages).decode()
    assert plan_transcript_edit(row, deletion(f"m{which + 1}")) == (Effect.STANDS, row)
    assert plan_transcript_edit(row, edit(f"m{which + 1}", "back")) == (Effect.NONE, row)


def test_a_row_is_hidden_once_all_of_its_messages_are_deleted():
    row = burst("a", "b", "c")
    for name in ("m2", "m1"):
        effect, row = plan_transcript_edit(row, deletion(name))
        assert effect is Effect.CHANGED
    assert row.content == "c"
    assert plan_transcript_edit(row, deletion("m3")) == (Effect.HIDDEN, row)


def test_a_row_of_one_message_is_that_message():
    row = make_user_row([said("m1", "a")])
    assert row.platform_messages is None
    assert plan_transcript_edit(row, deletion("m1")) == (Effect.HIDDEN, row)
    assert plan_transcript_edit(row, edit("m1", "b")) == (Effect.CHANGED, row.altered(content="b"))
    assert plan_transcript_edit(row, edit("m2", "b")) == (Effect.NONE, row)
    hidden = row.altered(hidden_because=Hidden.RETRACTED)
    assert plan_transcript_edit(hidden, deletion("m1")) == (Effect.STANDS, hidden)
    assert plan_transcript_edit(hidden, edit("m1", "b")) == (Effect.NONE, hidden)


def test_a_row_without_a_platform_is_no_message_of_one():
    for row in (Message("user", "a"), Message("user", None), Message("assistant", "a")):
        assert messages_of(row) == []
        assert plan_transcript_edit(row, edit("", "b")) == (Effect.NONE, row)


@pytest.mark.parametrize("texts", [("a",), ("a", "b")])
def test_an_older_edit_changes_nothing_whenever_it_comes(texts: tuple[str, ...]):
    for first, second in product(range(4), repeat=2):
        row = plan_transcript_edit(burst(*texts), edit("m1", "first", first)).row
        effect, after = plan_transcript_edit(row, edit("m1", "second", second))
        if is_older(second, first):
            assert (effect, after) == (Effect.STANDS, row)
        else:
            assert after.content == "\n".join(["second", *texts[1:]])


def test_without_a_number_the_edit_that_comes_last_counts():
    assert [is_older(given, known) for given, known in product((0, 1, 2), repeat=2)] == [
        *(False, False, False),
        *(False, False, True),
        *(False, False, False),
    ]


def test_an_edit_that_changes_nothing_stands():
    for row in (burst("a"), burst("a", "b")):
        assert plan_transcript_edit(row, edit("m1", "a")) == (Effect.STANDS, row)


def test_what_came_with_a_message_stays_unless_the_edit_brings_something():
    row = make_user_row([said("m1", "look", attachments=(PHOTO,)), said("m2", "and?")])
    assert row.content == [{"type": "text", "text": "look\nand?"}, PART]
    changed = plan_transcript_edit(row, edit("m1", "see")).row
    assert changed.content == [{"type": "text", "text": "see\nand?"}, PART]
    other = PART | {"url": "https://example.org/2.png"}
    new = Rewording(message_id="m1", content=[{"type": "text", "text": "see"}, other])
    assert plan_transcript_edit(changed, new).row.content == [{"type": "text", "text": "see\nand?"}, other]
    assert plan_transcript_edit(changed, deletion("m1")).row.content == "and?"
    alone = make_user_row([said("m1", "look", attachments=(PHOTO,))])
    assert plan_transcript_edit(alone, edit("m1", "see")).row.content == [
        {"type": "text", "text": "see"},
        PART,
    ]


@pytest.mark.parametrize("text", ["hello", "[Bob] hello", "one\n[Bob] two", ""])
@pytest.mark.parametrize("quoted", [None, "what?"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("media", [(), (PHOTO,)])
def test_a_model_is_told_an_edited_row_as_if_it_had_always_said_so(
    text: str, quoted: str | None, shared: bool, media: tuple[Attachment, ...]
):
    if not text and not media:
        return
    answered = None if quoted is None else ReplyTo(message_id="q", text=quoted)
    first = said("m1", text, reply_to=answered, attachments=media)
    for others in ([], [said("m2", "two")], [said("m2", "two"), said("m3", "[Eve] three")]):
        row = make_user_row([first, *others], shared=shared)
        for new in ("other", "[Eve] other\n[Bob] more"):
            after = make_user_row([msgspec.structs.replace(first, text=new), *others], shared=shared)
            effect, changed = plan_transcript_edit(row, edit("m1", new))
            assert (effect, changed) == (Effect.CHANGED, after)
        if others:
            gone = plan_transcript_edit(row, deletion("m1")).row
            left = make_user_row(others, shared=shared)
            assert (gone.content, gone.api_content) == (left.content, left.api_content)


def test_what_a_program_told_a_model_in_words_of_its_own_is_not_told_of_an_edited_row():
    row = Message("user", "helo", platform_message_id="m1", api_content="say helo")
    assert plan_transcript_edit(row, edit("m1", "hello")).row.api_content is None


def test_rows_of_earlier_versions_are_told_apart_if_every_message_is_one_line():
    def earlier(row: Message) -> Message:
        return row.altered(platform_messages=[])

    assert plan_transcript_edit(earlier(burst("a", "b", "c")), edit("m2", "x")).row.content == "a\nx\nc"
    assert plan_transcript_edit(earlier(burst("a", "b", "c")), deletion("m1")).row.content == "b\nc"


@pytest.mark.parametrize(
    "row", [burst("a\nb", "c"), make_user_row([said("m1", "a", attachments=(PHOTO,)), said("m2", "b")])]
)
def test_of_messages_that_cannot_be_told_apart_none_is_edited_and_all_are_deleted(row: Message):
    row = row.altered(platform_messages=[])
    assert messages_of(row) is None
    assert plan_transcript_edit(row, edit("m1", "x")) == (Effect.NONE, row)
    assert plan_transcript_edit(row, deletion("m3")) == (Effect.NONE, row)
    assert plan_transcript_edit(row, deletion("m2")) == (Effect.HIDDEN, row)
    hidden = row.altered(hidden_because=Hidden.RETRACTED)
    assert plan_transcript_edit(hidden, deletion("m2")) == (Effect.STANDS, hidden)


@pytest.mark.parametrize(
    "kept", [[{"id": "m1", "text": "old"}, {"id": "m2", "text": "b"}], ["m1"], [7], [{"id": 7}]]
)
def test_what_a_row_keeps_of_its_messages_is_believed_only_if_it_comes_to_what_the_row_says(kept: list[Any]):
    """A program that does not know the column may have written the row since."""
    row = burst("a", "b").altered(platform_messages=kept)
    assert plan_transcript_edit(row, edit("m2", "x")).row.content == "a\nx"


def test_a_program_may_say_what_one_message_of_a_row_says():
    row = burst("a", "b")
    assert replace_text_by_hand(row, "m2", "x").content == "a\nx"
    alone = Message("user", "a", platform_message_id="m1", api_content="a, today")
    assert replace_text_by_hand(alone, "m1", "a") == alone
    assert replace_text_by_hand(alone, "m1", None) == alone.altered(content=None, api_content=None)
    parts: list[Any] = [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
    assert replace_text_by_hand(alone, "m1", parts).content == parts


def test_a_row_holds_the_messages_that_it_was_made_of_and_those_that_were_deleted():
    row = plan_transcript_edit(burst("a", "b"), deletion("m1")).row
    assert [has_message_id(row, name) for name in ("m1", "m2", "m3")] == [True, True, False]


def test_what_an_edit_or_a_deletion_does_is_told_by_the_message():
    change = said("m1", " new ", kind=MessageKind.EDIT, revision=3)
    assert rewording_from(change) == edit("m1", "new", 3)
    assert rewording_from(said("m1", "", kind=MessageKind.DELETE)) == deletion("m1")


# Any changes of any burst


@dataclass
class _Said:
    """What people would see of a burst on its platform."""

    texts: dict[str, str]
    revisions: dict[str, int] = field(default_factory=dict[str, int])

    def change(self, change: Rewording) -> None:
        name = change.message_id
        if change.deletes:
            self.texts.pop(name, None)
        elif name in self.texts and not is_older(change.revision, self.revisions.get(name, 0)):
            self.texts[name] = str(change.content)
            self.revisions[name] = max(change.revision, self.revisions.get(name, 0))


TEXTS = st.text("ab [].\n", min_size=1, max_size=8).filter(str.strip)
NAMES = st.integers(1, 8).map(lambda number: f"m{number}")
CHANGES = st.one_of(NAMES.map(deletion), st.builds(edit, NAMES, TEXTS, st.integers(0, 3)))


@given(st.lists(TEXTS, min_size=1, max_size=8), st.lists(CHANGES, max_size=12), st.booleans())
def test_after_any_changes_a_row_says_what_its_platform_shows(
    texts: list[str], changes: list[Rewording], shared: bool
):
    row, hidden = burst(*texts, shared=shared), False
    truth = _Said({f"m{number}": text for number, text in enumerate(texts, 1)})
    for change in changes:
        effect, after = plan_transcript_edit(row, change)
        truth.change(change)
        assert (effect is Effect.NONE) <= (change.message_id not in truth.texts)
        hidden |= effect is Effect.HIDDEN
        row = after.altered(hidden_because=Hidden.RETRACTED) if hidden else after
        assert hidden == (not truth.texts)
        if not hidden:
            expected = make_user_row([said(name, text) for name, text in truth.texts.items()], shared=shared)
            assert (row.content, row.api_content) == (expected.content, expected.api_content)
            assert (row.platform_message_id, ids_of(row)) == (expected.platform_message_id, ids_of(expected))
