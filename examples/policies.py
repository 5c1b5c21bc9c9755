"""Testing a reset policy over a whole year, in a second: `python examples/policies.py`, or with pytest.

A policy is a value, and `next_reset` a function of that value, the session's clocks and a zone. So a year of
nights, with the two in which New York's clocks change, is a loop: no store, no waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from gateway_sessions import SessionResetPolicy
from gateway_sessions.sessions import next_reset

ZONE = ZoneInfo("America/New_York")
SPRING, AUTUMN = date(2026, 3, 8), date(2026, 11, 1)

DAILY_AT_1 = SessionResetPolicy.from_dict({"mode": "daily", "at_hour": 1})
DAILY_AT_2 = SessionResetPolicy.from_dict({"mode": "daily", "at_hour": 2})
MONDAYS_AT_4 = SessionResetPolicy.from_dict({"mode": "cron", "cron": "0 4 * * mon"})
SILENCE = SessionResetPolicy.from_dict({"mode": "idle", "idle_minutes": 240})
NEVER = SessionResetPolicy.from_dict({"mode": "none"})


@dataclass(frozen=True)
class Clocks:
    """What a policy reads of a session; the entries of a store have these fields as well."""

    last_interaction_at: datetime
    deferred_boundary: datetime | None = None


@cache
def messages() -> list[datetime]:
    """Somebody who writes every 40 minutes in 2026, except from 1 to 7 on Sundays."""
    written = []
    now = datetime(2026, 1, 1, tzinfo=ZONE).astimezone(UTC)
    while (local := now.astimezone(ZONE)).year == 2026:  # noqa: PLR2004 -- the year
        if not (f"{local:%a}" == "Sun" and local.hour in range(1, 7)):
            written.append(now)
        now += timedelta(minutes=40)
    return written


def resets(policy: SessionResetPolicy) -> list[datetime]:
    """When the policy ends a session that is used like that, on the clocks of the zone."""
    found: list[datetime] = []
    before: datetime | None = None
    for now in messages():
        due = next_reset(policy, Clocks(before), ZONE) if before is not None else None
        if due is not None and due.at <= now:
            found.append(due.at.astimezone(ZONE))
        before = now
    return found


def test_each_date_has_one_reset_even_where_its_hour_comes_twice_or_never() -> None:
    """In spring New York has no 02:00, in autumn it has 01:00 twice."""
    for policy in (DAILY_AT_1, DAILY_AT_2):
        dates = [instant.date() for instant in resets(policy)]
        assert dates == sorted(set(dates))  # noqa: S101 -- this is how pytest works
        assert {SPRING, AUTUMN} < set(dates)  # noqa: S101


def test_never_is_never() -> None:
    """Whatever happens in that year."""
    assert resets(NEVER) == []  # noqa: S101


def main() -> None:
    """Show the year."""
    policies = {
        "daily at 01:00": DAILY_AT_1,
        "daily at 02:00": DAILY_AT_2,
        "Mondays at 04:00": MONDAYS_AT_4,
        "after 4 hours of silence": SILENCE,
        "never": NEVER,
    }
    print(f"{'resets in 2026':<28}{'all':>4}   {f'{SPRING:%d %B}':<16}{AUTUMN:%d %B}")
    for name, policy in policies.items():
        found = resets(policy)
        nights = [[f"{one:%H:%M %Z}" for one in found if one.date() == day] for day in (SPRING, AUTUMN)]
        spring, autumn = (", ".join(night) or "-" for night in nights)
        print(f"{name:<28}{len(found):>4}   {spring:<16}{autumn}")


if __name__ == "__main__":
    main()
