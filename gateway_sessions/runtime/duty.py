"""The loop of a duty: it runs a sweep, rests, and sweeps again until the store stops."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TypeVar

from gateway_sessions.errors import GatewaySessionsError, StorageError, StoreStoppedError
from gateway_sessions.ports import Agenda, Clock, SkippingClock

T = TypeVar("T")


async def repeat_sweep(
    sweep: Callable[[], Awaitable[T]],
    rest: Callable[[T], Awaitable[object]],
    *,
    failed: Callable[[GatewaySessionsError], T] | None = None,
    passing: tuple[type[GatewaySessionsError], ...] = (StorageError,),
) -> None:
    """Run *sweep* again and again until cancelled; a store that has stopped ends it in silence.

    Between two sweeps stands *rest*. It is given what the sweep returned, or what *failed* returned for an
    error that is *passing*. Without *failed*, every error ends the duty.
    """
    while True:
        try:
            outcome = await sweep()
        except StoreStoppedError:
            return
        except passing as error:
            if failed is None:
                raise
            outcome = failed(error)
        await rest(outcome)


async def repeat_each_period(
    sweep: Callable[[], Awaitable[object]],
    clock: Clock,
    period: timedelta,
    agenda: Agenda,
    *,
    failed: Callable[[GatewaySessionsError], None],
) -> None:
    """Run *sweep* once a period, beginning now; what fails is tried again in the next one."""

    async def rest(_: object) -> None:
        await wait_for_next_pass(clock, period, agenda)

    await repeat_sweep(sweep, rest, failed=failed)


def failure_reporter(
    logger: logging.Logger, problem: str, facts: Mapping[str, object], level: int = logging.ERROR
) -> Callable[[GatewaySessionsError], None]:
    """Return what writes a failed sweep to the log, as *problem* with these *facts*."""

    def report(error: GatewaySessionsError) -> None:
        logger.log(level, problem, exc_info=error, extra=facts)

    return report


async def wait_for_next_pass(clock: Clock, period: timedelta, agenda: Agenda) -> None:
    """Wait one period. A machine always looks again; a skipping clock passes over periods without work."""
    if isinstance(clock, SkippingClock):
        try:
            await clock.skip_idle_periods(period, agenda)
        except (StorageError, StoreStoppedError):
            pass  # nobody knows what is due: the pass itself finds out, and tells of what fails
        else:
            return
    await clock.sleep(period.total_seconds())
