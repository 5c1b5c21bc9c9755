"""MySQL keeps the contract of the queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.config import Provider, SessionDBConfig
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import LedgerContract, OpenStore
from tests.mysql import fresh_address, shared_address
from tests.unit.runtime.store_fixtures import open_store as opened
from tests.unit.runtime.store_fixtures import quick_config

__all__ = ["fresh_address", "shared_address"]


class TestMySQL(LedgerContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path, fresh_address: str, clock: FakeClock) -> OpenStore:
        settings = SessionDBConfig(provider=Provider.MYSQL, url=fresh_address)

        def make(**options: Any) -> SessionStore:
            return opened(
                tmp_path, quick_config(**({"sessiondb": settings} | options)), clock=clock, titler=None
            )

        return make
