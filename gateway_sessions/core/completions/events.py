"""Server-sent events, wherever the network has cut them: in a line end, or in the middle of a character.

Lines end where the standard of server-sent events says, and nowhere else: what models write holds many
characters that other readers take for the end of a line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

MAX_EVENT: Final = 1 << 20
"""Characters. No piece of a reply is as long."""

_LINE_END: Final = re.compile("\r\n|\n|\r")


class EventTooLongError(ValueError):
    """An event does not end."""

    def __init__(self) -> None:
        super().__init__(f"one event has more than {MAX_EVENT} characters")


class EventStream:
    """Collects bytes and gives out the data of whole events."""

    __slots__ = ("_begun", "_data", "_decoder", "_size")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._begun = ""
        """The beginning of a line."""
        self._data: list[str] = []
        """The lines of an event so far, without its end."""
        self._size = 0

    def take(self, received: bytes) -> Iterator[str]:
        """The data of each event that ends in these bytes. What never ends is no event."""
        text = self._begun + self._decoder.decode(received)
        # The line feed that belongs to a carriage return may come with the next bytes.
        held = "\r" if text.endswith("\r") else ""
        *lines, self._begun = _LINE_END.split(text[: len(text) - len(held)])
        for line in lines:
            yield from self._line(line)
        self._begun += held
        self._check(len(self._begun))

    def _line(self, line: str) -> Iterator[str]:
        if not line:
            if self._data:
                yield "\n".join(self._data)
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(":")
        if name == "data":  # a line without a name is a comment, and no other name means anything here
            self._size += len(value)
            self._check(0)
            self._data.append(value.removeprefix(" "))

    def _check(self, more: int) -> None:
        if self._size + more > MAX_EVENT:
            raise EventTooLongError
