"""No more is read than is asked for, whatever a planner thinks of tables in which most rows are alike."""

from collections.abc import AsyncIterator

import pytest

from gateway_sessions.storage.engines.mysql.connection import MySQLConnection
from gateway_sessions.storage.tables.sql_files import load_queries
from tests.mysql import migrated_database_at, open_connection

QUERIES = load_queries("mysql", "store", "search_column")
MANY = 2000
NUMBERS = """
    WITH RECURSIVE digits (digit) AS (SELECT 0 UNION ALL SELECT digit + 1 FROM digits WHERE digit < 9)
    SELECT a.digit * 1000 + b.digit * 100 + c.digit * 10 + d.digit + 1 AS number
    FROM digits AS a, digits AS b, digits AS c, digits AS d WHERE a.digit < 2
"""
FILLING = f"""
    INSERT INTO sessions (session_id, owner, source, started_at)
        SELECT concat('s', number), 'o', 'cli', number FROM ({NUMBERS}) AS numbers;
    INSERT INTO totals (session_id, last_active) SELECT session_id, started_at FROM sessions;
    INSERT INTO messages (message_id, session_id, seq, role, content, sent_at)
        SELECT number, 's1', number, 'user', 'walrus', number FROM ({NUMBERS}) AS numbers;
    INSERT INTO index_changes (change_id, message_id) SELECT message_id, message_id FROM messages;
    ANALYZE TABLE sessions, totals, messages, index_changes
"""  # noqa: S608 -- ours
READ = "SHOW SESSION STATUS LIKE 'Handler_read%'"
SORTED = "SHOW SESSION STATUS LIKE 'Sort_rows'"


@pytest.fixture
async def link() -> AsyncIterator[MySQLConnection]:
    async with migrated_database_at() as address, open_connection(address) as link:
        await link.run_texts(FILLING)
        yield link


async def sum_of(link: MySQLConnection, counters: str) -> int:
    return sum(int(row[1]) for row in await link.fetch(counters))


@pytest.mark.parametrize(
    ("name", "values", "most"),
    [
        ("few_of_owners", ('["o", "nobody"]', 5, "lane", 5), 50),
        ("few_of_owners", ('["nobody"]', 5, "lane", 5), 50),
        ("sessions_to_prune", (0, "", None, None, None, None, 1, 0, 1, 10), 200),
        ("descendants", ("s5",), 50),
        ("ancestors", ("s5",), 50),
        ("continuations", ("s5", "s5"), 100),
        ("said_around", (50, 50, "[1000]"), 6 * MANY),
        ("forget_notes", ("[1, 2, 3, 4, 5]",), 100),
    ],
)
async def test_only_what_is_asked_for_is_read(
    link: MySQLConnection, name: str, values: tuple[object, ...], most: int
):
    query = QUERIES[name]
    for _ in range(2):  # the tables are opened, and it is known what counting costs
        before, sorted_before = await sum_of(link, READ), await sum_of(link, SORTED)
        overhead = await sum_of(link, READ) - before
        before += overhead
        await link.run_texts("START TRANSACTION")
        await (link.fetch(query.sql, values) if query.reads else link.change(query.sql, [values]))
        await link.run_texts("ROLLBACK")
        read = await sum_of(link, READ) - before - overhead
        assert await sum_of(link, SORTED) - sorted_before <= 10
    assert read <= most
