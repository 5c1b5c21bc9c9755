"""Whatever is wrong with what a caller gives is told by a typed error, and nothing is written."""

from __future__ import annotations

import contextlib

import pytest

from gateway_sessions import InvalidInputError, SessionSource
from gateway_sessions.errors import InvalidSourceError
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    EVERYTHING,
    all_stored_entries,
    dm_source,
    group_source,
    stored_entry,
)

LANE = "agent:main:telegram:dm:1"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"chat_id": "a\nb"}, "chat_id"), ({"chat_id": "\x00"}, "chat_id"), ({"chat_id": 7}, "chat_id"),
        ({"thread_id": "../../etc"}, "thread_id"), ({"chat_id": "x" * 10_000}, "chat_id"),
        ({"chat_type": "dm\x1b"}, "chat_type"), ({"platform": "tele\ngram"}, "platform"),
        ({"platform": ""}, "platform"), ({"platform": None}, "platform"), ({"user_id": 7.5}, "user_id"),
        ({"user_id": "\ud800"}, "user_id"), ({"user_name": b"Alice"}, "user_name"),
        ({"is_bot": "yes"}, "is_bot"), ({"guild_id": ["g"]}, "guild_id"),
        ({"chat_id": "", "user_id": "", "thread_id": ""}, "chat_id"),
    ],
)  # fmt: skip
async def test_a_source_that_cannot_be_one_is_refused_by_name(store, home, members, field):
    with pytest.raises(InvalidSourceError) as caught:
        await store.get_or_create_session(SessionSource(**{"platform": "telegram", "chat_id": "1"} | members))
    assert caught.value.field == field
    assert await all_stored_entries(store) == {}
    assert execute_sql(home / "sessions.db", "SELECT * FROM sessions") == []


NAMES = [
    "",
    "\x00",
    "\ud800",
    "a\nb",
    "x" * 10_000,
    "../../etc",
    "\u202eevil",
    '"}]',
    "agent:main:telegram:dm:2",
]


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_only_data(store, name):
    for source in (
        dm_source(chat_name=name, user_name=name, chat_topic=name),
        group_source(chat_name=name, user_name=name),
    ):
        entry = await store.get_or_create_session(source)
        assert await stored_entry(store, entry.session_key) == entry
    await store.flush()


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_given_at_a_reset_is_only_data_too(store, name):
    await store.get_or_create_session(dm_source())
    entry = await store.reset_session(LANE, display_name=name)
    assert await stored_entry(store, LANE) == entry
    await store.flush()


@pytest.mark.parametrize("name", [5, b"x", ["x"]])
async def test_a_name_that_is_not_text_is_refused(store, name):
    entry = await store.get_or_create_session(dm_source())
    with pytest.raises(InvalidInputError, match="display_name"):
        await store.reset_session(LANE, display_name=name)
    assert await stored_entry(store, LANE) == entry


@pytest.mark.parametrize("tokens", [-1, 2**63, 2**70, "many", 1.5, True])
async def test_what_is_no_number_of_tokens_is_refused(store, tokens):
    entry = await store.get_or_create_session(dm_source())
    with pytest.raises(InvalidInputError, match="last_prompt_tokens"):
        await store.update_session(LANE, last_prompt_tokens=tokens)
    assert await stored_entry(store, LANE) == entry


@pytest.mark.parametrize("reason", ["\ud800", "a\nb", "", "x" * 10_000, 5, None])
@pytest.mark.parametrize("call", ["suspend_session", "mark_resume_pending"])
async def test_a_reason_is_one_short_line(store, call, reason):
    entry = await store.get_or_create_session(dm_source())
    with pytest.raises(InvalidInputError, match="reason"):
        await getattr(store, call)(LANE, reason)
    assert await stored_entry(store, LANE) == entry


@pytest.mark.parametrize("key", ["\ud800", "", "x" * 100_000, "'; DROP TABLE entries; --", "%", "a\x00b"])
async def test_a_key_of_no_lane_finds_nothing_or_is_refused(store, key):
    await store.get_or_create_session(dm_source())
    before = await all_stored_entries(store)
    calls = (
        lambda: store.get_session(key),
        lambda: store.update_session(key, 5),
        lambda: store.reset_session(key),
        lambda: store.undo_reset(key),
        lambda: store.suspend_session(key),
        lambda: store.mark_resume_pending(key),
        lambda: store.clear_resume_pending(key),
        lambda: store.set_zone(key, "UTC"),
        lambda: store.switch_session(key, "s", scope=EVERYTHING, move=True),
    )
    for call in calls:
        with contextlib.suppress(InvalidInputError):
            assert not await call()
    assert await all_stored_entries(store) == before


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), 1e300, -1e300])
async def test_an_amount_of_time_beyond_the_calendar_is_refused(store, amount):
    await store.get_or_create_session(dm_source())
    calls = [
        lambda: store.list_sessions(amount, scope=EVERYTHING),
        lambda: store.suspend_recently_active(amount),
    ]
    if not amount < 0:
        calls.append(lambda: store.prune_old_entries(amount))
    before = await all_stored_entries(store)
    for call in calls:
        with pytest.raises(InvalidInputError):
            await call()
    assert await all_stored_entries(store) == before
