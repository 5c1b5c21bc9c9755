"""Lineages of any length are followed, and whatever the table holds is survived."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_hundreds_of_compressions_are_followed(db):
    many(db, [(f"s{n:04}", f"s{n - 1:04}" if n else None) for n in range(1_500)])
    assert await db.get_compression_tip("s0000") == "s1499"
    assert await db.get_conversation_root("s1499") == "s0000"
    assert len(await db.get_compression_lineage("s0700")) == 1_500


async def test_damage_is_survived(db):
    many(db, [("a", "b"), ("b", "a"), ("c", "c"), ("d", "gone"), ("e", "d")])
    for one, line in {"a": ["a", "b"], "b": ["a", "b"], "c": ["c"], "d": ["d", "e"]}.items():
        assert await db.get_compression_lineage(one) == line
        assert await db.get_conversation_root(one) == line[0]
        assert await db.get_session_family(one) == line
        assert await db.resolve_resume_session_id(one) == one


def many(db, rows) -> None:
    """Compressed sessions and what they say they continue, whether that makes sense or not."""
    with closing(sqlite3.connect(db.path)) as database:
        database.executemany(
            "INSERT INTO sessions"
            " (session_id, parent_session_id, owner, source, relation, started_at, end_reason)"
            " VALUES (?, ?, 'main:cli:user:alice', 'cli', 'continuation', 1, 'compression')",
            rows,
        )
        database.commit()
