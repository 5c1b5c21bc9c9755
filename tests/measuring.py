"""What of a test run is measured: a tracer makes all Python slower, and most of it is none of ours."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

# Folders whose tests try many cases of what others show with one. What they alone reach does not count.
UNMEASURED = frozenset({"architecture", "property", "time_travel"})

Step = Iterator[None]


class WhatTestsRun:
    """Traces tests while they run: neither pytest around them, nor the tests that try many cases.

    The threads of fixtures are traced: the database works there. Without a tracer, nothing changes.
    """

    def __init__(self) -> None:
        self._ours, self._of_threads = sys.gettrace(), threading.gettrace()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Step:
        sys.settrace(None)
        try:
            return (yield)
        finally:
            sys.settrace(self._ours)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Step:
        threading.settrace(self._of_threads if is_measured(item) else None)  # type: ignore[arg-type]
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Step:
        sys.settrace(self._ours if is_measured(item) else None)
        try:
            return (yield)
        finally:
            sys.settrace(None)


def is_measured(item: pytest.Item) -> bool:
    return item.path.relative_to(Path(__file__).parent).parts[0] not in UNMEASURED
