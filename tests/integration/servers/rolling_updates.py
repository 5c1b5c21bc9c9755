"""Two versions share a database while one replaces the other; one that is too old for it refuses.

There is no release yet before this one. So both are the code of today, and the "next version" is the same
with one more step of the schema, which adds a column that nobody uses. That shows how versions of the schema
are told apart, and that statements name their columns. It does not show how two releases get along that
decide differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.errors import SchemaTooNewError
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.sql_files import Migration
from tests.integration.servers.nodes import BRISK, wait_until_memberships_meet

WITH_NODES = 5
"""The first version of the schema that lets several processes be."""


class NextVersion(SessionDB):
    """What the next version will be: the same with one more step of the schema."""

    @classmethod
    def of(cls, address: str, home: Path, steps: Sequence[Migration]) -> SessionDB:
        db = SessionDB.open(address, home=home, cluster=BRISK)
        db._engine._migrations = steps  # type: ignore[attr-defined]  # noqa: SLF001 -- a version of its own
        return db


class RollingUpdates:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    schema: ClassVar[ModuleType]
    """What brings its databases up to date."""
    shipped: ClassVar[tuple[Migration, ...]]

    @property
    def step(self) -> Migration:
        """What the next version does to the schema."""
        return Migration(self.shipped[-1].version + 1, "next", "ALTER TABLE lanes ADD COLUMN mood text;")

    async def test_the_version_before_works_on_while_and_after_the_next_one_comes(
        self, address: str, tmp_path: Path
    ):
        async with SessionDB.open(address, home=tmp_path / "old", cluster=BRISK) as old:
            await old.create_session("s", "cli")
            async with NextVersion.of(address, tmp_path / "new", (*self.shipped, self.step)) as new:
                await wait_until_memberships_meet(old, new)
                for number in range(4):
                    await (old if number % 2 else new).append_message("s", "user", str(number))
                assert [one.text for one in await old.get_messages("s")] == ["0", "1", "2", "3"]
            # Another one of the old version may still be started, as when an update is taken back.
            async with SessionDB.open(address, home=tmp_path / "back", cluster=BRISK) as back:
                await back.append_message("s", "user", "4")
                assert len(await old.get_messages("s")) == 5

    async def test_a_version_that_is_too_old_refuses_and_the_others_go_on(
        self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        with monkeypatch.context() as patch:
            patch.setattr(self.schema, "READABLE_FROM", self.step.version)
            async with NextVersion.of(address, tmp_path / "new", (*self.shipped, self.step)) as new:
                with pytest.raises(SchemaTooNewError):
                    await SessionDB.open(address, home=tmp_path / "old").__aenter__()
                await new.create_session("s", "cli")
                assert await new.get_session("s") is not None

    async def test_a_program_from_before_there_were_nodes_refuses(self, address: str, tmp_path: Path):
        """It would free the turns of all others when it starts."""
        async with SessionDB.open(address, home=tmp_path, cluster=BRISK) as db:
            assert await db.read(lambda: meta.get_number("readable_from")) == WITH_NODES
