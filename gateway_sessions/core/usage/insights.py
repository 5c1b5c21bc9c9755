"""The insights report: sums by platform, model, tool and hour, computed from counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta, tzinfo
from typing import Final

import msgspec

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.usage.usage_events import ModelUsage, UsageSum, add_usage_sums, rank_by_tokens

QUARTER: Final = 900_000_000
"""The microseconds of a quarter of an hour: the hours of every zone begin at one of these quarters."""
HOURS: Final = 24
WEEKDAYS: Final = 7
ONE_DAY: Final = timedelta(days=1)


class PlatformUse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The activity on one platform, which is the source of its sessions."""

    platform: str
    sessions: int = 0
    """The number of sessions in use within the period."""
    started: int = 0
    """The number of these sessions that began within the period."""
    messages: int = 0
    tool_calls: int = 0
    """The number of messages that are the result of a tool."""
    active: timedelta = timedelta(0)
    """The time from the beginning of the sessions, or of the period, to their last messages, in sum."""
    used: UsageSum = UsageSum()
    """The use of models on the platform."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The number of results of a tool."""

    name: str
    calls: int
    """The number of results of the tool."""


class Activity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The times of messages, on the clocks of a zone."""

    days: tuple[tuple[date, int], ...] = ()
    """The number of messages of each date with any, in order."""
    weekdays: tuple[int, ...] = (0,) * WEEKDAYS
    """The number of messages by weekday, Monday first."""
    hours: tuple[int, ...] = (0,) * HOURS
    """The number of messages by hour of the day."""
    longest_streak: int = 0
    """The largest number of successive dates with messages."""
    current_streak: int = 0
    """The number of successive dates with messages that lead up to today; today may still have none."""

    @property
    def active_days(self) -> int:
        """The number of dates with messages."""
        return len(self.days)

    @property
    def busiest_day(self) -> date | None:
        """The date with the most messages; the first of equal ones."""
        return max(self.days, key=lambda day: day[1])[0] if self.days else None

    @property
    def busiest_weekday(self) -> int | None:
        """The weekday with the most messages; Monday is 0."""
        return self.weekdays.index(max(self.weekdays)) if self.days else None

    @property
    def busiest_hour(self) -> int | None:
        """The hour with the most messages."""
        return self.hours.index(max(self.hours)) if self.days else None


class TopSession(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session that leads one of the rankings, by its whole length."""

    session_id: str
    platform: str
    title: str | None
    started_at: datetime
    amount: int
    """The amount that the ranking compares: messages, tokens, tool calls, or seconds in use."""


class TopSessions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The leading sessions of four rankings."""

    longest: tuple[TopSession, ...] = ()
    """The sessions that lasted longest."""
    most_messages: tuple[TopSession, ...] = ()
    """The sessions with the most messages."""
    most_tokens: tuple[TopSession, ...] = ()
    """The sessions with the most tokens."""
    most_tool_calls: tuple[TopSession, ...] = ()
    """The sessions with the most calls of tools."""


class Insights(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The activity since some instant, for people who may see it."""

    since: datetime
    """The instant with which the report begins."""
    until: datetime
    """The instant with which the report ends."""
    zone: str
    source: str | None
    """The platform of the report; None: all platforms."""
    platforms: tuple[PlatformUse, ...] = ()
    """The platforms, the one with the most sessions first."""
    models: tuple[ModelUsage, ...] = ()
    """The use by model, provider and task; the largest use of tokens first."""
    tools: tuple[ToolUse, ...] = ()
    """The tools, the one with the most results first."""
    activity: Activity = Activity()
    """The activity by hour and by day."""
    top: TopSessions = TopSessions()
    """The sessions that stand out."""

    @property
    def empty(self) -> bool:
        """Whether there was no activity."""
        return not self.platforms

    @property
    def overview(self) -> PlatformUse:
        """The sum of all platforms."""
        return PlatformUse(
            platform=self.source or "",
            sessions=sum(one.sessions for one in self.platforms),
            started=sum(one.started for one in self.platforms),
            messages=sum(one.messages for one in self.platforms),
            tool_calls=sum(one.tool_calls for one in self.platforms),
            active=sum((one.active for one in self.platforms), timedelta(0)),
            used=add_usage_sums(one.used for one in self.platforms),
        )


class PeriodCounts(msgspec.Struct, kw_only=True):
    """The counts of a period, before they are put in order."""

    sessions: dict[str, tuple[int, int, timedelta]] = msgspec.field(
        default_factory=dict[str, tuple[int, int, timedelta]]
    )
    """By platform: the sessions, the sessions that began, and the time that they were in use."""
    messages: Counter[str] = msgspec.field(default_factory=Counter[str])
    tool_calls: Counter[str] = msgspec.field(default_factory=Counter[str])
    quarters: Counter[int] = msgspec.field(default_factory=Counter[int])
    tools: Counter[str] = msgspec.field(default_factory=Counter[str])
    used: dict[str, list[ModelUsage]] = msgspec.field(default_factory=dict[str, list[ModelUsage]])


def sum_by_platform(counts: PeriodCounts) -> tuple[PlatformUse, ...]:
    """Return the counts by platform."""
    names = {*counts.sessions, *counts.messages, *counts.used}
    found: list[PlatformUse] = []
    for name in sorted(names):
        sessions, started, active = counts.sessions.get(name, (0, 0, timedelta(0)))
        found.append(
            PlatformUse(
                platform=name,
                sessions=sessions,
                started=started,
                messages=counts.messages[name],
                tool_calls=counts.tool_calls[name],
                active=active,
                used=add_usage_sums(part.used for part in counts.used.get(name, ())),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.sessions, one.platform)))


def sum_by_model(counts: PeriodCounts) -> tuple[ModelUsage, ...]:
    """Return the use by model, summed over all platforms."""
    together: dict[tuple[str | None, str | None, str], UsageSum] = {}
    for part in (part for parts in counts.used.values() for part in parts):
        key = (part.model, part.provider, part.task)
        together[key] = together.get(key, UsageSum()) + part.used
    return rank_by_tokens(
        ModelUsage(model=model, provider=provider, task=task, used=used)
        for (model, provider, task), used in together.items()
    )


def rank_tools(counts: PeriodCounts) -> tuple[ToolUse, ...]:
    """Return the tools, the one with the most results first."""
    ordered = sorted(counts.tools.items(), key=lambda tool: (-tool[1], tool[0]))
    return tuple(ToolUse(name=name, calls=calls) for name, calls in ordered)


def activity_by_time(quarters: Mapping[int, int], zone: tzinfo, now: datetime) -> Activity:
    """Return the times of messages, from the numbers of messages in each quarter of an hour since 1970."""
    days: Counter[date] = Counter()
    weekdays, hours = [0] * WEEKDAYS, [0] * HOURS
    for quarter, messages in quarters.items():
        local = from_micros(quarter * QUARTER).astimezone(zone)
        days[local.date()] += messages
        weekdays[local.weekday()] += messages
        hours[local.hour] += messages
    streaks = list(_runs_of_dates(sorted(days)))
    today = now.astimezone(zone).date()
    return Activity(
        days=tuple(sorted(days.items())),
        weekdays=tuple(weekdays),
        hours=tuple(hours),
        longest_streak=max((length for _, length in streaks), default=0),
        current_streak=next((length for last, length in streaks if today - last <= ONE_DAY), 0),
    )


def _runs_of_dates(days: Iterable[date]) -> Iterable[tuple[date, int]]:
    """Return runs of dates without a gap, the latest first: the last date of each, and its length."""
    runs: list[tuple[date, int]] = []
    for day in days:
        if runs and day - runs[-1][0] == ONE_DAY:
            runs[-1] = (day, runs[-1][1] + 1)
        else:
            runs.append((day, 1))
    return reversed(runs)
