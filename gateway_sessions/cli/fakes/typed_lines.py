"""The lines that an operator types: who writes what where, or does what."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

YOU: Final = "you"
"""The person who types lines without a name."""
_LINE: Final = re.compile(
    r"(?:#(?P<place>\S+)\s+)?(?:(?P<person>[A-Za-z][\w-]{0,30}):\s+)?(?P<text>.*)", re.DOTALL
)
_ACT: Final = re.compile(r"\\(?P<name>[a-z]+)(?:\s+(?P<words>.*))?", re.DOTALL)
SAY: Final = "say"


class TypedLine(NamedTuple):
    """A line that was typed: who does what, in private or in a group, a channel or a room."""

    person: str
    place: str | None
    act: str
    """The name of what the person does; `say` for a line that is a message."""
    words: str


def read_typed_line(line: str) -> TypedLine:
    r"""Return who does what: `hello`, `ann: hello`, `#team ann: hello` or `ann: \press Yes`."""
    found = _LINE.fullmatch(line.strip())
    assert found is not None  # noqa: S101 -- whatever is typed, `text` takes it
    person, place, text = (found["person"] or YOU).lower(), found["place"], found["text"]
    act = _ACT.fullmatch(text)
    if act is None:
        return TypedLine(person, place, SAY, text)
    return TypedLine(person, place, act["name"], (act["words"] or "").strip())
