"""What an adapter says it can do, and what follows from that."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions.adapters import Attachment, AttachmentKind, Button, OutboundMessage
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.markdown.dialects import SLACK
from gateway_sessions.errors import InvalidInputError

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("idempotent_for", "age", "replaces", "once"),
    [
        (None, timedelta(), None, False),
        (None, timedelta(), "m1", True),
        (MINUTE, timedelta(), None, True),
        (MINUTE, MINUTE, None, False),
        (MINUTE, 2 * MINUTE, "m1", True),
        (timedelta.max, timedelta(days=9999), None, True),
        (MINUTE, -MINUTE, None, True),
    ],
)
def test_a_repeat_is_shown_once_as_long_as_the_platform_knows_its_key(
    idempotent_for: timedelta | None, age: timedelta, replaces: str | None, once: bool
):
    message = OutboundMessage(text="a", replaces=replaces)
    assert AdapterCapabilities(idempotent_for=idempotent_for).shows_once(message, age) is once


def test_the_way_of_the_first_edition_works_and_says_what_replaces_it():
    with pytest.warns(DeprecationWarning, match=r"is written idempotent_for=timedelta\.max") as told:
        old = AdapterCapabilities(idempotent_send=True)
    assert old.idempotent_for == timedelta.max
    assert told[0].filename == __file__


def test_buttons_that_cannot_be_shown_are_listed():
    message = OutboundMessage(text="Sure?", buttons=(Button("Yes", "y"), Button("Help", url="https://e.org")))
    told = AdapterCapabilities().in_words(message)
    assert (told.text, told.buttons) == ("Sure?\n- Yes\n- Help: https://e.org", ())
    assert AdapterCapabilities(buttons=True).in_words(message) is message


def test_buttons_stay_where_only_an_attachment_cannot_be_shown():
    file = Attachment(kind=AttachmentKind.DOCUMENT, name="a.pdf")
    message = OutboundMessage(text="Sure?", attachments=(file,), buttons=(Button("Yes"),))
    told = AdapterCapabilities(buttons=True, attachments=frozenset()).in_words(message)
    assert (told.text, told.attachments, told.buttons) == ("Sure?\n[document: a.pdf]", (), (Button("Yes"),))


def test_a_button_tells_its_value_or_else_its_label():
    assert (Button("Yes", "confirm:1").action, Button("Yes").action) == ("confirm:1", "Yes")
    with pytest.raises(InvalidInputError, match="a button must have a label"):
        Button(" ")
    with pytest.raises(InvalidInputError, match="label"):
        Button(7)  # type: ignore[arg-type]


def test_markup_needs_more_room_than_text():
    with pytest.raises(InvalidInputError, match="max_length = 100 must be at least 128"):
        AdapterCapabilities(dialect=SLACK, max_length=100)
    AdapterCapabilities(dialect=SLACK, max_length=128)
