"""Locks by name become rows of a table."""

from gateway_sessions.storage.engines.mysql import connection
from gateway_sessions.storage.engines.mysql.connection import (
    KINDS,
    OF_EACH_KIND,
    STORE,
    first_lock_queries,
    living_node_query,
    lock_row_of,
)
from gateway_sessions.storage.tables import statements


def numbers(kind: int) -> range:
    return range(1 + kind * OF_EACH_KIND, 1 + (kind + 1) * OF_EACH_KIND)


def test_kinds_never_meet_in_a_row():
    for name in map(str, range(3000)):
        assert lock_row_of(statements.lane_lock(name)) in numbers(KINDS.index("lane"))
        assert lock_row_of(statements.session_lock(name)) in numbers(KINDS.index("session"))
    assert lock_row_of(statements.reply_lock(1)) in numbers(KINDS.index("reply"))


def test_every_name_has_a_row():
    names = (statements.signals_lock(7), statements.INDEX_LOCK)
    assert all(lock_row_of(name) in numbers(KINDS.index("index")) for name in names)


def test_every_row_is_used():
    used = {lock_row_of(statements.lane_lock(str(number))) for number in range(20 * OF_EACH_KIND)}
    assert used == set(numbers(0))


def test_a_name_always_means_the_same_row():
    assert lock_row_of("lane agent:main:telegram:dm:1") == 516
    assert lock_row_of("lane \ud800") in numbers(0)


def test_who_names_no_lock_has_the_store_alone():
    (alone,) = first_lock_queries(None)
    assert alone.endswith(f"lock_id = {STORE} FOR UPDATE")
    shared, own = first_lock_queries("lane a")
    assert shared.endswith(f"lock_id = {STORE} {connection.SHARED}")
    assert own.endswith(f"lock_id = {lock_row_of('lane a')} FOR UPDATE")


def test_a_node_asks_whether_it_was_declared_dead():
    assert living_node_query(7).endswith("FROM nodes WHERE epoch = 7")
