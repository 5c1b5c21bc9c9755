"""The choice of an export format by name, and the rendering of a bundle in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from gateway_sessions.core.export.html import Html
from gateway_sessions.core.export.jsonl import JsonLines
from gateway_sessions.core.export.markdown import Markdown
from gateway_sessions.core.export.wording import Exported
from gateway_sessions.errors import InvalidInputError


class ExportFormat(StrEnum):
    """The format of a file of sessions."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"
    HTML = "html"


class Renderer(Protocol):
    """Turns sessions into a file, piece by piece, in the order of these methods."""

    def begin_file(self) -> bytes:
        """Return the beginning of the file."""
        ...

    def begin_session(self, session: Exported) -> bytes:
        """Return the beginning of a session, before its messages."""
        ...

    def messages(self, page: Sequence[Exported]) -> bytes:
        """Return some of the session's messages, in order."""
        ...

    def end_session(self) -> bytes:
        """Return the end of the session, after its last message."""
        ...

    def end_file(self) -> bytes:
        """Return the end of the file."""
        ...


_RENDERERS: Final[Mapping[ExportFormat, Callable[[], Renderer]]] = {
    ExportFormat.JSONL: JsonLines,
    ExportFormat.MARKDOWN: Markdown,
    ExportFormat.HTML: Html,
}


def renderer(name: str) -> Renderer:
    """Return a new renderer of that format, or raise `InvalidInputError`."""
    if name not in list(ExportFormat):
        problem = f"there is no export format {name!r}; there are: {', '.join(ExportFormat)}"
        raise InvalidInputError(problem)
    return _RENDERERS[ExportFormat(name)]()


def rendered(sessions: Iterable[Exported], name: str) -> bytes:
    """Return a file of whole sessions, given as `SessionDB.export_session` returns them."""
    format_renderer = renderer(name)
    parts = [format_renderer.begin_file()]
    for session in sessions:
        header = {key: value for key, value in session.items() if key != "messages"}
        parts += [
            format_renderer.begin_session(header),
            format_renderer.messages(session.get("messages") or ()),
            format_renderer.end_session(),
        ]
    return b"".join([*parts, format_renderer.end_file()])
