"""The other side of the frame: a process of its own that does one task and prints its figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence

Figures = dict[str, float]


def answer(tasks: Mapping[str, Callable[..., Figures]]) -> None:
    """Do the task named in the first argument, `{"do": name, …}`; the last line of output is its figures."""
    task = json.loads(sys.argv[1])
    figures = tasks[task.pop("do")](**task)
    print(json.dumps(figures))


def latencies(nanoseconds: Sequence[int]) -> Figures:
    """The middle and the slow end of a row of measured operations."""
    ordered = sorted(nanoseconds)
    return {
        name: ordered[int(len(ordered) * share)] / 1e6 for name, share in (("p50 ms", 0.5), ("p99 ms", 0.99))
    }
