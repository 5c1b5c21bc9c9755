"""What is measured on a PostgreSQL server, and what the design promises for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.benchmarks.frame import Benchmark, Budget, Contender, Round, figure_of
from tests.benchmarks.peers.environment import procrastinate_python

LANES: Final = 64
IDLE, BACKLOG = 1_000_000, 20_000
OURS, BARE, PEER = "gateway_sessions", "the bare driver", "procrastinate"
CROWDED, BEHIND = f"{OURS}, {IDLE:,} idle lanes", f"{OURS}, {BACKLOG:,} wait on one lane"
KINDS: Final = ("enqueue", "turns")


def queue(scale: float) -> Benchmark:
    """Messages are taken in, and each has its turn."""
    task = {"do": "queue", "lanes": LANES, "each": int(40 * scale)}
    ours = "contenders.our_queue"
    idle, backlog = int(IDLE * min(1, scale)), int(BACKLOG * min(1, scale))
    contenders = [
        Contender(name=BARE, program="contenders.bare_queue", task=task),
        Contender(name=OURS, program=ours, task=task, against=BARE),
        Contender(name=CROWDED, program=ours, task=task | {"idle": idle}, against=BARE),
        Contender(
            name=BEHIND, program=ours, task={"do": "backlog", "waiting": backlog, "each": task["each"]}
        ),
        Contender(
            name=PEER,
            program="peers.procrastinate_queue",
            task=task,
            against=BARE,
            python=procrastinate_python,
        ),
    ]
    budgets = [
        Budget(
            text=f"{kind} per second from {LANES} lanes, against {other}",
            unit="x",
            limit=limit,
            more_is_better=True,
            measure=_ratio(OURS, other, kind),
        )
        for kind in KINDS
        for other, limit in ((BARE, 0.6), (PEER, 1.0))
    ]
    budgets += [
        Budget(
            text=f"{kind} per second with {IDLE:,} idle lanes, against none",
            unit="x",
            limit=0.8,
            more_is_better=True,
            measure=_ratio(CROWDED, OURS, kind),
        )
        for kind in KINDS
    ]
    return Benchmark(
        name="queue",
        title=f"messages of {LANES} lanes at once on a PostgreSQL server; {PEER} keeps no transcript",
        contenders=contenders,
        budgets=budgets,
        compared="per second",
    )


def _ratio(mine: str, other: str, kind: str) -> Callable[[Round], float]:
    figure = figure_of(kind, "per second")
    return lambda measured: measured[mine][figure] / measured[other][figure]
