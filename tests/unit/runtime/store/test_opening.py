"""Opening: a database in another place, an import that was interrupted, ids that are taken."""

from __future__ import annotations

import json

import pytest

from gateway_sessions import StoreBusyError
from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.config import Durability, SessionDBConfig
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.runtime.context import RandomDigits
from tests.unit.runtime.store_fixtures import all_stored_entries, dm_source, open_store, quick_config


class TestDatabaseElsewhere:
    @pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
    async def test_the_files_for_people_stay_at_home(self, home, tmp_path, clock, form):
        path = tmp_path / "other" / "truth.db"
        config = quick_config(sessiondb=SessionDBConfig(url=form.format(path), durability=Durability.OS))
        async with open_store(home, config, clock) as store:
            entry = await store.get_or_create_session(dm_source())
        assert path.exists()
        assert (home / "sessions.json").exists()
        assert not list(home.glob("*.db"))
        async with open_store(home, config, clock) as store:
            assert store.started.clean
            assert await all_stored_entries(store) == {entry.session_key: entry}

    async def test_both_places_have_one_owner(self, home, tmp_path, clock):
        elsewhere = SessionDBConfig(url=str(tmp_path / "other" / "truth.db"))
        async with open_store(home, quick_config(sessiondb=elsewhere), clock):
            for place, settings in ((home, SessionDBConfig()), (tmp_path / "third", elsewhere)):
                with pytest.raises(StoreBusyError):
                    async with open_store(place, quick_config(sessiondb=settings), clock):
                        pass


class TestInterruptedImport:
    async def test_what_was_taken_in_before_is_not_taken_in_twice(self, home, clock):
        home.mkdir()
        keys = [f"agent:main:telegram:dm:{number:03}" for number in range(450)]
        times = {"created_at": "2026-01-01T00:00:00", "updated_at": "2026-01-01T00:00:00"}
        content = {key: {"session_id": f"s{number % 400}", **times} for number, key in enumerate(keys)}
        (home / "sessions.json").write_text(json.dumps(content))
        passed = iter("ab")

        def fail(name: str) -> None:
            if name == "import_page" and next(passed) == "b":
                raise InterruptedError(4, name)

        arm_failpoints(fail)
        try:
            with pytest.raises(StorageUnavailableError):
                async with open_store(home, clock=clock):
                    pass
        finally:
            arm_failpoints(None)
        async with open_store(home, clock=clock) as store:
            lanes = await all_stored_entries(store)
        assert set(lanes) == set(keys)
        assert len({one.session_id for one in lanes.values()}) == len(keys)


class TestTakenIds:
    async def test_a_session_that_replaces_another_gets_an_id_of_its_own(self, store, monkeypatch):
        suffixes = iter(["aa", "aa", "bb", "aa", "cc"])
        monkeypatch.setattr(RandomDigits, "hex_digits", lambda *_: next(suffixes))
        first = await store.get_or_create_session(dm_source())
        second = await store.get_or_create_session(dm_source(), force_new=True)
        third = await store.reset_session(first.session_key)
        assert [one.session_id[-2:] for one in (first, second, third)] == ["aa", "bb", "cc"]
