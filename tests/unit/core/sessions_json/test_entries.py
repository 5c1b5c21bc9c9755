import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy
from gateway_sessions.core.sessions_json.entries import (
    Dialect,
    entry_from_dict,
    entry_from_json,
    entry_to_dict,
)
from gateway_sessions.errors import InvalidInputError

BERLIN = ZoneInfo("Europe/Berlin")
KEY = "agent:main:telegram:dm:99"
NOW = datetime(2026, 11, 18, 9, 11, 8, 6690, tzinfo=UTC)
ENTRY = SessionEntry(
    session_key=KEY,
    session_id="20261118_091108_0a1b2c3d",
    created_at=NOW,
    updated_at=NOW,
    last_interaction_at=NOW,
    platform="telegram",
    origin=SessionSource(platform="telegram", chat_id="99"),
)
VECTORS: dict[str, Any] = json.loads(
    Path(__file__).parents[3].joinpath("data", "hermes_vectors.json").read_text("utf-8")
)
HERMES_MEMBERS = [
    "session_key", "session_id", "created_at", "updated_at", "display_name", "platform", "chat_type",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens",
    "last_prompt_tokens", "estimated_cost_usd", "cost_status", "expiry_finalized", "suspended",
    "resume_pending", "resume_reason", "last_resume_marked_at", "is_fresh_reset", "was_auto_reset",
    "auto_reset_reason", "reset_had_activity",
]  # fmt: skip


def stored(**members: Any) -> dict[str, Any]:
    return entry_to_dict(ENTRY) | members


def read(**members: Any) -> SessionEntry:
    return entry_from_dict(KEY, stored(**members))


def hermes_entries() -> list[Any]:
    return [
        pytest.param(key, member, id=f"{file['name']}-{key.rpartition(':')[2]}")
        for file in VECTORS["files"]
        if file["name"] != "edited"
        for key, member in json.loads(file["sessions.json"]).items()
        if not key.startswith("_")
    ]


# Writing.


def test_the_members_of_hermes_come_first_and_in_its_order():
    assert list(entry_to_dict(ENTRY)) == [*HERMES_MEMBERS, "origin"]
    with_model = ENTRY.altered(model_override={"model": "m"})
    assert list(entry_to_dict(with_model)) == [*HERMES_MEMBERS, "model_override", "origin"]


@pytest.mark.parametrize(("key", "member"), hermes_entries())
def test_what_hermes_wrote_is_written_again_as_it_was(key: str, member: dict[str, Any]):
    entry = entry_from_dict(key, member, BERLIN)
    assert list(entry_to_dict(entry, Dialect.HERMES, BERLIN).items()) == list(member.items())
    assert entry_from_dict(key, entry_to_dict(entry)) == entry


def test_times_are_utc_with_the_offset():
    assert entry_to_dict(ENTRY)["created_at"] == "2026-11-18T09:11:08.006690+00:00"


def test_times_for_hermes_are_local_and_say_no_zone():
    assert entry_to_dict(ENTRY, Dialect.HERMES, BERLIN)["created_at"] == "2026-11-18T10:11:08.006690"


def test_nothing_but_the_times_differs_between_the_dialects():
    entry = ENTRY.altered(
        state=SessionState.RESUME_PENDING,
        state_reason="restart_timeout",
        state_since=NOW,
        last_interaction_at=NOW - timedelta(hours=1),
        deferred_boundary=NOW,
        version=7,
    )
    native, hermes = entry_to_dict(entry), entry_to_dict(entry, Dialect.HERMES, BERLIN)
    assert list(native) == list(hermes)
    different = {name for name in native if native[name] != hermes[name]}
    assert different == {"created_at", "updated_at", "last_resume_marked_at"}


def test_in_the_hour_that_comes_twice_the_times_that_decide_stay_exact():
    second_pass = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    entry = ENTRY.altered(
        created_at=second_pass,
        updated_at=second_pass,
        last_interaction_at=second_pass,
        state=SessionState.RESUME_PENDING,
        state_since=second_pass,
    )
    again = entry_from_dict(KEY, entry_to_dict(entry, Dialect.HERMES, BERLIN), BERLIN)
    assert (again.last_interaction_at, again.state_since) == (second_pass, second_pass)
    # Hermes has one spelling for both passes; only listings and pruning look at these.
    assert again.created_at == again.updated_at == second_pass - timedelta(hours=1)


def test_what_only_the_database_needs_is_not_written():
    written = entry_to_dict(ENTRY.altered(due_at=NOW, policy_fingerprint="abc"))
    assert written.keys().isdisjoint({"due_at", "policy_fingerprint"})


def test_our_own_members_are_written_only_if_they_say_something():
    full = ENTRY.altered(
        last_interaction_at=NOW - timedelta(minutes=5),
        state=SessionState.SUSPENDED,
        state_reason="crash loop",
        state_since=NOW,
        opened_by=EndReason.SESSION_SWITCH,
        previous_session_id="20261117_080000_00000000",
        owner="main:telegram:user:7",
        reset_policy=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=5),
        zone="Asia/Tokyo",
        deferred_boundary=NOW,
        version=3,
    )
    written = entry_to_dict(full)
    assert list(written)[len(HERMES_MEMBERS) :] == [
        "origin", "last_interaction_at", "state_reason", "state_since", "opened_by", "previous_session_id",
        "owner", "reset_policy", "zone", "deferred_boundary", "version",
    ]  # fmt: skip
    assert entry_from_dict(KEY, json.loads(json.dumps(written))) == full


def test_unknown_members_come_last_and_as_they_were():
    extra = {"later_field": {"a": [1, None]}, "another": "x"}
    written = entry_to_dict(ENTRY.altered(extra=extra))
    assert list(written)[-2:] == ["later_field", "another"]
    assert entry_from_dict(KEY, written).extra == extra


def test_an_unknown_member_never_replaces_a_known_one():
    written = entry_to_dict(ENTRY.altered(extra={"suspended": True, "reset_policy": {"mode": "none"}}))
    assert written["suspended"] is False
    assert "reset_policy" not in written


def test_unknown_members_of_the_origin_survive():
    source = stored()["origin"] | {"platform": "left the building", "auto_thread_created": True}
    entry = read(origin=source)
    assert entry.origin is not None
    assert entry.origin.platform == "left the building"
    assert entry_to_dict(entry)["origin"] == source


def test_credentials_are_neither_read_nor_written():
    override: Mapping[str, Any] = {"model": "m", "api_key": "secret", "base_url": {"token": "secret"}}
    assert read(model_override=override).model_override == {"model": "m"}
    assert read(model_override=["secret"]).model_override is None
    assert read(model_override={"api_key": "secret"}).model_override is None
    assert "secret" not in json.dumps(entry_to_dict(read(model_override=override)))
    assert "secret" not in json.dumps(entry_to_dict(ENTRY.altered(model_override={"api_key": "secret"})))


# One state out of the flags.


@pytest.mark.parametrize(
    ("flags", "state"),
    [
        ({}, SessionState.ACTIVE),
        ({"resume_pending": True}, SessionState.RESUME_PENDING),
        ({"resume_pending": True, "expiry_finalized": True}, SessionState.EXPIRED),
        ({"resume_pending": True, "expiry_finalized": True, "suspended": True}, SessionState.SUSPENDED),
        ({"suspended": None, "expiry_finalized": None, "resume_pending": None}, SessionState.ACTIVE),
    ],
)
def test_the_strongest_flag_is_the_state(flags: dict[str, Any], state: SessionState):
    assert read(**flags).state is state


def test_the_older_name_of_the_expiry_flag_counts_where_the_newer_is_absent():
    legacy = stored(memory_flushed=True)
    assert entry_from_dict(KEY, legacy).state is SessionState.ACTIVE
    del legacy["expiry_finalized"]
    assert entry_from_dict(KEY, legacy).state is SessionState.EXPIRED


def test_flags_that_count_less_are_set_aside():
    entry = read(
        suspended=True, resume_pending=True, resume_reason="restart_timeout", last_resume_marked_at="x"
    )
    assert (entry.state_reason, entry.state_since) == (None, None)
    assert entry.extra["set_aside"] == {
        "resume_pending": True, "resume_reason": "restart_timeout", "last_resume_marked_at": "x",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["suspended", "resume_pending", "expiry_finalized"])
@pytest.mark.parametrize("value", ["yes", 1, [], "false"])
def test_a_state_is_never_guessed(name: str, value: object):
    with pytest.raises(InvalidInputError, match=f"{name} is neither true nor false"):
        read(**{name: value})


def test_the_reason_of_an_expired_session_is_one_that_a_reset_can_have():
    assert read(expiry_finalized=True, state_reason="daily").state_reason is EndReason.DAILY
    unknown = read(expiry_finalized=True, state_reason="full moon")
    assert unknown.state_reason is None
    assert unknown.extra["set_aside"] == {"state_reason": "full moon"}


def test_a_malformed_time_of_a_resume_mark_is_set_aside_and_the_mark_kept():
    entry = read(resume_pending=True, resume_reason="restart_timeout", last_resume_marked_at="yesterday")
    assert (entry.state, entry.state_reason, entry.state_since) == (
        SessionState.RESUME_PENDING, "restart_timeout", None,
    )  # fmt: skip
    assert entry.extra["set_aside"] == {"last_resume_marked_at": "yesterday"}


# What opened the session.


@pytest.mark.parametrize("reason", EndReason)
def test_every_reason_survives(reason: EndReason):
    written = entry_to_dict(ENTRY.altered(opened_by=reason))
    assert entry_from_dict(KEY, written).opened_by is reason
    assert written["was_auto_reset"] == reason.is_automatic
    assert written["is_fresh_reset"] == (reason is EndReason.SESSION_RESET)


def test_the_words_of_hermes_are_understood():
    assert read(was_auto_reset=True, auto_reset_reason="idle").opened_by is EndReason.IDLE
    assert read(is_fresh_reset=True).opened_by is EndReason.SESSION_RESET


def test_a_reason_nobody_knows_is_kept_and_not_passed_off_as_another():
    entry = read(was_auto_reset=True, auto_reset_reason="full moon")
    assert entry.opened_by is None
    assert entry.extra["set_aside"] == {"was_auto_reset": True, "auto_reset_reason": "full moon"}


def test_an_automatic_reset_counts_more_than_a_fresh_one():
    entry = read(was_auto_reset=True, auto_reset_reason="daily", is_fresh_reset=True)
    assert entry.opened_by is EndReason.DAILY
    assert entry.extra["set_aside"] == {"is_fresh_reset": True}


# Strict where it matters.


@pytest.mark.parametrize("name", ["session_id", "created_at", "updated_at"])
def test_an_entry_needs_its_id_and_times(name: str):
    members = stored()
    del members[name]
    with pytest.raises(InvalidInputError):
        entry_from_dict(KEY, members)


@pytest.mark.parametrize(
    "session_id", ["", "../../etc", "a/b", "a\\b", "C:x", "a\x00b", "a b", "\ud800", 7, "x" * 129]
)
def test_a_session_id_that_could_be_a_path_is_refused(session_id: object):
    with pytest.raises(InvalidInputError):
        read(session_id=session_id)


@pytest.mark.parametrize(
    "time",
    [
        "soon",
        1762000000,
        True,
        [],
        "0001-01-01T00:00:00+14:00",
        "9999-06-01T00:00:00",
        "9999-12-31T23:00:00-05:00",
        "",
    ],
)
def test_a_time_that_is_none_is_refused(time: object):
    with pytest.raises(InvalidInputError, match="created_at"):
        read(created_at=time)


@pytest.mark.parametrize("key", ["agent:main:webhook:group:spaces/x/threads/y", "agent:main:x:dm:a..b", KEY])
def test_slashes_inside_a_key_are_allowed(key: str):
    assert entry_from_dict(key, stored()).session_key == key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "_meta",
        "/etc/passwd",
        "\\\\host",
        "C:\\x",
        "agent:main:x:dm:..",
        "agent:../x",
        "a/../b",
        "a\x00b",
        "a\nb",
        "\udc00",
    ],
)
def test_a_key_that_could_be_a_path_is_refused(key: str):
    with pytest.raises(InvalidInputError, match="session_key"):
        entry_from_dict(key, stored())


def test_the_key_of_the_member_counts_and_not_the_one_inside():
    assert read(session_key="agent:main:telegram:dm:1").session_key == KEY
    assert read(session_key=None).session_key == KEY


@pytest.mark.parametrize(
    "origin", [{"platform": "telegram"}, {"chat_id": "1"}, {"platform": 5, "chat_id": "1"}]
)
def test_an_entry_whose_origin_names_no_lane_is_refused(origin: dict[str, Any]):
    with pytest.raises(InvalidInputError):
        read(origin=origin)


@pytest.mark.parametrize("owner", [5, 0, False, [], ["x"], "a\nb"])
def test_an_owner_that_cannot_be_read_is_not_replaced_by_nobody(owner: object):
    with pytest.raises(InvalidInputError, match="owner"):
        read(owner=owner)


# Tolerant elsewhere, and nothing lost.


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("total_tokens", "7", 0),
        ("total_tokens", True, 0),
        ("total_tokens", -1, 0),
        ("total_tokens", 2**63, 0),
        ("total_tokens", 1.5, 0),
        ("version", "x", 0),
        ("estimated_cost_usd", "cheap", 0.0),
        ("estimated_cost_usd", 10**400, 0.0),
        ("estimated_cost_usd", True, 0.0),
        ("cost_status", 5, "unknown"),
        ("display_name", ["x"], None),
        ("platform", 5, None),
        ("chat_type", {}, "dm"),
        ("reset_had_activity", "yes", False),
        ("previous_session_id", "../x", None),
        ("zone", "Moon/Crater", None),
        ("reset_policy", {"mode": "sometimes"}, None),
        ("reset_policy", "never", None),
        ("deferred_boundary", "soon", None),
        ("last_interaction_at", "soon", NOW),
        ("state_since", 5, None),
        ("opened_by", "full moon", None),
        ("origin", "somewhere", None),
    ],
)
def test_a_value_that_cannot_be_used_makes_room_for_the_default_and_is_set_aside(
    name: str, value: object, default: object
):
    entry = read(**{name: value})
    assert getattr(entry, name) == default
    assert entry.extra["set_aside"] == {name: value}
    assert entry_from_dict(KEY, entry_to_dict(entry)) == entry


def test_what_was_set_aside_before_stays():
    entry = read(set_aside={"zone": "Moon/Crater"}, total_tokens="7")
    assert entry.extra["set_aside"] == {"zone": "Moon/Crater", "total_tokens": "7"}
    foreign = read(set_aside="somebody else's", total_tokens="7")
    assert foreign.extra["set_aside"] == {"set_aside": "somebody else's", "total_tokens": "7"}


def test_a_policy_of_a_later_version_is_used_and_kept():
    policy = {"mode": "none", "weekday": "monday"}
    entry = read(reset_policy=policy)
    assert entry.reset_policy == SessionResetPolicy(mode=ResetMode.NONE)
    assert entry.extra["set_aside"] == {"reset_policy": policy}


@pytest.mark.parametrize("name", ["display_name", "cost_status", "platform"])
def test_text_is_made_storable(name: str):
    assert getattr(read(**{name: "a\ud83d\x00b"}), name) == "a\ufffd\ufffdb"


@pytest.mark.parametrize("value", ["\ud800", float("inf"), float("nan"), {"\udfff": 1}])
def test_unknown_members_that_could_not_be_written_again_are_refused(value: object):
    with pytest.raises(InvalidInputError, match="cannot express"):
        read(later_field=value)
    with pytest.raises(InvalidInputError, match="cannot express"):
        read(origin=stored()["origin"] | {"later_field": value})


def test_missing_members_have_their_defaults():
    needed = {name: stored()[name] for name in ("session_id", "created_at", "updated_at")}
    entry = entry_from_dict(KEY, needed)
    assert entry == ENTRY.altered(platform=None, origin=None)
    assert isinstance(entry.extra, MappingProxyType)


def test_times_that_say_no_zone_are_read_in_the_given_one_and_others_as_they_say():
    members = stored(created_at="2026-11-18T10:11:08.006690", updated_at="2026-11-18T04:11:08.006690-05:00")
    entry = entry_from_dict(KEY, members, BERLIN)
    assert (entry.created_at, entry.updated_at) == (NOW, NOW)


# As JSON.


def test_an_entry_is_read_from_json():
    assert entry_from_json(KEY, json.dumps(stored()).encode()) == ENTRY


@pytest.mark.parametrize("text", [b"true", b"[]", b"null", b"", b'"x"', b"{", b"\xff"])
def test_json_that_is_no_object_is_refused(text: bytes):
    with pytest.raises(InvalidInputError):
        entry_from_json(KEY, text)
