"""Rendering of a text in Markdown for a platform: parsed once, laid out in its markup, cut into messages."""

from __future__ import annotations

from gateway_sessions.core.markdown.dialect import MarkupDialect
from gateway_sessions.core.markdown.document_to_pieces import pieces_of_document
from gateway_sessions.core.markdown.packing import Part, pack
from gateway_sessions.core.markdown.parser import parse_markdown


def render_markdown(text: str, dialect: MarkupDialect, *, limit: int | None = None) -> tuple[Part, ...]:
    """Return the messages that show a text in Markdown, in order; none if there is nothing to show.

    *limit* is a lower limit than the platform's, in its unit.
    """
    return pack(pieces_of_document(parse_markdown(text), dialect), dialect, limit)
