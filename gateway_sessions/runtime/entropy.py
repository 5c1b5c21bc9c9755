"""Random digits for ids: the system is asked for many of them at a time, for each time is expensive."""

from __future__ import annotations

import os
from typing import Final

AT_ONCE: Final = 1024


class Entropy:
    """Gives out random digits, none of them twice."""

    __slots__ = ("_at", "_digits")

    def __init__(self) -> None:
        self._digits = ""
        self._at = 0

    def hex(self, count: int) -> str:
        """So many hexadecimal digits."""
        if self._at + count > len(self._digits):
            self._digits, self._at = os.urandom(AT_ONCE).hex(), 0
        self._at += count
        return self._digits[self._at - count : self._at]
