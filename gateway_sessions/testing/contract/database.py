"""What all topics of the contract stand on: the one fixture that an engine gives, and an open database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from typing import ClassVar, TypeAlias

import pytest
import pytest_asyncio

from gateway_sessions import SessionDB
from gateway_sessions.testing import FakeClock

OpenDB: TypeAlias = Callable[[], SessionDB]
"""Makes a `SessionDB` that is not open yet; each call one on the same data."""


class Capability(StrEnum):
    """What an engine may have or lack. All else is promised by every engine."""

    ONE_OWNER = "one_owner"  # a second program that opens the data is refused; without it, many may write
    UPKEEP = (
        "upkeep"  # `vacuum`, `optimise` and `back_up` can be asked for; without it, a server sees to that
    )


class DatabaseContract:
    """Gives each test an open database without anything in it."""

    pytestmark: ClassVar = pytest.mark.asyncio
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The time that the database lives by; it stands still until the test moves it."""
        return FakeClock()

    @pytest.fixture
    def open_db(self) -> OpenDB:
        """Override it: a factory of databases that live by `clock`, on data that is empty at first."""
        raise NotImplementedError

    @pytest_asyncio.fixture
    async def db(self, open_db: OpenDB) -> AsyncIterator[SessionDB]:
        """The database, open."""
        async with open_db() as opened:
            yield opened

    @pytest_asyncio.fixture
    async def session(self, db: SessionDB) -> str:
        """A session of Alice's in which nothing was said."""
        return await db.create_session("s", "cli", user_id="alice")
