"""How many functions a turn calls: a figure of speed that no machine's load changes.

The design allows fewer; these limits keep what is won until then.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.contenders.our_turns import calls

MARGIN = 1.05
"""Batches differ a little with the load of the machine, and some calls belong to a batch."""


@pytest.mark.alone
@pytest.mark.parametrize(
    ("agent", "limits"),
    [("idle", {"Python": 1068, "built-in": 563}), ("working", {"Python": 1634, "built-in": 1054})],
)
def test_a_turn_calls_few_functions(tmp_path: Path, agent: str, limits: dict[str, int]) -> None:
    """All threads are counted, until a search finds the turn by the index."""
    counted = calls(str(tmp_path), agent)
    assert all(count > 0 for count in counted.values())
    assert {kind: counted[kind] for kind in limits if counted[kind] > limits[kind] * MARGIN} == {}
