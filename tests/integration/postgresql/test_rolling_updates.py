"""Two versions share a database while one replaces the other; one that is too old for it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest

from gateway_sessions import SessionDB
from gateway_sessions.errors import SchemaTooNewError
from gateway_sessions.storage.drivers import postgresql_schema
from gateway_sessions.storage.queries import Migration, load_migrations
from tests.integration.postgresql.nodes import BRISK, know_memberships

SHIPPED = load_migrations("postgresql")
NEXT = Migration(SHIPPED[-1].version + 1, "next", "ALTER TABLE lanes ADD COLUMN mood text;")


class Next(SessionDB):
    """What the next version will be: the same with one more step of the schema."""

    @classmethod
    def of(cls, dsn: str, home: Path, steps: Sequence[Migration]) -> SessionDB:
        db = SessionDB.open(dsn, home=home, cluster=BRISK)
        db._engine._migrations = steps  # type: ignore[attr-defined]  # noqa: SLF001 -- a version of its own
        return db


async def test_the_version_before_works_on_while_and_after_the_next_one_comes(dsn: str, tmp_path: Path):
    async with SessionDB.open(dsn, home=tmp_path / "old", cluster=BRISK) as old:
        await old.create_session("s", "cli")
        async with Next.of(dsn, tmp_path / "new", (*SHIPPED, NEXT)) as new:
            await know_memberships(old, new)
            for number in range(4):
                await (old if number % 2 else new).append_message("s", "user", str(number))
            assert [one.text for one in await old.get_messages("s")] == ["0", "1", "2", "3"]
        # Another one of the old version may still be started, as when an update is taken back.
        async with SessionDB.open(dsn, home=tmp_path / "back", cluster=BRISK) as back:
            await back.append_message("s", "user", "4")
            assert len(await old.get_messages("s")) == 5


async def test_a_version_that_is_too_old_refuses_and_the_others_go_on(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(postgresql_schema, "READABLE_FROM", NEXT.version)
        async with Next.of(dsn, tmp_path / "new", (*SHIPPED, NEXT)) as new:
            with pytest.raises(SchemaTooNewError):
                await SessionDB.open(dsn, home=tmp_path / "old").__aenter__()
            await new.create_session("s", "cli")
            assert await new.get_session("s") is not None


async def test_a_program_from_before_there_were_nodes_refuses(dsn: str, tmp_path: Path):
    """It would free the turns of all others when it starts."""
    async with SessionDB.open(dsn, home=tmp_path, cluster=BRISK):
        connection = await asyncpg.connect(dsn)
        readable = await connection.fetchval("SELECT value FROM meta WHERE name = 'readable_from'")
        await connection.close()
    assert int(readable) == SHIPPED[-1].version
