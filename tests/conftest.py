"""What every test gets, whatever it tests."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import is_hypothesis_test, settings
from hypothesis.internal.conjecture import engine

from tests.architecture.loopback_only import keep_to_loopback
from tests.measuring import WhatTestsRun
from tests.new_databases import copy_migrated_databases
from tests.programs import WarmPython, warm_python
from tests.temporary_files import keep_in_memory
from tests.watchdog import Watchdog

# Functions that may block the loop although our code calls them, each with its reason. Keep it short.
MAY_BLOCK = (
    ("asyncpg/connect_utils.py", "_parse_connect_dsn_and_args"),  # looks for passwords and certificates
    ("zoneinfo/_tzpath.py", "find_tzfile"),  # a zone is looked for and read once, then cached
    ("zoneinfo/_common.py", "load_data"),
    ("zoneinfo/_common.py", "load_tzdata"),
    ("coverage/collector.py", "lock_data"),  # measuring a file for the first time
)

# No deadline: how long an example takes says more about the machine than about the package.
settings.register_profile("sample", settings(), max_examples=60, deadline=None, print_blob=True)
settings.register_profile("soak", settings(), max_examples=3000, deadline=None, derandomize=False)
SOAK_SECONDS = 1800

SHRINKING_SECONDS = 60
"""So long a failing example is made smaller: on a server, five minutes are many tries of one that hangs."""
engine.MAX_SHRINKING_SECONDS = SHRINKING_SECONDS


def pytest_configure(config: pytest.Config) -> None:
    """Settle how much is tried, where files are, and which processes are measured."""
    keep_in_memory()
    keep_to_loopback()
    settings.load_profile("soak" if config.getoption("markexpr") == "soak" else "sample")
    config.pluginmanager.register(Watchdog())
    # Measure the processes that run tests, and none that a test starts: those are killed, and timed.
    measured = coverage.Coverage.current()
    if config.getoption("numprocesses", None):
        if measured is not None:
            measured.stop()  # this process only hands out the tests
        return
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    if measured is not None:
        config.pluginmanager.register(WhatTestsRun())


def pytest_sessionstart() -> None:
    """Do not look through what was collected again and again: all of it is kept to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """See `pytest_sessionstart`."""
    gc.enable()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import every file of tests for the few that measure time."""
    if config.getoption("markexpr") != "alone" or collection_path.suffix != ".py":
        return None
    return None if "mark.alone" in collection_path.read_text("utf-8") else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let a soak try every property with many more examples; leave out what would disturb or be disturbed."""
    if settings.get_current_profile_name() == "soak":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)) and not item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.soak)
                item.add_marker(pytest.mark.timeout(SOAK_SECONDS))
    left_out = {"soak"} if "soak" not in config.getoption("markexpr") else set[str]()
    if hasattr(config, "workerinput"):
        left_out.add("alone")
    deselected = [item for item in items if left_out.intersection(mark.name for mark in item.iter_markers())]
    if deselected:
        items[:] = [item for item in items if item not in deselected]
        config.hook.pytest_deselected(items=deselected)


@pytest.fixture(scope="session", autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail the test whose event loop is blocked by a call made from the package.

    Only stacks that pass through `gateway_sessions` count: a test may read a file it has waited for.
    """
    with blockbuster_ctx("gateway_sessions") as guard:
        # None of these speaks SQL, which tests do all the time, and each entry is compared with every frame.
        for wrapped in (one for name, one in guard.functions.items() if not name.startswith("sqlite3.")):
            for filename, function in MAY_BLOCK:
                wrapped.can_block_in(filename, function)
        yield guard


@pytest.fixture(scope="session", autouse=True)
def migrated_once() -> Iterator[None]:
    """New databases are copies of one that took all migrations."""
    with pytest.MonkeyPatch.context() as patch:
        migrated = copy_migrated_databases(patch)
        yield
        migrated.close()


@pytest.fixture(scope="session", name="warm_python")
def warm_interpreter() -> WarmPython:
    """Starts programs in processes of their own, without the time that an interpreter takes to start."""
    return warm_python()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The directory of a store, which is not made yet."""
    return tmp_path / "home"


def pytest_sessionfinish() -> None:
    """End the interpreter from which programs were started, if any were."""
    if warm_python.cache_info().currsize:
        warm_python().close()
