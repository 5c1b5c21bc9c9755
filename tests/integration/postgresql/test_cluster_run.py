"""A short cluster run; the long one is `python -m tests.cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.run import Plan, cluster_run
from tests.cluster.server import own_server, programs_of_server

SHORT = Plan(nodes=3, lanes=12, seconds=12, mishap_seconds=1.0, ttl=5.0, heartbeat=1.0, turn_seconds=0.05)
LONG = Plan(nodes=4, lanes=64, seconds=180)


@pytest.mark.timeout(240)
async def test_nothing_is_lost_doubled_or_reordered_when_nodes_die(tmp_path: Path, dsn: str):
    verdict = await cluster_run(SHORT, dsn, tmp_path)
    assert (verdict.lost, verdict.doubled, verdict.reordered) == ([], [], []), verdict.figures
    assert verdict.figures["accepted"] >= SHORT.lanes
    assert verdict.figures["receipts"]["Duplicate"] > 0
    assert set(verdict.figures["outcomes"]) == {"turned"}


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_nor_when_the_server_dies_as_well(tmp_path: Path):
    assert programs_of_server() is not None
    async with own_server() as server:
        verdict = await cluster_run(LONG, server.address, tmp_path, server)
    assert (verdict.lost, verdict.doubled, verdict.reordered) == ([], [], []), verdict.figures
    assert verdict.figures["turns taken over"] > 0
