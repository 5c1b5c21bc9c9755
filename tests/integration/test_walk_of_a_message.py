"""How many modules a message visits: the figures stand in ARCHITECTURE.md, and are measured here again."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from tests.integration.walk_of_a_message import Walk, walk_of_a_warm_message

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"
TURNINGS = 25
MODULES = 60
WALKS = 3
"""Of so many walks the shortest counts: on a busy machine, a heartbeat may fall into one."""
FIGURES = re.compile(r"^\| (modules|functions|calls into a layer above) \| (\d+) \|", re.MULTILINE)


@pytest.fixture
async def walk(tmp_path: Path) -> Walk:
    walks = [await walk_of_a_warm_message(tmp_path / f"home {number}") for number in range(WALKS)]
    return min(walks, key=lambda walk: len(walk.modules))


async def test_the_thread_of_the_database_calls_nothing_of_the_runtime(walk: Walk) -> None:
    elsewhere = walk.elsewhere(threading.get_ident())
    assert elsewhere, "the transactions of a message run in another thread"
    assert [call for call in elsewhere if call.module.startswith("runtime")] == []


async def test_a_message_seldom_turns_back_into_a_layer_above(walk: Walk) -> None:
    assert len(walk.turnings) <= TURNINGS


async def test_a_message_visits_few_modules(walk: Walk) -> None:
    assert len(walk.modules) <= MODULES


async def test_the_figures_on_the_page_are_those_of_a_walk(walk: Walk) -> None:
    figures = {name: int(count) for name, count in FIGURES.findall(PAGE.read_text("utf-8"))}
    measured = {
        "modules": len(walk.modules),
        "functions": len(walk.functions),
        "calls into a layer above": len(walk.turnings),
    }
    assert measured == pytest.approx(figures, rel=0.04)
