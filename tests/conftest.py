"""What every test gets, whatever it tests."""

import os
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx

# Functions that may block the loop although our code calls them, each with its reason. Keep it short.
MAY_BLOCK = (
    ("zoneinfo/_tzpath.py", "find_tzfile"),  # a zone is looked for and read once, then cached
    ("zoneinfo/_common.py", "load_data"),
    ("zoneinfo/_common.py", "load_tzdata"),
)


def pytest_configure(config: pytest.Config) -> None:
    """Measure the processes that run tests, and no process that a test starts: those die, and are timed."""
    if not config.getoption("numprocesses", None):
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail the test whose event loop is blocked by a call made from the package.

    Only stacks that pass through `gateway_sessions` count: a test may read a file it has waited for.
    """
    with blockbuster_ctx("gateway_sessions") as guard:
        for filename, function in MAY_BLOCK:
            for wrapped in guard.functions.values():
                wrapped.can_block_in(filename, function)
        yield guard
