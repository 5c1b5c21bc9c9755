"""The decoder of what a terminal sends for the keys of its person: bytes in, presses out."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from gateway_sessions.cli.picker.model import Pasted, PickerKey, Press, Typed

ESCAPE: Final = "\x1b"
LONGEST_SEQUENCE: Final = 32
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"

CONTROLS: Final[Mapping[str, PickerKey]] = MappingProxyType(
    {
        "\r": PickerKey.ENTER,
        "\n": PickerKey.ENTER,
        "\x7f": PickerKey.BACKSPACE,
        "\x08": PickerKey.BACKSPACE,
        "\x02": PickerKey.PAGE_UP,  # Ctrl-B, Ctrl-F: as in less
        "\x06": PickerKey.PAGE_DOWN,
        "\x10": PickerKey.UP,  # Ctrl-P, Ctrl-N: as in a shell
        "\x0e": PickerKey.DOWN,
        "\x15": PickerKey.CLEAR,  # Ctrl-U
        "\x17": PickerKey.WORD_BACK,  # Ctrl-W
        "\x03": PickerKey.INTERRUPT,  # Ctrl-C
        "\x04": PickerKey.LEAVE,  # Ctrl-D
    }
)
FINALS: Final[Mapping[str, PickerKey]] = MappingProxyType(
    {"A": PickerKey.UP, "B": PickerKey.DOWN, "H": PickerKey.HOME, "F": PickerKey.END}
)
"""The last characters of cursor keys, with or without modifiers."""
NUMBERS: Final[Mapping[str, PickerKey]] = MappingProxyType(
    {
        "1": PickerKey.HOME,
        "4": PickerKey.END,
        "5": PickerKey.PAGE_UP,
        "6": PickerKey.PAGE_DOWN,
        "7": PickerKey.HOME,
        "8": PickerKey.END,
    }
)
"""The numbers behind the bracket of other keys."""

# A complete sequence. In front of anything else, an escape is the key itself: over a network it may
# arrive together with the key that was pressed behind it.
_SEQUENCE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~]|(?=[^\[O]))", re.DOTALL)


class KeyDecoder:
    """The decoder of one terminal's keys.

    An Escape may begin a sequence. If nothing has followed it for a moment, call `flush`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = ""
        self.times_fed: int = 0
        """The number of calls of `feed`."""

    @property
    def is_incomplete(self) -> bool:
        """Whether an Escape or the beginning of a sequence is waiting."""
        return bool(self._left)

    def feed(self, data: bytes) -> list[Press]:
        """Return the presses that are complete."""
        self.times_fed += 1
        self._left += self._decoder.decode(data)
        return list(self._complete_presses())

    def flush(self) -> list[Press]:
        """Return a waiting Escape as a key, unless a text is being pasted."""
        if not self._left or self._left.startswith(PASTE_BEGINS):
            return []
        behind, self._left = self._left[1:], ""
        return [
            PickerKey.ESCAPE,
            *(press for character in behind for press in _presses_of_character(character)),
        ]

    def _complete_presses(self) -> Iterator[Press]:
        while self._left:
            if self._left.startswith(PASTE_BEGINS):
                text, ended, behind = self._left[len(PASTE_BEGINS) :].partition(PASTE_ENDS)
                if not ended:
                    return
                self._left = behind
                yield Pasted(text)
            elif self._left[0] == ESCAPE:
                if (sequence := self._take_sequence()) is None:
                    return
                yield from _keys_of_sequence(sequence)
            else:
                character, self._left = self._left[0], self._left[1:]
                yield from _presses_of_character(character)

    def _take_sequence(self) -> str | None:
        """Take the sequence at the beginning; None as long as it is incomplete."""
        found = _SEQUENCE.match(self._left)
        if found is None and len(self._left) < LONGEST_SEQUENCE:
            return None
        end = found.end() if found is not None else LONGEST_SEQUENCE
        sequence, self._left = self._left[:end], self._left[end:]
        return sequence


def _keys_of_sequence(sequence: str) -> Iterator[PickerKey]:
    if sequence == ESCAPE:
        yield PickerKey.ESCAPE
    elif sequence[-1] == "~":
        number = sequence[2:-1].partition(";")[0]
        if number in NUMBERS:
            yield NUMBERS[number]
    elif sequence[1] in "[O" and sequence[-1] in FINALS:
        yield FINALS[sequence[-1]]


def _presses_of_character(character: str) -> Iterator[Press]:
    if character in CONTROLS:
        yield CONTROLS[character]
    elif character.isprintable():
        yield Typed(character)
