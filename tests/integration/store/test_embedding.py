"""Small things that a program which embeds a store relies on."""

import logging
from pathlib import Path

import pytest

import gateway_sessions
from gateway_sessions import (
    Config,
    InvalidInputError,
    SessionFinalized,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
)
from gateway_sessions.log_lines import UnconfiguredLogging
from gateway_sessions.testing import FakeClock

ANN = SessionSource(platform="telegram", chat_id="1", user_id="1")


async def file_away(_: SessionFinalized) -> None: ...


async def test_a_mapping_names_hooks(tmp_path: Path):
    async with SessionStore.open(tmp_path, hooks={"archive": file_away}) as store:
        assert store.hooks.names == ("archive",)


async def test_a_hook_without_a_name_is_named_after_its_function(tmp_path: Path):
    async with SessionStore.open(tmp_path, hooks=[file_away]) as store:
        assert store.hooks.names == (f"{__name__}.file_away",)


async def test_two_hooks_of_one_name_are_refused(tmp_path: Path):
    async def other(_: SessionFinalized) -> None: ...

    async with SessionStore.open(tmp_path, hooks={"archive": file_away}) as store:
        with pytest.raises(InvalidInputError, match="archive"):
            store.hooks.register(other, name="archive")


async def test_a_flush_writes_a_file_that_somebody_has_deleted(session_store: SessionStore):
    await session_store.get_or_create_session(ANN)
    await session_store.flush()
    file = session_store.home / "sessions.json"
    before = file.read_bytes()
    file.unlink()
    await session_store.flush()
    assert file.read_bytes().partition(b'"_meta"')[0] == before.partition(b'"_meta"')[0]


async def test_a_store_ends_in_order_though_its_snapshot_cannot_be_written(tmp_path: Path):
    async with SessionStore.open(tmp_path) as store:
        entry = await store.get_or_create_session(ANN)
        (tmp_path / "sessions.json").unlink(missing_ok=True)
        (tmp_path / "sessions.json").mkdir()
    (tmp_path / "sessions.json").rmdir()
    async with SessionStore.open(tmp_path) as store:
        assert store.started.clean
        assert await store.get_session(entry.session_key) == entry


async def test_who_is_told_of_a_reset_depends_on_the_sessions_policy(tmp_path: Path, fake_clock: FakeClock):
    config = Config(session_reset=SessionResetPolicy(mode="idle", idle_minutes=60))
    async with SessionStore.open(tmp_path, config, clock=fake_clock) as store:
        first = await store.get_or_create_session(ANN)
        assert not store.should_notify(first)
        await store.update_session(first.session_key, last_prompt_tokens=100)
        await fake_clock.advance(hours=2)
        second = await store.get_or_create_session(ANN)
        assert store.should_notify(second)
        await store.set_reset_policy(second.session_key, SessionResetPolicy(notify=False))
        quiet = await store.get_session(second.session_key)
        assert quiet is not None
        assert not store.should_notify(quiet)


async def test_the_first_start_counts_as_clean(tmp_path: Path):
    async with SessionStore.open(tmp_path) as store:
        assert store.started.clean


async def test_a_start_from_a_file_alone_does_not_count_as_clean(tmp_path: Path):
    async with SessionStore.open(tmp_path) as store:
        await store.get_or_create_session(ANN)
    for file in tmp_path.glob("sessions.db*"):
        file.unlink()
    async with SessionStore.open(tmp_path) as store:
        assert not store.started.clean
        assert await store.has_any_sessions()


async def test_what_a_person_prints_shows_what_was_said(session_store: SessionStore):
    entry = await session_store.get_or_create_session(ANN)
    assert repr(ANN) == "SessionSource(platform='telegram', chat_id='1', user_id='1')"
    assert "thread_id" not in repr(entry)
    assert "session_key='agent:main:telegram:dm:1'" in repr(entry)


def test_warnings_are_printed_until_logging_is_set_up():
    handlers = logging.getLogger(gateway_sessions.__name__).handlers
    assert [type(handler) for handler in handlers] == [UnconfiguredLogging]
