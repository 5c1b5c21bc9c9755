"""Messages as a platform gets them: rendered in its markup, cut to its limit, marked as a repeat."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    Button,
    LengthUnit,
    OutboundMessage,
    TextFormat,
)
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.message_parts import (
    REPEATED,
    mark_as_repeat,
    mark_in_words,
    render_stored,
    split_message,
)
from gateway_sessions.core.markdown.dialect import MarkupDialect
from gateway_sessions.core.markdown.dialects import DISCORD, MATRIX, SLACK, TEAMS, TELEGRAM, WHATSAPP

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/p.png")
LONG = "\n\n".join(f"Paragraph **{number}** with `code` & more." for number in range(300))


def markdown(text: str, **others: object) -> OutboundMessage:
    return OutboundMessage(text=text, format=TextFormat.MARKDOWN, **others)  # type: ignore[arg-type]


def able(
    dialect: MarkupDialect | None = TELEGRAM, limit: int | None = 4096, **others: object
) -> AdapterCapabilities:
    unit = LengthUnit.CHARACTERS if dialect is None else dialect.unit
    return AdapterCapabilities(dialect=dialect, max_length=limit, length_unit=unit, **others)  # type: ignore[arg-type]


def test_markdown_is_rendered_in_the_markup_of_the_platform():
    (shown,) = split_message(markdown("**bold** & more", replaces="m1", attachments=(PHOTO,)), able())
    assert (shown.markup, shown.text) == ("<b>bold</b> &amp; more", "bold & more")
    assert (shown.format, shown.replaces, shown.attachments) == (TextFormat.PLAIN, "m1", (PHOTO,))


def test_plain_text_stays_as_it_is():
    message = OutboundMessage(text="**not bold** <b>")
    assert split_message(message, able()) == (message,)


def test_a_platform_without_a_dialect_gets_markdown_as_it_was_written():
    message = markdown("**bold**")
    assert split_message(message, able(dialect=None)) == (message,)


@pytest.mark.parametrize(
    "dialect", [TELEGRAM, SLACK, DISCORD, WHATSAPP, MATRIX, TEAMS], ids=lambda one: one.name
)
def test_each_part_has_room_for_the_mark_in_markup(dialect: MarkupDialect):
    limit = 1000
    able_to = able(dialect, limit)
    parts = split_message(markdown(LONG, replaces="m1", buttons=(Button("Yes"),), is_notice=True), able_to)
    assert len(parts) > 1
    for part in parts:
        marked = mark_as_repeat(part, dialect)
        assert marked.markup is not None
        counted = marked.markup if dialect.counts_markup else marked.text
        assert dialect.unit.length(counted) <= limit
        assert marked.text.startswith(REPEATED)
        assert "This may be a repeat" in marked.markup
        assert part.is_notice
    assert [part.replaces for part in parts] == ["m1", *([None] * (len(parts) - 1))]
    assert [bool(part.buttons) for part in parts] == [*([False] * (len(parts) - 1)), True]


def test_without_a_limit_of_the_adapter_that_of_the_dialect_holds():
    parts = split_message(markdown(LONG), able(limit=None))
    assert len(parts) > 1
    assert all(LengthUnit.UTF16.length(part.text) <= TELEGRAM.limit for part in parts)


def test_a_platform_that_never_shows_twice_needs_no_room_for_a_mark():
    text = "x" * 1000
    assert len(split_message(OutboundMessage(text=text), able(limit=1000))) == 2
    assert len(split_message(OutboundMessage(text=text), able(limit=1000, idempotent_for=timedelta.max))) == 1
    assert (
        len(split_message(OutboundMessage(text=text), able(limit=1000, idempotent_for=timedelta(hours=1))))
        == 2
    )


def test_a_message_of_buttons_and_files_alone_is_one_message():
    message = markdown("", attachments=(PHOTO,))
    (shown,) = split_message(message, able())
    assert (shown.text, shown.attachments) == ("", (PHOTO,))


def test_what_was_stored_in_markdown_is_rendered_when_it_is_sent():
    stored = markdown("**bold**")
    assert render_stored(stored, able()).markup == "<b>bold</b>"
    assert render_stored(stored, able(dialect=None)) is stored
    assert render_stored(plain := OutboundMessage(text="a"), able()) is plain


def test_what_was_stored_and_does_not_fit_any_more_is_sent_as_it_was_written():
    stored = markdown(LONG)
    assert render_stored(stored, able()) == OutboundMessage(text=LONG)


def test_the_mark_stands_in_front_of_text_and_markup():
    (shown,) = split_message(markdown("*a*"), able())
    marked = mark_as_repeat(shown, TELEGRAM)
    assert (marked.markup, marked.text) == (f"{REPEATED}\n<i>a</i>", f"{REPEATED}\na")
    assert mark_as_repeat(OutboundMessage()).text == REPEATED
    assert mark_as_repeat(shown).markup is None, "without the dialect, the mark is only in the plain text"


@pytest.mark.parametrize("limit", [1000, None])
@pytest.mark.parametrize(
    "dialect", [TELEGRAM, SLACK, DISCORD, MATRIX, TEAMS, WHATSAPP, None], ids=lambda one: one and one.name
)
def test_the_mark_in_other_words_stands_only_where_it_has_room(
    dialect: MarkupDialect | None, limit: int | None
):
    able_to = able(dialect, limit)
    first, *_ = split_message(markdown(LONG), able_to)
    for message in (first, OutboundMessage(text="short")):
        short = mark_in_words(message, able_to, "<Again?>")
        assert short.text == f"<Again?>\n{message.text}"
        long = mark_in_words(message, able_to, "Vielleicht schon gesagt. " * 100)
        counted = long.markup if dialect and dialect.counts_markup and long.markup else long.text
        if limit is not None:
            assert able_to.length_unit.length(counted) <= limit
            assert long == mark_as_repeat(message, dialect)
        elif dialect is None:
            assert long.text.startswith("Vielleicht")
        else:
            assert dialect.unit.length(counted) <= dialect.limit
