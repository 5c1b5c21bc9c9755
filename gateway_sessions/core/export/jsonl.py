"""One JSON object per line and session: what an import takes in again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway_sessions.core.export.wording import Exported

_JSON: Final = msgspec.json.Encoder()


class JsonLines:
    """Writes sessions as lines, each with its messages as the last member."""

    def __init__(self) -> None:
        self._empty = True

    def begin_file(self) -> bytes:
        """Nothing stands before the first session."""
        return b""

    def begin_session(self, session: Exported) -> bytes:
        """The session's own members."""
        self._empty = True
        return _JSON.encode(session)[:-1] + b',"messages":['

    def messages(self, page: Sequence[Exported]) -> bytes:
        """Some of its messages."""
        if not page:
            return b""
        start = b"" if self._empty else b","
        self._empty = False
        return start + b",".join(map(_JSON.encode, page))

    def end_session(self) -> bytes:
        """The end of the line."""
        return b"]}\n"

    def end_file(self) -> bytes:
        """Nothing stands behind the last session."""
        return b""
