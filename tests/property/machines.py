"""How long machines of models go on, and how long any of their steps may take.

What hangs in a step fails that step, and the steps that led there are printed. A test that hangs elsewhere
is ended by its timeout, or by `tests/watchdog.py`. A failing example is made smaller for a minute at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar
from unittest import TestCase

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine

T = TypeVar("T")

SOAKING = settings.get_current_profile_name() == "soak"
GATE = (60, 40)
"""Examples of the ordinary gate, and their steps."""
SOAK = (500, 80)
GATE_SECONDS = 600
SOAK_SECONDS = 7200
STEP_SECONDS = 60
"""No step takes one second; on a machine that has far more to do it still has to end."""
HEALTH = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


class StepRunner(asyncio.Runner):
    """Runs the steps of a machine; `TimeoutError` if one hangs, in a call to a server for example."""

    def run(self, coro: Coroutine[Any, Any, T], *, context: Context | None = None) -> T:
        return super().run(_in_time(coro), context=context)


async def _in_time(work: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(STEP_SECONDS):
        return await work


def machine_test(
    machine: type[RuleBasedStateMachine],
    *,
    gate: tuple[int, int] = GATE,
    soak: tuple[int, int] = SOAK,
) -> type[TestCase]:
    """The test of a machine: that many examples of so many steps, in the gate and when soaking."""
    examples, steps = soak if SOAKING else gate
    test: type[TestCase] = machine.TestCase
    test.settings = settings(  # type: ignore[attr-defined]  # where hypothesis looks for them
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=HEALTH,
        print_blob=True,
        report_multiple_bugs=False,
    )
    if SOAKING:
        test = pytest.mark.soak(test)
    return pytest.mark.timeout(SOAK_SECONDS if SOAKING else GATE_SECONDS)(test)
