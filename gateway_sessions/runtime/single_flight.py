"""Callers who want the same thing at the same time share one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The first caller works, the others wait for its outcome; if it is cancelled, one of them takes over."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Future[T]] = {}

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The outcome of *work*, or of the same work that is under way already."""
        while (flight := self._flights.get(key)) is not None:
            await asyncio.wait({flight})
            if not flight.cancelled():
                return flight.result()
        mine: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._flights[key] = mine
        try:
            outcome = await work()
        except Exception as error:
            mine.set_exception(error)
            mine.exception()  # nobody may be waiting, and that is no reason to complain
            raise
        else:
            mine.set_result(outcome)
            return outcome
        finally:
            del self._flights[key]
            mine.cancel()  # only if we were cancelled ourselves: no outcome stands yet
