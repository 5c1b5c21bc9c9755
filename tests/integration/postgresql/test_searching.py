"""The search index in the database: it is told of everything, whoever writes it and in whatever order."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from gateway_sessions import Scope, SessionDB
from gateway_sessions.core.search.tokenizer import tokens_of_text
from gateway_sessions.errors import StorageError, StorageUnavailableError
from gateway_sessions.storage.engines.postgresql.locks import lock_number
from gateway_sessions.storage.engines.search_column import TSVECTOR
from gateway_sessions.storage.search import server_index
from gateway_sessions.storage.search.protocol import IndexState
from gateway_sessions.storage.search.server_index import TOO_LONG
from gateway_sessions.storage.tables.sql_files import load_queries
from gateway_sessions.storage.tables.statements import INDEX_LOCK
from tests.postgresql import connected_migrated_database

QUERIES = load_queries("postgresql", "store", "search_column")
EVERYTHING = Scope.operator()
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
IN_THE_WAY = """
    BEGIN; INSERT INTO messages (message_id, session_id, seq, role, sent_at) VALUES (1, 'slow', 1, 'user', 1)
"""
"""Whoever writes the first message of that session waits, and has taken its id by then."""
OF_AN_EARLIER_VERSION = "UPDATE messages SET tokens = NULL"
UNKNOWN = "SELECT count(*) FROM messages WHERE tokens IS NULL"
MANY = """
    INSERT INTO messages (message_id, session_id, seq, role, sent_at, tokens)
    SELECT n, 'many', n, 'user', n, ('''tw' || n % 500 || ''' ''often''')::tsvector
    FROM generate_series(1, 40000) AS n
"""
SIGNS = ("'", "''", '"', "\\", "a'b", "a\\'b", "&|!()<->:*", "'ta':*", "$1", "%s", "a:*b", "--x", "?", "\x00")


@pytest.fixture
async def db(dsn: str, tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with SessionDB.open(dsn, home=tmp_path) as db:
        for name in ("slow", "quick"):
            await db.create_session(name, "cli")
        yield db


@pytest.fixture
async def rival(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


async def found(db: SessionDB, query: str, scope: Scope = EVERYTHING, mode: str = "words") -> list[str]:
    result = await db.search_messages(query, scope=scope, mode=mode)
    assert not result.degraded
    return sorted(hit.session_id for hit in result.hits)


async def test_what_is_committed_late_is_found(db: SessionDB, rival: asyncpg.Connection):
    await rival.execute(IN_THE_WAY)
    late = asyncio.create_task(db.append_message("slow", "user", "walrus one"))
    while not await rival.fetchval(BLOCKED):  # noqa: ASYNC110 -- only the server knows
        await asyncio.sleep(0.01)
    quick = await db.append_message("quick", "user", "walrus two")
    await db.catch_up_search_index()
    assert await found(db, "walrus") == ["quick"]
    await rival.execute("ROLLBACK")
    assert await late < quick
    assert await found(db, "walrus") == ["quick", "slow"]
    await db.catch_up_search_index()
    assert (db.search_index.state, db.search_index.watermark) == (IndexState.READY, quick)


async def test_whoever_writes_tells_the_index(db: SessionDB, rival: asyncpg.Connection):
    async def write(session_id: str) -> None:
        for number in range(5):
            await db.append_message(session_id, "user", f"walrus {number}")

    names = [await db.create_session(f"s{number}", "cli") for number in range(8)]
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(write(name))
    await db.append_message("slow", "tool", "x " * 5_000 + "walrus", tool_name="grep", tool_call_id="c")
    assert await rival.fetchval(UNKNOWN) == 0
    result = await db.search_messages("walrus", scope=EVERYTHING, limit=1000)
    assert (result.matches, result.degraded) == (41, False)
    assert await found(db, "grep") == ["slow"]


async def test_messages_of_an_earlier_version_are_found_at_once_and_told_of(
    db: SessionDB, rival: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await db.append_messages("slow", [{"role": "user", "content": f"walrus {n}"} for n in range(30)])
    monkeypatch.setattr("gateway_sessions.storage.search.server_index.STEP", 7)
    await rival.execute("SELECT pg_advisory_lock($1)", lock_number(INDEX_LOCK))  # the index has to wait
    await rival.execute(OF_AN_EARLIER_VERSION)
    result = await db.search_messages("walrus", scope=EVERYTHING, limit=100)
    assert (result.matches, result.degraded) == (30, False)
    assert (await db.check_search_index()).state is IndexState.BUILDING
    await rival.execute("SELECT pg_advisory_unlock_all()")
    await db.catch_up_search_index()
    assert await rival.fetchval(UNKNOWN) == 0
    result = await db.search_messages("walrus", scope=EVERYTHING, limit=100)
    assert (result.matches, result.degraded) == (30, False)


async def test_an_index_that_is_made_anew_knows_everything_again(db: SessionDB, rival: asyncpg.Connection):
    await db.append_message("slow", "user", "walrus")
    before = await rival.fetchval("SELECT tokens::text FROM messages")
    await db.rebuild_search_index()
    await db.catch_up_search_index()
    assert await rival.fetchval("SELECT tokens::text FROM messages") == before


async def test_tokens_of_another_tokeniser_are_made_anew(dsn: str, tmp_path: Path, rival: asyncpg.Connection):
    for made_by in ("0 1.0", server_index.OURS):
        async with SessionDB.open(dsn, home=tmp_path) as db:
            await db.create_session("s", "cli")
            await db.append_message("s", "user", "walrus")
            await db.catch_up_search_index()
            await rival.execute("UPDATE messages SET tokens = '''tseal'''")
            await rival.execute("UPDATE meta SET value = $1 WHERE name = $2", made_by, server_index.MADE_BY)
        async with SessionDB.open(dsn, home=tmp_path) as db:
            while db.search_index.state is not IndexState.READY:  # noqa: ASYNC110 -- it is nobody's moment
                await asyncio.sleep(0.01)
            assert bool(await found(db, "seal")) is (made_by == server_index.OURS)


async def test_what_is_edited_while_its_tokens_are_made_is_told_of_again(db: SessionDB):
    await db.append_message("slow", "user", "walrus", platform_message_id="1")
    await db.edit_message("slow", "1", "seal")
    work = await db.read(partial(server_index.read_missing_tokens, 10))
    await db.edit_message("slow", "1", "otter")
    await db.write(partial(server_index.write_tokens, work, server_index.token_rows(work, TSVECTOR)))
    for word, there in (("walrus", []), ("seal", []), ("otter", ["slow"])):
        assert await found(db, word) == there
    await db.catch_up_search_index()
    for word, there in (("walrus", []), ("seal", []), ("otter", ["slow"])):
        assert await found(db, word) == there


async def test_nobody_finds_what_others_said(db: SessionDB, rival: asyncpg.Connection):
    for name in ("ann", "bob"):
        await db.create_session(name, "cli", user_id=name)
        await db.append_message(name, "user", f"walrus of {name}")
    ann = Scope(owners=frozenset({"main:cli:user:ann"}))
    await rival.execute("UPDATE messages SET tokens = (SELECT tokens FROM messages WHERE session_id = 'ann')")
    for query in ("walrus", "walrus OR of", "-ann", "w*"):
        assert await found(db, query, ann) == ["ann"]
        assert await found(db, query, ann, "substring") in (["ann"], [])


async def test_what_is_hidden_and_shown_again_needs_no_note(db: SessionDB, rival: asyncpg.Connection):
    await db.append_messages("slow", [{"role": "user", "content": "walrus"}])
    await db.rewind_session("slow")
    assert await found(db, "walrus") == []
    await db.restore_rewound("slow")
    assert await found(db, "walrus") == ["slow"]
    assert await rival.fetchval("SELECT count(*) FROM index_changes") == 0


@pytest.mark.parametrize("mode", ["words", "substring"])
async def test_long_messages_are_found_like_others(db: SessionDB, mode: str):
    long = "one two " * 300 + "three four"
    vast = " ".join(f"word{number}x" for number in range(100_000))
    await db.append_message("slow", "user", long)
    await db.append_message("quick", "user", vast)
    await db.append_message("quick", "user", "four three")
    assert len(tokens_of_text(vast)) == 100_000
    quoted = '"{}"'.format if mode == "words" else str
    assert await found(db, quoted("three four"), mode=mode) == ["slow"]
    assert await found(db, quoted("two three"), mode=mode) == ["slow"]
    assert await found(db, quoted("one three"), mode=mode) == []
    assert await found(db, quoted("word77x word78x"), mode=mode) == ["quick"]
    assert await found(db, quoted("word78x word77x"), mode=mode) == []
    if mode == "words":
        assert await found(db, 'three NOT "two three"') == ["quick"]
        assert await found(db, "word5* -three") == ["quick"]


async def test_nothing_that_is_asked_is_more_than_words(db: SessionDB):
    await db.append_message("slow", "user", "walrus " + " ".join(SIGNS[:-1]))
    for query in SIGNS:
        for mode in ("words", "substring"):
            result = await db.search_messages(query, scope=EVERYTHING, mode=mode)
            assert not result.degraded
    assert await found(db, "walrus") == ["slow"]


@pytest.mark.parametrize("sort", ["best", "newest", "oldest"])
async def test_more_answers_than_are_put_in_order_come_page_by_page(
    db: SessionDB, sort: str, monkeypatch: pytest.MonkeyPatch
):
    texts = [f"walrus {n}" for n in range(20)]
    ids = await db.append_messages("slow", [{"role": "user", "content": text} for text in texts])
    whole = await db.search_messages("walrus", scope=EVERYTHING, sort=sort, limit=100)
    monkeypatch.setattr(server_index, "SOME", 5)
    monkeypatch.setattr(server_index, "PAGE", 3)
    paged = await db.search_messages("walrus", scope=EVERYTHING, sort=sort, limit=100)
    assert paged == whole
    assert sorted(hit.id for hit in paged.hits) == ids
    monkeypatch.setattr("gateway_sessions.storage.search.search.MOST_FOUND", 6)
    some = await db.search_messages("walrus", scope=EVERYTHING, sort=sort, limit=100)
    assert some.degraded
    assert {hit.id for hit in some.hits} == set(ids[:6] if sort == "oldest" else ids[-6:])


async def test_a_reader_searches_and_leaves_the_index_alone(db: SessionDB, dsn: str, tmp_path: Path):
    await db.append_message("slow", "user", "walrus")
    async with SessionDB.open_reader(dsn, home=tmp_path) as reader:
        assert await found(reader, "walrus") == ["slow"]
        await reader.catch_up_search_index()
        assert (await reader.check_search_index()).state is IndexState.READY
        with pytest.raises(StorageError, match="opened for reading"):
            await reader.rebuild_search_index()


async def test_no_file_of_an_index_is_left_on_this_machine(db: SessionDB, tmp_path: Path):
    await db.append_message("slow", "user", "walrus")
    await db.catch_up_search_index()
    assert not list(tmp_path.glob("search.db*"))


async def test_a_word_is_looked_up_and_no_table_is_gone_through():
    async with connected_migrated_database() as connection:
        await connection.execute(MANY)
        await connection.execute("ANALYZE messages")
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        for name in ("some_with_tokens", "without_tokens"):
            await connection.execute(f"PREPARE {name} AS {QUERIES[name].sql}")
        some = await connection.fetch("EXPLAIN EXECUTE some_with_tokens('''tw7'' & ''often''', 10001)")
        plan = "\n".join(row[0] for row in some)
        assert "messages_by_tokens" in plan
        assert "Seq Scan on messages" not in plan
        unknown = await connection.fetch("EXPLAIN EXECUTE without_tokens(9223372036854775807, 500)")
        plan = "\n".join(row[0] for row in unknown)
        assert "messages_without_tokens" in plan
        assert "Seq Scan on messages" not in plan


async def test_what_takes_the_server_too_long_is_looked_for_in_messages(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch
):
    await db.append_message("slow", "user", "walrus")

    async def never(*_: object) -> None:
        raise StorageUnavailableError("PostgreSQL", "QueryCanceledError 57014")

    monkeypatch.setattr("gateway_sessions.storage.search.server_index.search_index_and_rest", never)
    result = await db.search_messages("walrus", scope=EVERYTHING)
    assert (len(result.hits), result.problem) == (1, TOO_LONG)
