"""Batches: what waits while a commit is under way shares the next one."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.storage.drivers import sqlite_worker
from gateway_sessions.storage.drivers.sqlite_worker import fill_seconds
from gateway_sessions.storage.verbs import meta
from gateway_sessions.testing.crash import count_passes


@pytest.mark.parametrize(
    ("commit", "fill"), [(0, 0.005), (0.0002, 0.005), (0.002, 0.006), (0.01, 0.03), (0.02, 0.05), (9, 0.05)]
)
def test_a_slow_disk_is_asked_less_often(commit: float, fill: float):
    assert fill_seconds(commit) == pytest.approx(fill)


async def commits_of(db: SessionDB, writes: int) -> int:
    with count_passes() as passes:
        await asyncio.gather(*(db.write(partial(meta.remember, f"n{n}", n)) for n in range(writes)))
        return passes["before_commit"]


@pytest.mark.parametrize(("fill", "most"), [(0.0, 50), (10.0, 4)])
async def test_a_batch_is_filled_as_long_as_that_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: float, most: int
):
    monkeypatch.setattr(sqlite_worker, "fill_seconds", lambda _: fill)
    async with SessionDB.open(tmp_path / "sessions.db") as db:
        await db.write(partial(meta.remember, "first", 1))  # from its commit on it is known
        commits = await commits_of(db, 50)
    assert commits <= most
    assert fill or commits == most
