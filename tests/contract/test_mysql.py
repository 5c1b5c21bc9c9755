"""MySQL keeps the contract."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import Capability, OpenDB, SessionDBContract
from tests.mysql import fresh_address, shared_address

__all__ = ["fresh_address", "shared_address"]


class TestMySQL(SessionDBContract):
    capabilities = frozenset({Capability.ONE_OWNER})

    @pytest.fixture
    def open_db(self, tmp_path: Path, fresh_address: str, clock: FakeClock) -> OpenDB:
        return partial(SessionDB.open, fresh_address, clock=clock, home=tmp_path)
