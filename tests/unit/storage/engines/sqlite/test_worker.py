"""Batches: what waits while a commit is under way shares the next one."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.engines.sqlite import worker
from gateway_sessions.storage.engines.sqlite.worker import TOLD_AT_ONCE, fill_seconds
from gateway_sessions.storage.tables import meta
from gateway_sessions.testing.faults import count_passes


@pytest.mark.parametrize(
    ("commit", "fill"), [(0, 0.005), (0.0002, 0.005), (0.002, 0.006), (0.01, 0.03), (0.02, 0.05), (9, 0.05)]
)
def test_a_slow_disk_is_asked_less_often(commit: float, fill: float):
    assert fill_seconds(commit) == pytest.approx(fill)


async def commits_of(db: SessionDB, writes: int) -> int:
    with count_passes() as passes:
        await asyncio.gather(*(db.write(partial(meta.set_fact, f"n{n}", n)) for n in range(writes)))
        return passes["before_commit"]


@pytest.mark.parametrize(("fill", "most"), [(0.0, 50), (10.0, 4)])
async def test_a_batch_is_filled_as_long_as_that_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: float, most: int
):
    monkeypatch.setattr(worker, "fill_seconds", lambda _: fill)
    async with SessionDB.open(tmp_path / "sessions.db") as db:
        await db.write(partial(meta.set_fact, "first", 1))  # from its commit on it is known
        commits = await commits_of(db, 50)
    assert commits <= most
    assert fill or commits == most


async def test_the_loop_does_other_things_while_a_large_batch_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whoever is answered has something to do; all of it at once would be a stall."""
    monkeypatch.setattr(worker, "fill_seconds", lambda _: 10.0)
    loop, rounds, answered = asyncio.get_running_loop(), 0, Counter[int]()

    def look_around() -> None:
        nonlocal rounds
        rounds += 1
        loop.call_soon(look_around)

    async def write(number: int) -> int:
        await db.write(partial(meta.set_fact, f"n{number}", number))
        answered[rounds] += 1
        return number

    async with SessionDB.open(tmp_path / "sessions.db") as db:
        await db.write(partial(meta.set_fact, "first", 1))
        with count_passes() as passes:
            waiting = [asyncio.create_task(write(number)) for number in range(100)]
            look_around()
            assert await asyncio.gather(*waiting) == list(range(100))
        assert passes["before_commit"] < 10
    assert max(answered.values()) <= 2 * TOLD_AT_ONCE


def remembering(number: int, tries: Counter[int], *, fails: bool) -> Transaction[int]:
    """Write two things, and fail behind the first one or not."""
    tries[number] += 1
    yield from meta.set_fact(f"a{number}", number)
    if fails:
        raise InvalidInputError(str(number))
    yield from meta.set_fact(f"b{number}", number)
    return number


async def remembered(db: SessionDB, numbers: range) -> dict[str, object]:
    names = [f"{letter}{number}" for number in numbers for letter in "ab"]
    found = {name: await db.read(partial(meta.get_fact, name)) for name in names}
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize("failing", [{0}, {3}, {7}, {1, 2, 6}, set(range(8))])
async def test_a_transaction_that_fails_after_it_wrote_takes_nobody_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: set[int]
):
    monkeypatch.setattr(worker, "fill_seconds", lambda _: 10.0)
    tries = Counter[int]()
    async with SessionDB.open(tmp_path / "sessions.db") as db:
        await db.write(partial(meta.set_fact, "first", 1))
        for first in (0, 8):  # in the second batch each transaction can be undone alone
            numbers = range(first, first + 8)
            transactions = [partial(remembering, n, tries, fails=n - first in failing) for n in numbers]
            answers = await asyncio.gather(*map(db.write, transactions), return_exceptions=True)
            told = [str(one) if isinstance(one, InvalidInputError) else one for one in answers]
            assert told == [str(n) if n - first in failing else n for n in numbers]
            written = {f"{letter}{n}": str(n) for n in numbers if n - first not in failing for letter in "ab"}
            assert await remembered(db, numbers) == written
    assert all(tries[n] == 1 for n in [*failing, *range(8, 16)])
    assert max(tries.values()) <= 2


async def test_a_transaction_that_fails_before_it_wrote_makes_nobody_run_twice(tmp_path: Path):
    tries = Counter[int]()

    def refused() -> Transaction[None]:
        yield from meta.get_fact("first")
        raise InvalidInputError("no")

    async with SessionDB.open(tmp_path / "sessions.db") as db:
        good = [partial(remembering, n, tries, fails=False) for n in range(8)]
        answers = await asyncio.gather(*map(db.write, [*good, refused]), return_exceptions=True)
    assert answers[:8] == list(range(8))
    assert isinstance(answers[8], InvalidInputError)
    assert set(tries.values()) == {1}
