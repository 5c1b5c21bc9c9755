"""A new configuration reaches every entry, whoever writes it at that moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import SessionDB, SessionResetPolicy, SessionStore
from gateway_sessions.config import ExpiryWatcherConfig
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.ports import TransactionFactory
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.store_fixtures import QUICK, dm_source, open_store

DAY = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=24 * 60)
HOUR = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
SELDOM = ExpiryWatcherConfig(first_pass=timedelta(days=30))


async def test_use_that_is_counted_while_instants_are_stored_anew_keeps_no_old_one(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    def opened(policy: SessionResetPolicy) -> SessionStore:
        config = replace(QUICK, session_reset=policy, expiry_watcher=SELDOM)
        return open_store(tmp_path / "home", config, clock=fake_clock)

    async with opened(DAY) as store:
        entry = await store.get_or_create_session(dm_source())
    async with opened(HOUR) as store:
        plain, events = SessionDB.write, iter(["e1"])

        async def write(db: SessionDB, transaction: TransactionFactory[Any]) -> Any:
            if (event := next(events, None)) is not None:
                fake_clock.step(seconds=1)
                await db.record_usage(entry.session_id, event, input_tokens=1)
            return await plain(db, transaction)

        with monkeypatch.context() as patch:
            patch.setattr(SessionDB, "write", write)
            await store.watcher.sweep()
        fake_clock.step(hours=2)
        assert (await store.watcher.sweep()).finalised == 1
