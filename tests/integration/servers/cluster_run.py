"""A short cluster run; the long one is `python -m tests.cluster`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from gateway_sessions.config import Provider
from tests.cluster.run import Plan, cluster_run
from tests.cluster.server import own_server

SHORT = Plan(nodes=3, lanes=12, seconds=12, mishap_seconds=1.0, ttl=5.0, heartbeat=1.0, turn_seconds=0.05)
LONG = Plan(nodes=4, lanes=64, seconds=180)


class ClusterRun:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    provider: ClassVar[Provider]

    @pytest.mark.timeout(240)
    async def test_nothing_is_lost_doubled_or_reordered_when_nodes_die(self, tmp_path: Path, address: str):
        verdict = await cluster_run(SHORT, address, tmp_path)
        assert verdict.good, (verdict.faults, verdict.figures)
        assert verdict.figures["accepted"] >= SHORT.lanes
        assert verdict.figures["turns that stand"] >= SHORT.lanes
        assert verdict.figures["receipts"]["Duplicate"] > 0
        assert set(verdict.figures["outcomes"]) == {"turned"}

    @pytest.mark.soak
    @pytest.mark.timeout(900)
    async def test_nor_when_the_server_dies_as_well(self, tmp_path: Path):
        async with own_server(self.provider) as server:
            verdict = await cluster_run(LONG, server.address, tmp_path, server)
        assert verdict.good, (verdict.faults, verdict.figures)
        assert verdict.figures["turns taken over"] > 0
        assert verdict.figures["turns that were fenced off"] > 0
