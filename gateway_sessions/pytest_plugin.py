"""Fixtures for programs that test against sessions: `fake_clock`, `session_store`, and fakes of platforms.

Pytest loads the plugin in every environment with this package. So it imports nothing but pytest until a
fixture is used, and cannot stop the tests of programs that do not use the fixtures.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from gateway_sessions import SessionStore
    from gateway_sessions.testing import FakeClock
    from gateway_sessions.testing.fakes.platform_server import FakePlatformServer

FAKES: Final = MappingProxyType(
    {
        "discord": "FakeDiscord",
        "google_chat": "FakeGoogleChat",
        "line": "FakeLine",
        "matrix": "FakeMatrix",
        "mattermost": "FakeMattermost",
        "slack": "FakeSlack",
        "teams": "FakeTeams",
        "telegram": "FakeTelegram",
        "twilio": "FakeTwilio",
        "whatsapp": "FakeWhatsApp",
    }
)
"""The classes that play platforms, by their modules in `gateway_sessions.testing.fakes`."""

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


def _running(platform: str, name: str) -> Callable[[], Iterator[FakePlatformServer]]:
    """Return the function behind the fixture of one platform."""

    def run_fake() -> Iterator[FakePlatformServer]:
        # The import takes too long for an event loop; pytest calls this function outside of one.
        fake: type[FakePlatformServer] = getattr(
            import_module(f"gateway_sessions.testing.fakes.{platform}"), name
        )
        with fake() as running:
            yield running

    run_fake.__doc__ = f"Run a `{name}` on loopback until the test ends."
    return run_fake


# Pytest finds fixtures among the names of a plugin.
globals().update(
    {
        f"fake_{platform}": pytest.fixture(_running(platform, name), name=f"fake_{platform}")
        for platform, name in FAKES.items()
    }
)
