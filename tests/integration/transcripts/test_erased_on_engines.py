"""A person is erased from rooms, copies and links alike, whichever engine keeps the truth."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionSource, SessionStore
from gateway_sessions.config import Provider, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.queue.authors import WORD, conversation, everything_in
from gateway_sessions.testing.contract.queue.bench import ALICE
from tests.unit.runtime.store_fixtures import open_store, quick_config

PERSON, NAME, SOMEBODY = "main:telegram:user:alice", "Plugh Canary", 12345
ALIASES = {"99887766": "4915112345", "4915112345": "4915112345"}
COPIES = ("exports/all.jsonl", "quarantine/all.jsonl", "backups/old.db", "sessions.db.v2.bak")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link to another user")


async def goes_by(_: str, user_id: str) -> str:
    return ALIASES.get(user_id, user_id)


async def traces(store: SessionStore, *marks: str) -> set[str]:
    """The marks in every row of every table, and in every byte of every file."""
    files = await asyncio.to_thread(bytes_in, store.home)
    rows = await everything_in(store)
    return {one for one in marks if one.encode() in files or one in rows}


def bytes_in(home: Path) -> bytes:
    return b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file())


def leave(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(WORD)


@pytest.mark.parametrize(
    ("user_id", "user_id_alt"),
    [("4915112345@s.whatsapp.net", "99887766@lid"), ("99887766@lid", None), ("+49 151 12345", None)],
)
async def test_rooms_on_whatsapp_forget_whoever_opened_them_by_any_of_their_ids(
    home: Path, fake_clock: FakeClock, truth: SessionDBConfig, user_id: str, user_id_alt: str | None
):
    def in_room(name: str, user: str, alt: str | None, called: str) -> SessionSource:
        return SessionSource(
            platform="whatsapp",
            chat_type="group",
            chat_id=name,
            user_id=user,
            user_id_alt=alt,
            user_name=called,
        )

    snapshots = SessionsJsonConfig(mode=SnapshotMode.COALESCED, interval=timedelta(seconds=1))
    config = quick_config(group_sessions_per_user=False, sessiondb=truth, sessions_json=snapshots)
    async with open_store(home, config, clock=fake_clock, aliases=goes_by) as store:
        entry = await store.get_or_create_session(in_room("first", user_id, user_id_alt, NAME))
        await store.reset_session(entry.session_key)
        await store.get_or_create_session(in_room("second", user_id, user_id_alt, NAME))
        await store.get_or_create_session(in_room("third", "4989@s.whatsapp.net", None, "Bob"))
        fake_clock.step(timedelta(minutes=1))
        theirs, others = (NAME, "4915112345", "+49 151", "99887766"), {"Bob", "4989@s.whatsapp.net"}
        assert {NAME} < await traces(store, *theirs)
        await store.erase("main:whatsapp:user:4915112345")
        assert await traces(store, *theirs, *others) == others


async def test_copies_in_the_home_go_wherever_the_database_is(
    home: Path, fake_clock: FakeClock, truth: SessionDBConfig
):
    async with open_store(home, quick_config(sessiondb=truth), clock=fake_clock, titler=None) as store:
        await conversation(store)
        for name in COPIES:
            await asyncio.to_thread(leave, home / name)
        await store.db.write_export(home / "exports" / "more.jsonl", scope=Scope.operator())
        fake_clock.step(timedelta(minutes=1))
        receipt = await store.erase(ALICE)
        assert await traces(store, WORD, PERSON) == set()
        gone = {str(home / name) for name in (*COPIES, "exports/more.jsonl")}
        assert gone <= set(receipt.removed)
        assert any("server" in one.what for one in receipt.kept) is (truth.provider != Provider.SQLITE)


@only_root
@pytest.mark.parametrize("name", ["backups", "exports", "quarantine"])
async def test_nothing_is_removed_behind_a_link_of_another_user(
    tmp_path: Path, home: Path, fake_clock: FakeClock, truth: SessionDBConfig, name: str
):
    await asyncio.to_thread(leave, precious := tmp_path / "elsewhere" / "all.jsonl")
    async with open_store(home, quick_config(sessiondb=truth), clock=fake_clock, titler=None) as store:
        await conversation(store)
        (home / name).symlink_to(precious.parent)
        os.lchown(home / name, SOMEBODY, SOMEBODY)
        fake_clock.step(timedelta(minutes=1))
        receipt = await store.erase(ALICE)
        assert precious.exists()
        assert str(home / name) in {one.what for one in receipt.kept}
        assert WORD not in await everything_in(store)
