"""What is measured on a PostgreSQL server, and what the design promises for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tests.benchmarks.peers.environment import procrastinate_python
from tests.benchmarks.runner import Benchmark, Budget, Contender, Round, figure_of

LANES: Final = 64
IDLE, BACKLOG = 1_000_000, 20_000
OURS, BARE, PEER = "gateway_sessions", "the bare driver", "procrastinate"
CONTENDERS: Final = (
    Contender(name=BARE, program="contenders.bare_queue", task={}),
    Contender(name=OURS, program="contenders.our_queue", task={}),
    Contender(name=PEER, program="peers.procrastinate_queue", task={}, python=procrastinate_python),
)
KINDS: Final = ("enqueue", "turns")
CROWDED, BEHIND = f"{IDLE:,} idle lanes", f"{BACKLOG:,} wait on one lane"


def queue(scale: float) -> Benchmark:
    """Messages are taken in, and each has its turn."""
    each = int(40 * scale)
    usual = {"do": "queue", "lanes": LANES, "each": each}
    crowded = usual | {"idle": int(IDLE * min(1, scale))}
    behind = {"do": "backlog", "waiting": int(BACKLOG * min(1, scale)), "each": each}
    return Benchmark(
        name="queue",
        title=f"messages of {LANES} lanes at once on a PostgreSQL server; {PEER} keeps no transcript",
        contenders=[*_all(usual), *_all(crowded, CROWDED), *_all(behind, BEHIND)],
        budgets=[
            *(_against(other, limit, kind) for kind in KINDS for other, limit in ((BARE, 0.6), (PEER, 1.0))),
            *(_among_idle_lanes(kind) for kind in KINDS),
            *(_behind_others(kind) for kind in KINDS),
        ],
        compared="per second",
    )


def _all(task: Mapping[str, Any], where: str = "") -> Iterator[Contender]:
    """Everybody at the same task; the others are compared with the bare driver."""
    for one in CONTENDERS:
        against = None if one.name == BARE else _named(BARE, where)
        yield replace(one, name=_named(one.name, where), task=task, against=against)


def _named(name: str, where: str) -> str:
    return f"{name}, {where}" if where else name


def _against(other: str, limit: float, kind: str) -> Budget:
    return Budget(
        text=f"{kind} per second from {LANES} lanes, against {other}",
        unit="x",
        limit=limit,
        more_is_better=True,
        measure=_ratio(OURS, other, figure_of(kind, "per second")),
    )


def _among_idle_lanes(kind: str) -> Budget:
    return Budget(
        text=f"{kind} per second with {CROWDED}, against none",
        unit="x",
        limit=0.8,
        more_is_better=True,
        measure=_ratio(_named(OURS, CROWDED), OURS, figure_of(kind, "per second")),
    )


def _behind_others(kind: str) -> Budget:
    figure = figure_of(kind, "slower")
    return Budget(
        text=f"{kind} where {BEHIND}, against an empty one: p50",
        unit="x",
        limit=1.2,
        measure=lambda measured: measured[_named(OURS, BEHIND)][figure],
    )


def _ratio(mine: str, other: str, figure: str) -> Callable[[Round], float]:
    return lambda measured: measured[mine][figure] / measured[other][figure]
