"""The last resort against a test that hangs: its process is ended, some time after its timeout has failed it.

The timeout of a test interrupts Python code once. It does not end a call that never returns to Python, nor
what goes on hanging afterwards, such as an example that is tried again to make it smaller. Among several
processes the others go on, and the test counts as failed; a single one ends the run and shows all stacks.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Generator

import pytest

GRACE_SECONDS = 60.0
"""After the timeout of a test, for all that follows from that."""


class Watchdog:
    """Lets no test take longer than its timeout and some grace, whatever it waits for."""

    def __init__(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self.grace_seconds = grace_seconds
        # What is captured is lost with the process.
        self._told_to = os.fdopen(os.dup(sys.stderr.fileno()), "w")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """End the process if this test, with its fixtures, does not end."""
        seconds = timeout_of(item)
        if seconds:
            limit = seconds + self.grace_seconds
            faulthandler.dump_traceback_later(limit, exit=True, file=self._told_to)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def timeout_of(item: pytest.Item) -> float:
    """After how many seconds a test fails; 0 if never."""
    marker = item.get_closest_marker("timeout")
    if marker is not None and marker.args:
        return float(marker.args[0])
    told = item.config.getoption("timeout", None) or item.config.getini("timeout")
    return float(told or 0)
