"""How an operator is told of connections that hold what others wait for."""

from gateway_sessions.storage.engines.server.blockers import Blocker, describe_blockers


def test_all_that_is_known_is_told():
    first = Blocker(
        connection=7,
        where="psql at 10.0.0.5",
        seconds=3.6,
        idle=True,
        holds=("the lock of the store", "table meta"),
    )
    second = Blocker(connection=8, where="gateway at 10.0.0.6", seconds=0.2, idle=False)
    assert describe_blockers([first, second]) == (
        "connection 7 (psql at 10.0.0.5) holds the lock of the store, table meta in a transaction that has "
        "lasted 4 s and does nothing now; connection 8 (gateway at 10.0.0.6) holds locks in a transaction "
        "that has lasted 0 s"
    )


def test_a_login_that_may_not_know_more_is_told_the_number():
    assert (
        describe_blockers([Blocker(connection=7, where=None, seconds=None, idle=False)])
        == "connection 7 holds locks"
    )


def test_nobody_is_nothing():
    assert describe_blockers([]) == ""
