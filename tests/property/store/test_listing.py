"""Lists against a plain search of the same sessions, over random lineages, owners, filters and pages."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from gateway_sessions import Scope, SessionDB
from gateway_sessions.storage.transactions.sessions import lists
from gateway_sessions.testing import FakeClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNERS, SOURCES, LANES = ("ann", "bob"), ("cli", "chat", "tool"), ("lane:1", "lane:2", None)
SCOPES = (
    Scope.operator(),
    Scope(owners=frozenset({"ann"})),
    Scope(owners=frozenset({"ann", "bob"})),
    Scope.lane("lane:1"),
    Scope(),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What a list can depend on."""

    session_id: str
    owner: str
    session_key: str | None
    source: str
    parent: str | None
    relation: str | None
    started_at: int
    last_active: int
    end_reason: str | None
    archived: int
    message_count: int
    title: str | None

    def visible(self, scope: Scope) -> bool:
        return scope.sees(owner=self.owner, session_key=self.session_key)


def some_sessions(chance: random.Random) -> dict[str, Row]:
    """Sessions that mostly make sense: compressed ones, branches, delegates, orphans, and ties in time."""
    rows: dict[str, Row] = {}
    for n in range(chance.randrange(1, 25)):
        parent = chance.choice([*rows, "gone", None]) if chance.random() < 0.7 else None
        relation = (
            chance.choice(["continuation"] * 3 + ["branch", "delegate", "succession"]) if parent else None
        )
        if relation == "continuation" and any(
            one.parent == parent and one.relation == relation for one in rows.values()
        ):
            relation = "branch"
        if relation == "continuation" and parent in rows and chance.random() < 0.9:
            rows[parent] = replace(rows[parent], end_reason="compression")
        started = n // 2
        rows[f"s{n:02}"] = Row(
            f"s{n:02}",
            chance.choice(OWNERS),
            chance.choice(LANES),
            chance.choice(SOURCES),
            parent,
            relation,
            started,
            started + chance.randrange(4),
            chance.choice([None, "compression", "user_exit"]),
            int(chance.random() < 0.3),
            chance.randrange(4),
            chance.choice([None, f"Trip {n}", f"other {n}"]),
        )
    return rows


def before(row: Row, rows: dict[str, Row]) -> Row | None:
    """What the session continues."""
    parent = rows.get(row.parent or "")
    continues = row.relation == "continuation" and parent is not None and parent.end_reason == "compression"
    return parent if continues else None


def expected(rows: dict[str, Row], scope: Scope, asked: dict[str, object]) -> list[tuple[str, str]]:
    """The ids and roots of the whole list, found by looking at every session."""
    found = []
    for row in rows.values():
        ancestors = []
        while (parent := before(ancestors[-1] if ancestors else row, rows)) is not None:
            ancestors.append(parent)
        followers = [one for one in rows.values() if before(one, rows) == row and one.visible(scope)]
        seen = []
        for one in ancestors:
            if not one.visible(scope):
                break
            seen.append(one)
        if (
            not row.visible(scope)
            or any(one.relation == "delegate" for one in [row, *ancestors])
            or (followers and not asked["include_children"])
            or not wanted(row, asked)
        ):
            continue
        root = row if asked["include_children"] or not seen else seen[-1]
        key = (
            (row.last_active, row.session_id)
            if asked["order_by_last_active"]
            else (root.started_at, root.session_id)
        )
        found.append((key, row.session_id, root.session_id))
    return [(session_id, root) for _, session_id, root in sorted(found, reverse=True)]


def wanted(row: Row, asked: dict[str, object]) -> bool:
    text = asked["search_query"]
    return (
        asked["source"] in (None, row.source)
        and row.source not in asked["exclude_sources"]
        and asked["archived"] in (None, bool(row.archived))
        and row.message_count >= asked["min_message_count"]
        and (text is None or text in f"{row.session_id} {row.source} {row.title or ''}".lower())
    )


def some_question(chance: random.Random) -> dict[str, object]:
    return {
        "include_children": chance.random() < 0.2,
        "order_by_last_active": chance.random() < 0.5,
        "source": chance.choice([None, None, *SOURCES]),
        "exclude_sources": chance.choice([(), ("tool",), ("cli", "tool")]),
        "archived": chance.choice([False, None, True]),
        "min_message_count": chance.choice([0, 0, 2]),
        "search_query": chance.choice([None, None, "trip", "s1", "chat", "none"]),
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def db(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SessionDB]:
    path = tmp_path_factory.mktemp("lists") / "sessions.db"
    async with SessionDB.open(path, clock=FakeClock(), survives_power_cut=False) as database:
        yield database


def store(path: Path, rows: dict[str, Row]) -> None:
    with closing(sqlite3.connect(path, timeout=10)) as database:
        database.execute("DELETE FROM sessions")
        database.execute("DELETE FROM totals")
        for row in rows.values():
            database.execute(
                "INSERT INTO sessions (session_id, owner, session_key, source, parent_session_id, relation,"
                " started_at, end_reason, archived, title) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    row.session_id,
                    row.owner,
                    row.session_key,
                    row.source,
                    row.parent,
                    row.relation,
                    row.started_at,
                    row.end_reason,
                    row.archived,
                    row.title,
                ),
            )
            database.execute(
                "INSERT INTO totals (session_id, last_active, message_count) VALUES (?, ?, ?)",
                (row.session_id, row.last_active, row.message_count),
            )
        database.commit()


@pytest.mark.parametrize("seed", range(25))
async def test_pages_hold_what_looking_at_every_session_finds(db, seed, monkeypatch):
    chance = random.Random(seed)
    rows = some_sessions(chance)
    store(db.path, rows)
    for scope in SCOPES:
        for few in (lists.FEW, 0):
            monkeypatch.setattr(lists, "FEW", few)
            asked, size = some_question(chance), chance.randrange(1, 6)
            found, after = [], None
            while page := await db.list_sessions_rich(scope=scope, limit=size, after=after, **asked):
                found += [(one.session_id, one.lineage_root) for one in page]
                after = page[-1]
            assert found == expected(rows, scope, asked), (scope, few, asked)
