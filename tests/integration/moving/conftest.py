"""A store to move, and a server to move it to."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.moving.filled_store import fill_store
from tests.postgresql import empty_database


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("stores") / "home"
    asyncio.run(fill_store(home))
    return home


@pytest.fixture
def home(furnished: Path, tmp_path: Path) -> Path:
    """Its directory."""
    return shutil.copytree(furnished, tmp_path / "home")


@pytest.fixture
def source(home: Path) -> Path:
    return home / "sessions.db"


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    async with empty_database() as dsn:
        yield dsn
