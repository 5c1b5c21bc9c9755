"""The record of a lane's session, its ids, and what one field is told as."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions.core.sessions.entry import (
    MAX_SESSION_ID,
    SessionEntry,
    SessionState,
    check_session_id,
    clean_model_override,
    session_id_at,
)
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.errors import InvalidSessionIdError

NOW = datetime(2026, 6, 10, 12, 30, 5, tzinfo=UTC)
AUTOMATIC = {"idle", "daily", "cron", "suspended", "resume_pending_expired", "moved"}


def entry(**members) -> SessionEntry:
    return SessionEntry(
        session_key="agent:main:telegram:dm:1",
        session_id="s1",
        created_at=NOW,
        updated_at=NOW,
        last_interaction_at=NOW,
        **members,
    )


class TestSessionId:
    def test_it_tells_the_time_in_utc_and_ends_in_chance(self):
        assert session_id_at(NOW, "0a1b2c3d") == "20260610_123005_0a1b2c3d"

    @pytest.mark.parametrize(
        "good", ["s", "20260610_123005_0a1b2c3d", "cron_7_x", "ü", "a.b", "x" * MAX_SESSION_ID]
    )
    def test_any_plain_word_is_one(self, good):
        assert check_session_id(good) == good

    @pytest.mark.parametrize(
        "bad",
        [
            "", "a b", "a/b", "a\\b", "../etc", "a..b", "C:x", "a\n", "a\x00", "\x7f", "a\u2028", "\ud800",
            "x" * (MAX_SESSION_ID + 1), None, 5, b"s1", ["s1"],
        ],
    )  # fmt: skip
    def test_what_could_be_a_path_or_a_line_of_a_log_is_none(self, bad):
        with pytest.raises(InvalidSessionIdError, match="session id"):
            check_session_id(bad)

    def test_the_error_does_not_repeat_ten_kilobytes(self):
        with pytest.raises(InvalidSessionIdError) as caught:
            check_session_id("x" * 10_000)
        assert len(str(caught.value)) < 200


class TestStates:
    @pytest.mark.parametrize("state", SessionState)
    def test_one_state_shows_as_at_most_one_flag(self, state):
        one = entry(state=state)
        flags = {
            SessionState.SUSPENDED: one.suspended,
            SessionState.RESUME_PENDING: one.resume_pending,
            SessionState.EXPIRED: one.expiry_finalized,
        }
        assert [shown for shown, is_set in flags.items() if is_set] == [
            shown for shown in flags if shown is state
        ]

    @pytest.mark.parametrize("state", SessionState)
    def test_only_a_cut_off_session_tells_why_it_waits(self, state):
        one = entry(state=state, state_reason="restart_timeout", state_since=NOW)
        waits = state is SessionState.RESUME_PENDING
        assert one.resume_reason == ("restart_timeout" if waits else None)
        assert one.last_resume_marked_at == (NOW if waits else None)


class TestOpening:
    @pytest.mark.parametrize("reason", EndReason)
    def test_a_session_that_nobody_asked_for_has_something_to_tell(self, reason):
        one = entry(opened_by=reason)
        assert one.was_auto_reset == (reason in AUTOMATIC)
        assert one.auto_reset_reason == (reason if reason in AUTOMATIC else None)
        assert one.is_fresh_reset == (reason is EndReason.SESSION_RESET)

    def test_a_first_session_has_nothing_to_tell(self):
        assert not entry().was_auto_reset
        assert not entry().is_fresh_reset
        assert entry().auto_reset_reason is None

    @pytest.mark.parametrize(("total", "last", "had"), [(0, 0, False), (1, 0, True), (0, 1, True)])
    def test_a_session_had_activity_once_a_model_was_asked(self, total, last, had):
        assert entry(total_tokens=total, last_prompt_tokens=last).had_activity is had


class TestEvolve:
    def test_a_change_is_a_new_value_with_the_next_version(self):
        one = entry(version=4)
        later = NOW + timedelta(hours=1)
        changed = one.evolve(later, zone="Europe/Berlin")
        assert (changed.version, changed.updated_at, changed.zone) == (5, later, "Europe/Berlin")
        assert (one.version, one.updated_at, one.zone) == (4, NOW, None)

    def test_an_entry_cannot_be_changed(self):
        with pytest.raises(AttributeError):
            entry().version = 9


class TestModelOverride:
    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (None, None),
            ({}, None),
            ({"model": ""}, None),
            ({"model": None}, None),
            ({"model": "m", "api_key": "secret"}, {"model": "m"}),
            ({"api_key": "secret"}, None),
            (
                {"base_url": "http://x", "provider": "p", "model": "m"},
                {"model": "m", "provider": "p", "base_url": "http://x"},
            ),
            ({"model": 5}, {"model": "5"}),
        ],
    )
    def test_only_what_holds_no_credentials_is_kept(self, given, kept):
        assert clean_model_override(given) == kept
