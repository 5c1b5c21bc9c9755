"""When people are told that their conversation started afresh."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions import EndReason, SessionEntry, SessionResetPolicy
from gateway_sessions.core.notices.notice_texts import cut_off_notice
from gateway_sessions.core.sessions.state_machine import is_notice_due

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
BY_POLICY = (EndReason.IDLE, EndReason.DAILY, EndReason.CRON)
UNASKED = (EndReason.SUSPENDED, EndReason.RESUME_PENDING_EXPIRED, EndReason.MOVED)


def opened(by: EndReason | None, *, used: bool = True, platform: str = "telegram") -> SessionEntry:
    return SessionEntry(
        session_key="k",
        session_id="s",
        created_at=NOON,
        updated_at=NOON,
        last_interaction_at=NOON,
        platform=platform,
        opened_by=by,
        reset_had_activity=used,
    )


@pytest.mark.parametrize("reason", BY_POLICY)
def test_a_policys_reset_is_told_where_something_was_lost(reason):
    assert is_notice_due(opened(reason), SessionResetPolicy())
    assert not is_notice_due(opened(reason, used=False), SessionResetPolicy())


@pytest.mark.parametrize("reason", BY_POLICY)
def test_a_policys_reset_is_not_told_where_nobody_wants_to_hear_it(reason):
    assert not is_notice_due(opened(reason), SessionResetPolicy(notify=False))
    assert not is_notice_due(opened(reason, platform="webhook"), SessionResetPolicy())


@pytest.mark.parametrize("reason", UNASKED)
def test_what_no_policy_asked_for_is_always_told(reason):
    quiet = SessionResetPolicy(notify=False, notify_exclude_platforms=("telegram",))
    assert is_notice_due(opened(reason, used=False), quiet)


@pytest.mark.parametrize("reason", [None, *(one for one in EndReason if not one.is_automatic)])
def test_what_a_person_asked_for_is_not_told(reason):
    assert not is_notice_due(opened(reason), SessionResetPolicy())


@pytest.mark.parametrize(
    ("passed", "told"),
    [
        (timedelta(minutes=61), "1 h 1 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=2, hours=5, minutes=7), "2 d 5 h ago"),
        (timedelta(seconds=30), "30 s ago"),
        (-timedelta(hours=1), "0 s ago"),
    ],
)
def test_people_are_told_how_long_ago_their_turn_was_cut_off(passed, told):
    assert f", {told}, and" in cut_off_notice(NOON - passed, NOON)
