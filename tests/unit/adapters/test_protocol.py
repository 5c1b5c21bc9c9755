"""What an adapter does in the background ends with its block, and ends its block if it fails."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from gateway_sessions.adapters import in_background


class Work:
    """Waits until it is told to go on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = False

    async def __call__(self) -> None:
        self.begun.set()
        try:
            await self.go_on.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.ended = True


async def stay(work: Work, *, go_on: bool = False, error: Exception | None = None) -> None:
    async with in_background(work):
        await work.begun.wait()
        if go_on:
            work.go_on.set()
        if error is not None:
            raise error
        await asyncio.Event().wait()


async def test_it_runs_within_the_block_and_nothing_is_left_behind_it():
    work = Work()
    async with in_background(work):
        await work.begun.wait()
        assert not work.ended
    assert work.ended


async def test_work_that_is_done_keeps_the_block_open():
    work = Work()
    work.go_on.set()
    async with in_background(work):
        await work.begun.wait()
        await asyncio.sleep(0)
        assert work.ended


async def test_an_error_ends_the_block_at_once_and_comes_out_as_it_is():
    error = ConnectionError("gone for good")
    with pytest.raises(ConnectionError) as caught:
        await stay(Work(error), go_on=True)
    assert caught.value is error


async def test_an_error_of_the_block_comes_out_as_it_is():
    error, work = LookupError("mine"), Work()
    with pytest.raises(LookupError) as caught:
        await stay(work, error=error)
    assert caught.value is error
    assert work.ended


async def test_whoever_is_cancelled_in_the_block_is_cancelled():
    work = Work()
    staying = asyncio.create_task(stay(work))
    await work.begun.wait()
    staying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await staying
    assert work.ended


async def test_several_can_be_open_at_once():
    first, second = Work(), Work()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(in_background(first))
        await stack.enter_async_context(in_background(second))
        await second.begun.wait()
    assert first.ended
    assert second.ended
