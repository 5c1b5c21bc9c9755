"""A database that another package brings along keeps the contracts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import SessionDB, SessionStore
from gateway_sessions.config import SessionDBConfig
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import (
    Capability,
    LedgerContract,
    OpenDB,
    OpenStore,
    SessionDBContract,
)
from tests.providers import install_provider
from tests.unit.runtime.store_fixtures import open_store as opened
from tests.unit.runtime.store_fixtures import quick_config

ADDRESS = "notebook://desk"


@pytest.fixture(scope="module", autouse=True)
def _installed() -> Iterator[None]:
    """Once, because to look for what is installed takes longer than most of the tests."""
    with pytest.MonkeyPatch.context() as patch, install_provider(patch):
        yield


class TestNotebook(SessionDBContract):
    capabilities = frozenset({Capability.ONE_OWNER, Capability.UPKEEP})

    @pytest.fixture
    def open_db(self, tmp_path: Path, clock: FakeClock) -> OpenDB:
        return partial(SessionDB.open, ADDRESS, clock=clock, home=tmp_path / "home", survives_power_cut=False)


class TestNotebookQueue(LedgerContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path, clock: FakeClock) -> OpenStore:
        settings = SessionDBConfig(provider="notebook", url=ADDRESS)

        def make(**options: Any) -> SessionStore:
            return opened(
                tmp_path, quick_config(**({"sessiondb": settings} | options)), clock=clock, titler=None
            )

        return make
