"""Several queries become one that answers in a single row."""

from gateway_sessions.storage.engines.postgresql.transaction import compose_queries
from gateway_sessions.storage.tables.sql_files import Query

FIND = Query("SELECT a FROM t WHERE b = $1 AND c = $2")
PUT = Query("UPDATE t SET a = $2 WHERE b = $1")
ALL = Query("SELECT a FROM t")


def test_what_is_found_is_a_list_of_rows():
    assert compose_queries((ALL,)) == "SELECT ARRAY(SELECT ROW(found.*) FROM (SELECT a FROM t) AS found)"


def test_what_is_changed_is_counted():
    assert compose_queries((PUT,)) == (
        "WITH changed_0 AS (UPDATE t SET a = $2 WHERE b = $1 RETURNING 1) "
        "SELECT (SELECT count(*) FROM changed_0)"
    )


def test_the_values_of_all_stand_one_behind_the_other():
    assert compose_queries((FIND, ALL, PUT, PUT)) == (
        "WITH changed_2 AS (UPDATE t SET a = $4 WHERE b = $3 RETURNING 1), "
        "changed_3 AS (UPDATE t SET a = $6 WHERE b = $5 RETURNING 1) "
        "SELECT ARRAY(SELECT ROW(found.*) FROM (SELECT a FROM t WHERE b = $1 AND c = $2) AS found), "
        "ARRAY(SELECT ROW(found.*) FROM (SELECT a FROM t) AS found), "
        "(SELECT count(*) FROM changed_2), (SELECT count(*) FROM changed_3)"
    )
