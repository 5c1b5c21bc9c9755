"""Who asks first is served first, unless nobody could tell."""

import asyncio

import pytest

from gateway_sessions.storage.engines.server.ordering import LockOrder


class Line:
    """People who want things, and who has been served."""

    def __init__(self) -> None:
        self.order = LockOrder()
        self.served: list[str] = []
        self.doors: dict[str, asyncio.Event] = {}

    async def want(self, name: str, lock: str | None) -> None:
        self.doors[name] = asyncio.Event()
        async with self.order.wait_for_turn(lock):
            self.served.append(name)
            await self.doors[name].wait()

    async def join(self, name: str, lock: str | None) -> asyncio.Task[None]:
        task = asyncio.create_task(self.want(name, lock))
        await asyncio.sleep(0)
        return task

    async def leave(self, *names: str) -> None:
        for name in names:
            self.doors[name].set()
        for _ in range(5):
            await asyncio.sleep(0)


async def test_the_same_is_wanted_in_turn():
    line = Line()
    for name in "abc":
        await line.join(name, "x")
    assert line.served == ["a"]
    await line.leave("a")
    assert line.served == ["a", "b"]
    await line.leave("b", "c")
    assert line.served == ["a", "b", "c"]


async def test_who_wants_something_else_does_not_wait():
    line = Line()
    await line.join("a", "x")
    await line.join("b", "y")
    assert line.served == ["a", "b"]
    await line.leave("a", "b")


async def test_who_wants_all_waits_for_all_before_and_keeps_all_behind_waiting():
    line = Line()
    await line.join("a", "x")
    await line.join("b", "y")
    await line.join("all", None)
    await line.join("c", "x")
    await line.join("d", "z")
    await line.leave("a")
    assert line.served == ["a", "b"]
    await line.leave("b")
    assert line.served == ["a", "b", "all"]
    await line.leave("all")
    assert line.served == ["a", "b", "all", "c", "d"]
    await line.leave("c", "d")


@pytest.mark.parametrize("lock", ["x", None])
async def test_who_goes_away_lets_nobody_overtake(lock: str | None):
    line = Line()
    await line.join("a", "x")
    gone = await line.join("b", lock)
    await line.join("c", "x")
    gone.cancel()
    await asyncio.wait({gone})
    assert line.served == ["a"]
    await line.leave("a")
    assert line.served == ["a", "c"]
    await line.leave("c")


async def test_nothing_is_left_of_a_line():
    line = Line()
    for name, lock in (("a", "x"), ("b", "x"), ("all", None), ("c", "y")):
        await line.join(name, lock)
    for name in ("a", "b", "all", "c"):
        await line.leave(name)
    await line.join("d", "z")
    gone = await line.join("e", "z")
    gone.cancel()
    await line.leave("d")
    assert not line.order._last  # noqa: SLF001 -- what would grow
