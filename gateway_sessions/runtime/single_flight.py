"""Callers who want the same thing at the same time share one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The first caller works, the others wait for its outcome; if it is cancelled, one of them takes over."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Future[T] | None] = {}
        """Work under way; the future is made by the first who waits for it, and mostly nobody does."""

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """The outcome of *work*, or of the same work that is under way already."""
        while key in self._flights:
            flight = await self._landed(key)
            if not flight.cancelled():
                return flight.result()
        self._flights[key] = None
        try:
            outcome = await work()
        except Exception as error:
            if (waited_for := self._flights.pop(key)) is not None:
                waited_for.set_exception(error)
                waited_for.exception()  # the one who waits may be gone, and that is no reason to complain
            raise
        except BaseException:
            if (waited_for := self._flights.pop(key)) is not None:
                waited_for.cancel()
            raise
        if (waited_for := self._flights.pop(key)) is not None:
            waited_for.set_result(outcome)
        return outcome

    async def _landed(self, key: Hashable) -> asyncio.Future[T]:
        """Wait for the work under way, however it ends."""
        flight = self._flights[key] or asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        await asyncio.wait({flight})
        return flight
