"""`python -m tests.cluster --seconds 180`: the cluster run on a server of its own, with a report."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from gateway_sessions.config import Provider
from tests.cluster.checker import Verdict
from tests.cluster.databases import DATABASES
from tests.cluster.run import Plan, cluster_run
from tests.cluster.server import own_server


async def run(plan: Plan, home: Path, provider: Provider) -> Verdict:
    async with own_server(provider) as server:
        return await cluster_run(plan, server.address, home, server)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    engines = [one.provider.value for one in DATABASES]
    options.add_argument("--engine", choices=engines, default=engines[0])
    options.add_argument("--seconds", type=float, default=180)
    options.add_argument("--nodes", type=int, default=4)
    options.add_argument("--lanes", type=int, default=64)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--ttl", type=float, default=5)
    given = options.parse_args()
    home = Path(tempfile.mkdtemp(prefix="cluster-run-nodes-"))
    plan = Plan(
        nodes=given.nodes,
        lanes=given.lanes,
        seconds=given.seconds,
        seed=given.seed,
        ttl=given.ttl,
        heartbeat=given.ttl / 5,
    )
    verdict = asyncio.run(run(plan, home, Provider(given.engine)))
    for name, value in verdict.figures.items():
        print(f"{name:36} {value}")  # noqa: T201
    for name, found in verdict.faults.items():
        print(f"{name:36} {len(found)} {found[:5] or ''}")  # noqa: T201
    print(f"{'logs and effects':36} {home}")  # noqa: T201
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
