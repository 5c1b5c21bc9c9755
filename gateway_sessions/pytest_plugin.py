"""The fixtures `fake_clock` and `session_store`, for programs that test against sessions.

Pytest loads the plugin in every environment with this package. So it imports nothing but pytest until a
fixture is used, and cannot stop the tests of programs that do not use the fixtures.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from gateway_sessions import SessionStore
    from gateway_sessions.testing import FakeClock

pytest.register_assert_rewrite("gateway_sessions.testing")


@pytest.fixture
def fake_clock() -> FakeClock:
    """Return a clock that stands still until the test advances it."""
    from gateway_sessions.testing import FakeClock  # noqa: PLC0415 -- after the rewriting is registered

    return FakeClock()


@pytest.fixture
def _session_store_class() -> type[SessionStore]:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """Import the class here, as the import takes too long for an event loop."""
    from gateway_sessions import SessionStore  # noqa: PLC0415 -- slow, and most tests do without

    return SessionStore


async def open_session_store(
    tmp_path: Path, fake_clock: FakeClock, _session_store_class: type[SessionStore]
) -> AsyncGenerator[SessionStore]:
    """Open a store in a directory of its own, with `fake_clock`."""
    async with _session_store_class.open(tmp_path / "sessions", clock=fake_clock) as store:
        yield store


# Installed without the extra `test`, the plugin must not stop other people's tests.
if find_spec("pytest_asyncio") is not None:
    import pytest_asyncio

    session_store: Final = pytest_asyncio.fixture(open_session_store, name="session_store")
