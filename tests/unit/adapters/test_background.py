"""What an adapter does in the background ends with its block, and is not lost if it fails."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gateway_sessions.adapters.background import Background


async def test_it_runs_within_the_block_and_nothing_is_left_behind_it():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Background("adapter", work):
        await begun.wait()
        assert not ended.is_set()
    assert ended.is_set()


async def test_work_that_is_done_keeps_the_block_open():
    async def work() -> None:
        pass

    async with Background("adapter", work):
        await asyncio.sleep(0)


async def test_an_error_is_logged_at_once_and_comes_out_at_the_end(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR)
    error = ConnectionError("gone for good")
    logged: list[object] = []

    async def work() -> None:
        raise error

    async def hold() -> None:
        async with Background("adapter", work):
            await asyncio.sleep(0.01)
            logged.extend(getattr(one, "action", None) for one in caplog.records)

    with pytest.raises(ConnectionError) as caught:
        await hold()
    assert caught.value is error
    assert logged == ["adapter_failed"]
