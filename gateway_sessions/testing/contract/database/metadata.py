"""Contract tests of the facts that a program keeps by name."""

from __future__ import annotations

import pytest

from gateway_sessions import InvalidInputError, SessionDB
from gateway_sessions.testing.contract.database.bench import DatabaseContract, OpenDB


class MetadataContract(DatabaseContract):
    """Tests that a fact is found again under its name."""

    async def test_a_fact_is_kept_until_it_is_forgotten(self, db: SessionDB) -> None:
        assert await db.get_meta("last_auto_prune") is None
        await db.set_meta("last_auto_prune", "1760000000.5")
        assert await db.get_meta("last_auto_prune") == "1760000000.5"
        await db.set_meta("last_auto_prune", "")
        assert await db.get_meta("last_auto_prune") == ""
        await db.set_meta("last_auto_prune", None)
        await db.set_meta("last_auto_prune", None)
        assert await db.get_meta("last_auto_prune") is None

    async def test_a_fact_outlives_the_process(self, open_db: OpenDB) -> None:
        async with open_db() as db:
            await db.set_meta("Größe", "viel: 多")
        async with open_db() as db:
            assert await db.get_meta("Größe") == "viel: 多"

    async def test_names_are_told_apart_to_the_letter(self, db: SessionDB) -> None:
        names = ("a", "A", "a ", "ä")
        for name in names:
            await db.set_meta(name, f"of {name}")
        assert [await db.get_meta(name) for name in names] == [f"of {name}" for name in names]

    @pytest.mark.parametrize("name", ["epoch", "install_secret", "schema_version", "generation"])
    async def test_no_fact_of_the_store_itself_is_seen_or_changed(self, open_db: OpenDB, name: str) -> None:
        async with open_db() as db:
            assert await db.get_meta(name) is None
            await db.set_meta(name, "mine")
            opening = db.ownership.opening
        async with open_db() as db:
            assert await db.get_meta(name) == "mine"
            assert db.ownership.opening.epoch == opening.epoch + 1
            assert db.ownership.opening.install_secret == opening.install_secret

    @pytest.mark.parametrize("key", ["", "two\nlines", "x" * 257, 7, None])
    async def test_a_name_is_one_short_line(self, db: SessionDB, key: object) -> None:
        with pytest.raises(InvalidInputError, match="key"):
            await db.set_meta(key, "x")  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="key"):
            await db.get_meta(key)  # type: ignore[arg-type]

    async def test_a_fact_is_text(self, db: SessionDB) -> None:
        with pytest.raises(InvalidInputError, match="value"):
            await db.set_meta("name", 7)  # type: ignore[arg-type]
