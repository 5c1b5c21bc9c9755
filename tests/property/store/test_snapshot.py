"""What is written is read, what is damaged is noticed, and nothing that anybody wrote crashes the reader."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.entry import MODEL_OVERRIDE_KEYS, SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import PRESETS, Require, ResetMode, SessionResetPolicy
from gateway_sessions.core.sessions_json.entries import Dialect, entry_from_json, entry_to_dict
from gateway_sessions.core.sessions_json.file_format import SnapshotEncoder, parse_snapshot, verify_checksum
from gateway_sessions.errors import InvalidInputError, InvalidSnapshotError

# In a zone that moves its clocks an hour comes twice a year, and Hermes has one spelling for both passes:
# there a time may be read one hour early. So instants are compared where clocks stand still.
STEADY_ZONES = (
    UTC,
    timezone(timedelta(hours=5, minutes=45)),
    timezone(timedelta(hours=-11)),
    ZoneInfo("Asia/Tokyo"),
)

text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=12)
identifiers = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="./\\"),
    min_size=1,
    max_size=12,
)
session_ids = st.from_regex(r"[0-9A-Za-z_-]{2,20}", fullmatch=True)
instants = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
counts = st.integers(0, 2**63 - 1)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=3,
)
unknown_members = st.dictionaries(text.map(lambda name: f"x_{name}"), json_values, max_size=3).map(
    MappingProxyType
)
policies = st.sampled_from(
    [
        *PRESETS.values(),
        SessionResetPolicy(mode=ResetMode.CRON, cron="0 4 * * mon", zone="Europe/Berlin"),
        SessionResetPolicy(
            require=Require.ALL, grace_minutes=5, notify=False, notify_exclude_platforms=("x",)
        ),
    ]
)
sources = st.builds(
    SessionSource,
    platform=identifiers.filter(str.strip),
    chat_id=identifiers | st.just(""),
    chat_name=text | st.none(),
    chat_type=st.sampled_from(["dm", "group", "thread", "whatever"]),
    user_id=identifiers | st.none(),
    user_name=text | st.none(),
    thread_id=identifiers | st.none(),
    guild_id=identifiers | st.none(),
    message_id=identifiers | st.none(),
    extra=unknown_members,
)


@st.composite
def entries(draw: st.DrawFn, key: st.SearchStrategy[str]) -> SessionEntry:
    state = draw(st.sampled_from(SessionState))
    reasons: st.SearchStrategy[str] = st.sampled_from(EndReason) if state is SessionState.EXPIRED else text
    updated_at = draw(instants)
    return SessionEntry(
        session_key=draw(key),
        session_id=draw(session_ids),
        created_at=draw(instants),
        updated_at=updated_at,
        last_interaction_at=draw(st.just(updated_at) | instants),
        origin=draw(sources | st.none()),
        display_name=draw(text | st.none()),
        platform=draw(text | st.none()),
        chat_type=draw(text),
        owner=draw(identifiers | st.just("")),
        state=state,
        state_reason=draw(reasons | st.none()),
        state_since=draw(instants | st.none()),
        opened_by=draw(st.sampled_from(EndReason) | st.none()),
        reset_had_activity=draw(st.booleans()),
        previous_session_id=draw(session_ids | st.none()),
        input_tokens=draw(counts),
        last_prompt_tokens=draw(counts),
        estimated_cost_usd=draw(st.floats(0, 1e300)),
        cost_status=draw(text),
        model_override=draw(
            st.dictionaries(st.sampled_from(MODEL_OVERRIDE_KEYS), text.filter(bool), min_size=1) | st.none()
        ),
        reset_policy=draw(policies | st.none()),
        busy_mode=draw(st.sampled_from(BusyMode) | st.none()),
        zone=draw(st.sampled_from(["Europe/Berlin", "UTC"]) | st.none()),
        deferred_boundary=draw(instants | st.none()),
        version=draw(counts),
        extra=draw(unknown_members),
    )


def plain_entry(key: str) -> SessionEntry:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    return SessionEntry(
        session_key=key, session_id="one", created_at=day, updated_at=day, last_interaction_at=day
    )


keys = identifiers.map(lambda name: f"agent:main:x:{name}")
indexes = st.lists(entries(keys), max_size=2, unique_by=lambda entry: entry.session_key).map(
    lambda found: sorted(found, key=lambda entry: entry.session_key)
)
plain_indexes = st.sets(keys, max_size=4).map(lambda found: [plain_entry(key) for key in sorted(found)])


def encoded(found: list[SessionEntry], dialect: Dialect = Dialect.NATIVE, zone: tzinfo = UTC) -> bytes:
    encoder = SnapshotEncoder(dialect, zone)
    return (
        encoder.encode_header()
        + encoder.encode_entries(found)
        + encoder.encode_tail(1, datetime(2026, 1, 1, tzinfo=UTC))
    )


EMPTY = encoded([])


def origin_extras(found: Iterable[SessionEntry]) -> list[Mapping[str, Any] | None]:
    """What the comparison of sources leaves out."""
    return [one.origin.extra if one.origin else None for one in found]


@given(indexes, st.sampled_from(Dialect), st.sampled_from(STEADY_ZONES))
def test_what_is_written_is_read(found: list[SessionEntry], dialect: Dialect, zone: tzinfo):
    content = parse_snapshot(encoded(found, dialect, zone), zone)
    assert list(content.entries) == found
    assert origin_extras(content.entries) == origin_extras(found)
    assert content.rejected == ()
    assert content.intact


@given(indexes, st.sampled_from([None, 0, 2]))
def test_the_layout_makes_no_difference(found: list[SessionEntry], indent: int | None):
    raw = json.dumps({one.session_key: entry_to_dict(one) for one in found}, indent=indent).encode()
    content = parse_snapshot(raw)
    assert list(content.entries) == found
    assert (content.rejected, content.intact) == ((), False)


@given(plain_indexes, st.integers(0), st.integers(1, 255))
def test_a_changed_byte_is_noticed(found: list[SessionEntry], position: int, change: int):
    raw = bytearray(encoded(found))
    raw[position % len(raw)] ^= change
    with pytest.raises(InvalidSnapshotError):
        verify_checksum(bytes(raw))
    with suppress(InvalidSnapshotError):
        assert not parse_snapshot(bytes(raw)).intact


@given(plain_indexes, st.integers(0))
def test_a_truncated_file_is_not_intact_and_gives_nothing_that_was_not_in_it(
    found: list[SessionEntry], length: int
):
    raw = encoded(found)
    with suppress(InvalidSnapshotError):
        content = parse_snapshot(raw[: length % len(raw)])
        assert not content.intact
        assert list(content.entries) == found[: len(content.entries)]
        assert content.rejected or len(content.entries) == len(found)


@given(st.binary() | st.builds(lambda cut, rest: EMPTY[:cut] + rest, st.integers(0, len(EMPTY)), st.binary()))
def test_no_bytes_crash_the_reader(raw: bytes):
    with suppress(InvalidSnapshotError):
        parse_snapshot(raw)


@given(entries(keys), st.data())
def test_whatever_a_member_holds_the_entry_is_refused_or_can_be_written_and_read_again(
    entry: SessionEntry, data: st.DataObject
):
    stored = entry_to_dict(entry)
    name = data.draw(st.sampled_from(sorted(stored)))
    stored[name] = data.draw(
        json_values | st.sampled_from([True, "2026-01-01", {"platform": "x"}, "\ud800", "\0"])
    )
    with suppress(InvalidInputError):
        read = entry_from_json(entry.session_key, json.dumps(stored).encode())
        assert parse_snapshot(encoded([read])).entries == (read,)
