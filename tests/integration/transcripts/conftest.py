"""A database of its own for each test, made once and copied, and a session in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway_sessions import SessionDB, SessionStore
from gateway_sessions.config import Durability, Provider, SessionDBConfig
from gateway_sessions.testing import FakeClock
from tests import mysql, postgresql
from tests.unit.runtime.store_fixtures import open_store


@pytest.fixture
async def db(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionDB]:
    path = tmp_path / "home" / "sessions.db"
    async with SessionDB.open(path, clock=fake_clock, survives_power_cut=False) as opened:
        yield opened


@pytest.fixture
async def session(db: SessionDB) -> str:
    return await db.create_session("s", "cli", user_id="alice")


@pytest.fixture
async def store(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with open_store(tmp_path / "home", clock=fake_clock) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
async def truth(request: pytest.FixtureRequest) -> AsyncIterator[SessionDBConfig]:
    """An empty database of each engine."""
    match request.param:
        case "sqlite":
            yield SessionDBConfig(durability=Durability.OS)
        case "postgresql":
            async with postgresql.empty_database() as dsn:
                yield SessionDBConfig(provider=Provider.POSTGRESQL, url=dsn)
        case _:
            async with mysql.empty_database() as url:
                yield SessionDBConfig(provider=Provider.MYSQL, url=url)
