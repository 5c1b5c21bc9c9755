"""An interpreter with nothing loaded but what reports its size: not even asyncio, which a store needs."""

from __future__ import annotations

from tests.benchmarks.child import Figures, answer
from tests.benchmarks.memory import resident_mb


def memory(folder: str) -> Figures:
    """What a process takes that does nothing."""
    assert folder
    return resident_mb()


if __name__ == "__main__":
    answer({"memory": memory})
