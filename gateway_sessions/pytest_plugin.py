"""Fixtures for those who test against sessions: `fake_clock` and `session_store`.

The plugin is loaded in every test run of an environment that has this package. It asks for nothing but pytest
itself, so that it cannot stop the tests of somebody who does not use the fixtures, and it loads nothing else
before somebody does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gateway_sessions import SessionStore
    from gateway_sessions.testing import FakeClock

pytest.register_assert_rewrite("gateway_sessions.testing")


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that stands still until the test advances it."""
    from gateway_sessions.testing import FakeClock  # noqa: PLC0415 -- only after the line above

    return FakeClock()


@pytest.fixture
def _session_store_class() -> type[SessionStore]:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """Loaded here, because it takes too long for an event loop."""
    from gateway_sessions import SessionStore  # noqa: PLC0415 -- only for those who use it

    return SessionStore


async def open_session_store(
    tmp_path: Path, fake_clock: FakeClock, _session_store_class: type[SessionStore]
) -> AsyncGenerator[SessionStore]:
    """An open store in a directory of its own, living by `fake_clock`."""
    async with _session_store_class.open(tmp_path / "sessions", clock=fake_clock) as store:
        yield store


# Installed without the extra `test`, the plugin must not stop other people's tests.
if find_spec("pytest_asyncio") is not None:
    import pytest_asyncio

    session_store = pytest_asyncio.fixture(open_session_store, name="session_store")
