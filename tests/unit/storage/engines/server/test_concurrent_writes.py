"""Transactions side by side: what they ask alike is asked at once, and each gets its own answer."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway_sessions.ports import Row, Statement, Transaction, together
from gateway_sessions.storage.engines.postgresql.transaction import compose_queries
from gateway_sessions.storage.engines.search_column import TSVECTOR
from gateway_sessions.storage.engines.server.batching import ParallelTransaction, run_side_by_side
from gateway_sessions.storage.engines.server.executor import BegunTransaction, TransactionRun
from gateway_sessions.storage.tables.sql_files import Query

QUERIES = {
    "find": Query("SELECT a FROM t WHERE b = $1"),
    "put": Query("UPDATE t SET a = $1", changes_snapshot=True),
}


class Server:
    """Says what it was asked."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Any]] = []

    async def fetch(self, sql: str, params: Sequence[object]) -> Sequence[Row]:
        self.said.append(("fetch", list(params)))
        return [(f"found {params[0]}",)]

    async def fetch_each(self, sql: str, params: Sequence[Sequence[object]]) -> Sequence[Row]:
        self.said.append(("fetch each", [list(one) for one in params]))
        columns = sql.count("ARRAY") + sql.count("(SELECT count")
        return [([(f"found {one[0]}",)] if "ARRAY" in sql else 1,) * columns for one in params]

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        self.said.append(("change", [list(one) for one in rows]))
        return len(rows)

    async def take_lock(self, lock: str) -> None:
        raise NotImplementedError

    async def take_locks(self, locks: Sequence[str]) -> None:
        self.said.append(("take", list(locks)))


def walkers(server: Server, *transactions: Transaction[Any]) -> list[ParallelTransaction]:
    held = {"mine"}
    return [
        ParallelTransaction(
            TransactionRun(server, QUERIES, TSVECTOR, held, compose=compose_queries), BegunTransaction(one)
        )
        for one in transactions
    ]


def find(what: str, lock: str | None = None) -> Transaction[object]:
    return (yield Statement("find", (what,), lock=lock))


def put_many(*rows: int) -> Transaction[object]:
    return (yield Statement("put", many=[(one,) for one in rows]))


def at_once() -> Transaction[None]:
    return None
    yield


async def test_what_is_alike_is_asked_at_once_and_the_rest_apart():
    server = Server()
    some = walkers(server, find("a"), find("b"), put_many(1), at_once())
    await run_side_by_side(server, some)
    assert [one.result for one in some] == [[("found a",)], [("found b",)], [(1,)], None]
    assert server.said == [("fetch each", [["a"], ["b"]]), ("change", [[1]])]


async def test_rows_of_several_are_changed_at_once_and_counted_for_each():
    server = Server()
    some = walkers(server, put_many(1, 2), put_many(3))
    await run_side_by_side(server, some)
    assert [one.result for one in some] == [[(2,)], [(1,)]]
    assert server.said == [("change", [[1], [2], [3]])]
    assert all(one.run.may_have_written and one.run.changed_snapshot for one in some)


async def test_a_lock_that_one_of_them_has_is_everybodys():
    server = Server()
    some = [find("a", "mine"), find("b", "other"), find("c", "third"), find("d", "other")]
    await run_side_by_side(server, walkers(server, *some))
    assert server.said[0] == ("take", ["other", "third"])
    assert [kind for kind, _ in server.said] == ["take", "fetch each"]


async def test_who_fails_before_a_change_fails_alone_and_behind_one_takes_all_along():
    def fail(*, later: bool) -> Transaction[None]:
        if later:
            yield Statement("put", (1,))
        yield Statement("find", ("x",))
        raise LookupError

    server = Server()
    some = walkers(server, fail(later=False), find("b"))
    await run_side_by_side(server, some)
    assert isinstance(some[0].error, LookupError)
    assert some[1].result == [("found b",)]
    with pytest.raises(LookupError):
        await run_side_by_side(server, walkers(server, fail(later=True), find("b")))


async def test_several_things_at_once_are_answered_in_their_order():
    def both() -> Transaction[object]:
        return (yield together(Statement("find", ("a",)), Statement("find", ("b",))))

    server = Server()
    some = walkers(server, both(), both())
    await run_side_by_side(server, some)
    assert [one.result for one in some] == [[(("found a",),)] * 2] * 2
    assert server.said == [("fetch each", [["a", "b"], ["a", "b"]])]
