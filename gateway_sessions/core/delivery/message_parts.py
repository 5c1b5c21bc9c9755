"""The messages that a platform gets for one of ours: rendered, cut to its limit, marked as a repeat.

This happens before a reply is stored, so that each message of it is sent, retried and marked by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import structs

from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, TextFormat
from gateway_sessions.core.delivery.text_splitting import split_text

if TYPE_CHECKING:
    from gateway_sessions.core.markdown.dialect import MarkupDialect

REPEATED: Final = "(This may be a repeat.)"
"""The first line of a reply that may have been sent before."""


def split_message(message: OutboundMessage, capabilities: AdapterCapabilities) -> tuple[OutboundMessage, ...]:
    """Return the messages that show one on a platform, each with room for the mark of a repeat.

    The first part replaces the message that the whole was to replace. The last one has everything but text.
    """
    room = _room_for_mark(capabilities)
    limit = None if capabilities.max_length is None else capabilities.max_length - room
    dialect = capabilities.dialect
    if dialect is not None and _is_to_be_rendered(message):
        # An adapter with a dialect has loaded the renderer with it, so that nothing is loaded here.
        from gateway_sessions.core.markdown.rendering import render_markdown  # noqa: PLC0415

        # A dialect has a limit of its own: where the adapter names none, that one holds.
        limit = dialect.limit - room if limit is None else limit
        rendered = render_markdown(message.text, dialect, limit=limit)
        plain = structs.replace(message, format=TextFormat.PLAIN)
        return _in_parts(plain, [(one.plain, one.markup) for one in rendered])
    if limit is None or capabilities.length_unit.length(message.text) <= limit:
        return (message,)
    texts = split_text(message.text, limit, capabilities.length_unit)
    return _in_parts(message, [(text, None) for text in texts])


def render_stored(message: OutboundMessage, capabilities: AdapterCapabilities) -> OutboundMessage:
    """Return the message as the adapter gets it, although it was stored before the adapter had a dialect.

    It is one message already and stays one: if its markup does not fit, it is sent as it was written.
    """
    if capabilities.dialect is None or not _is_to_be_rendered(message):
        return message
    parts = split_message(message, capabilities)
    return parts[0] if len(parts) == 1 else structs.replace(message, format=TextFormat.PLAIN)


def cut_to_fit(message: OutboundMessage, capabilities: AdapterCapabilities) -> OutboundMessage:
    """Return the message in as much of its words as one message on the platform has room for."""
    first, *others = split_message(message, capabilities)
    return message.with_text(first.text) if others else message


def mark_as_repeat(
    message: OutboundMessage, dialect: MarkupDialect | None = None, mark: str = REPEATED
) -> OutboundMessage:
    """Return the message with the mark that it may be a repeat."""
    marked = message.with_text(f"{mark}\n{message.text}" if message.text else mark)
    if message.markup is None or dialect is None:
        return marked
    return structs.replace(marked, markup=_mark_in(dialect, mark) + message.markup)


def mark_in_words(message: OutboundMessage, capabilities: AdapterCapabilities, mark: str) -> OutboundMessage:
    """Return the message with the mark in other words; in ours if these have no room."""
    dialect = capabilities.dialect
    marked = mark_as_repeat(message, dialect, mark)
    counted = marked.text
    if dialect is not None and dialect.counts_markup and marked.markup is not None:
        counted = marked.markup
    fits = capabilities.fits(counted)
    if dialect is not None and capabilities.max_length is None:  # then the limit of the dialect holds
        fits = dialect.unit.length(counted) <= dialect.limit
    return marked if fits else mark_as_repeat(message, dialect)


def _is_to_be_rendered(message: OutboundMessage) -> bool:
    return message.format is TextFormat.MARKDOWN and message.markup is None


def _room_for_mark(capabilities: AdapterCapabilities) -> int:
    if capabilities.idempotent_for == timedelta.max:
        return 0
    dialect = capabilities.dialect
    room = len(REPEATED) + 1
    if dialect is None or not dialect.counts_markup:
        return room
    return max(room, capabilities.length_unit.length(_mark_in(dialect, REPEATED)))


def _mark_in(dialect: MarkupDialect, mark: str) -> str:
    return dialect.escape(mark, True) + dialect.line_break  # noqa: FBT003 -- it begins a line


def _in_parts(
    message: OutboundMessage, parts: Sequence[tuple[str, str | None]]
) -> tuple[OutboundMessage, ...]:
    """Return a message for each part, which has a text and maybe its markup; without a text there is one."""
    *others, (text, markup) = parts or (("", None),)
    if others and message.notice_code is not None:  # nobody can word a part anew
        message = structs.replace(message, worded=True)
    bare = OutboundMessage(
        is_notice=message.is_notice,
        notice_code=message.notice_code,
        worded=message.worded,
        format=message.format,
    )
    last = structs.replace(message, replaces=None, text=text, markup=markup)
    first, *rest = (*(structs.replace(bare, text=one, markup=marked) for one, marked in others), last)
    return (first.instead_of(message.replaces), *rest)
