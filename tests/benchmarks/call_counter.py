"""Counts the calls of functions in all threads: a figure that does not depend on the machine's speed."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class CallCounter:
    """Counts calls in all threads that begin inside `watching`, while it is told to."""

    def __init__(self) -> None:
        self.counting = False
        self._by_thread: list[Counter[str]] = []

    @property
    def total(self) -> Counter[str]:
        return sum(self._by_thread, Counter())

    @contextmanager
    def watching(self) -> Iterator[None]:
        threading.setprofile(self._watch_thread)
        self._watch_thread()
        try:
            yield
        finally:
            threading.setprofile(None)  # type: ignore[arg-type]  # that is how it is taken back
            sys.setprofile(None)

    def _watch_thread(self, *_: Any) -> None:
        """Count in this thread alone: no thread waits for another one, and none takes a count of another."""
        counts: Counter[str] = Counter()
        self._by_thread.append(counts)

        def note(frame: Any, event: str, argument: Any) -> None:
            if self.counting:
                counts[event] += 1

        sys.setprofile(note)
