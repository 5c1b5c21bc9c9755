"""The formats of an export by name, and the JSON Lines that an import reads: one line for each session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from gateway_sessions.core.export.html import Html
from gateway_sessions.core.export.markdown import Markdown
from gateway_sessions.core.export.page_texts import Exported
from gateway_sessions.errors import InvalidInputError

_JSON: Final = msgspec.json.Encoder()


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


class JsonLines:
    """Writes sessions as lines, each with its messages as the last member."""

    def __init__(self) -> None:
        self._empty = True

    def begin_file(self) -> bytes:
        """Return the beginning of the file, which is empty."""
        return b""

    def begin_session(self, session: Exported) -> bytes:
        """Return the session's own members."""
        self._empty = True
        return _JSON.encode(session)[:-1] + b',"messages":['

    def messages(self, page: Sequence[Exported]) -> bytes:
        """Return some of the session's messages."""
        if not page:
            return b""
        start = b"" if self._empty else b","
        self._empty = False
        return start + b",".join(map(_JSON.encode, page))

    def end_session(self) -> bytes:
        """Return the end of the line."""
        return b"]}\n"

    def end_file(self) -> bytes:
        """Return the end of the file, which is empty."""
        return b""


_RENDERERS: Final[Mapping[ExportFormat, Callable[[], Renderer]]] = {
    ExportFormat.JSONL: JsonLines,
    ExportFormat.MARKDOWN: Markdown,
    ExportFormat.HTML: Html,
}


def new_renderer(name: str) -> Renderer:
    """Return a new renderer of that format, or raise `InvalidInputError`."""
    if name not in list(ExportFormat):
        problem = f"there is no export format {name!r}; there are: {', '.join(ExportFormat)}"
        raise InvalidInputError(problem)
    return _RENDERERS[ExportFormat(name)]()
