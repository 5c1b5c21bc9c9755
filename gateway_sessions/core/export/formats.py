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
    """What a file of sessions looks like."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"
    HTML = "html"


class Renderer(Protocol):
    """Turns sessions into a file, piece by piece, in the order of these methods."""

    def begin_file(self) -> bytes:
        """What stands first."""
        ...

    def begin_session(self, session: Exported) -> bytes:
        """A session without its messages."""
        ...

    def messages(self, page: Sequence[Exported]) -> bytes:
        """Some of its messages, in order."""
        ...

    def end_session(self) -> bytes:
        """What stands behind its last message."""
        ...

    def end_file(self) -> bytes:
        """What stands last."""
        ...


_RENDERERS: Final[Mapping[ExportFormat, Callable[[], Renderer]]] = {
    ExportFormat.JSONL: JsonLines,
    ExportFormat.MARKDOWN: Markdown,
    ExportFormat.HTML: Html,
}


def renderer(name: str) -> Renderer:
    """A new renderer of that format, or `InvalidInputError`."""
    if name not in list(ExportFormat):
        problem = f"there is no export format {name!r}; there are: {', '.join(ExportFormat)}"
        raise InvalidInputError(problem)
    return _RENDERERS[ExportFormat(name)]()


def rendered(sessions: Iterable[Exported], name: str) -> bytes:
    """Whole sessions, as `SessionDB.export_session` gives them, as one file."""
    made = renderer(name)
    parts = [made.begin_file()]
    for session in sessions:
        header = {key: value for key, value in session.items() if key != "messages"}
        parts += [
            made.begin_session(header),
            made.messages(session.get("messages") or ()),
            made.end_session(),
        ]
    return b"".join([*parts, made.end_file()])
