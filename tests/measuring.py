"""What of a test run is measured: a tracer makes all Python slower, and most of it is none of ours."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

# Folders whose tests try many cases of what others show with one. What they alone reach does not count.
UNMEASURED = frozenset({"architecture", "crash", "property", "time_travel"})
# So many cases of one test are measured; what only a later one reaches does not count either.
MEASURED_CASES = 3

Step = Iterator[None]


class WhatTestsRun:
    """Traces tests while they run: neither pytest around them, nor the tests that try many cases.

    The threads of fixtures are traced: the database works there. Without a tracer, nothing changes.
    """

    def __init__(self) -> None:
        self._ours, self._of_threads = sys.gettrace(), threading.gettrace()
        self._cases: Counter[str] = Counter()
        self._measured = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Step:
        sys.settrace(None)
        try:
            return (yield)
        finally:
            sys.settrace(self._ours)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Step:
        self._measured = self._is_measured(item)
        threading.settrace(self._of_threads if self._measured else None)  # type: ignore[arg-type]
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Step:
        sys.settrace(self._ours if self._measured else None)
        try:
            return (yield)
        finally:
            sys.settrace(None)

    def _is_measured(self, item: pytest.Item) -> bool:
        test = item.nodeid.partition("[")[0]
        self._cases[test] += 1
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        return folder not in UNMEASURED and self._cases[test] <= MEASURED_CASES
