"""MySQL keeps the contract."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import Capability, OpenDB, SessionDBContract
from tests.mysql import fresh_address, shared_address

__all__ = ["fresh_address", "shared_address"]


class TestMySQL(SessionDBContract):
    capabilities = frozenset[Capability]()

    @pytest.fixture
    def open_db(self, tmp_path: Path, fresh_address: str, clock: FakeClock) -> OpenDB:
        homes = count()
        return lambda: SessionDB.open(fresh_address, clock=clock, home=tmp_path / str(next(homes)))
