"""Daily and cron boundaries as instants, across daylight saving time and skipped dates.

A zone's wall clock is moved: an hour is missing in spring (a gap), an hour is shown twice in autumn (an
overlap), and now and then a whole date is left out. Every boundary here is therefore one function of a wall
time: the first instant at which the clock shows that time or a later one. This instant never decreases while
the wall time grows. So no boundary is skipped in a gap, and none happens twice in an overlap.

An instant beyond the calendar of `datetime` raises `OverflowError`.
"""

from __future__ import annotations

import re
from copy import copy
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway_sessions.core.instants import EPOCH, RESOLUTION
from gateway_sessions.errors import InvalidPolicyError

if TYPE_CHECKING:
    from croniter import croniter

_WALL_EPOCH: Final = EPOCH.replace(tzinfo=None)
_LAST_DAY: Final = date.max.toordinal()

# Far longer than any sensible cron expression: croniter must not be given a page of text to expand.
_MAX_EXPRESSION: Final = 256
_CRON_FIELD: Final = re.compile(r"[0-9a-z*,/#?()-]+", re.IGNORECASE)
_DRAWN_BY_LOT: Final = re.compile(r"[hr](\(|/|$)", re.IGNORECASE)
_SPECIAL_DAY: Final = re.compile(r"[lw]", re.IGNORECASE)
_SPECIAL_WEEKDAY: Final = re.compile(r"#|^l|,l", re.IGNORECASE)
_ANY_DAY: Final = ("*", "?")
_YEARS_SEARCHED: Final = 50  # a fifth Monday in February comes every 28 years, or 40 across 2100
_FOREIGN_ZONES: Final = ("right/", "posix/", "localtime", "posixrules")


@lru_cache(maxsize=1024)
def zone_named(name: str) -> ZoneInfo:
    """Return the zone of that IANA name, or raise `InvalidPolicyError`."""
    unknown = InvalidPolicyError(
        "zone", name, "is not a time zone that this machine knows; write an IANA name such as 'Europe/Berlin'"
    )
    # These names exist on some machines only, mean another zone on each, or count leap seconds.
    if name.startswith(_FOREIGN_ZONES):
        raise unknown
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise unknown from error


def first_instant(local: datetime, zone: tzinfo) -> datetime:
    """Return the first instant at which the zone's wall clock shows *local* (naive) or a later time."""
    before = _utc_offset(local.replace(fold=0), zone)
    instant = _instant_of(local, before)
    if _wall_time(instant, zone) == local:
        return instant
    return _jump_over(local, before, _utc_offset(local.replace(fold=1), zone), zone)


def next_daily_boundary(after: datetime, at_hour: int, zone: tzinfo) -> datetime:
    """Return the first boundary strictly after an instant; each existing date has one, at *at_hour*."""
    for day in range(after.astimezone(zone).toordinal(), _LAST_DAY + 1):
        boundary = _daily_boundary(day, at_hour, zone)
        if boundary is not None and boundary > after:
            return boundary
    raise OverflowError(_BEYOND)


def next_cron_boundary(after: datetime, expression: str, zone: tzinfo) -> datetime:
    """Return the first boundary strictly after an instant; a wall time of the expression has one at most."""
    # The search begins with the hour, so that all events of one hour ask the same cached questions.
    boundary = after.replace(minute=0, second=0, microsecond=0)
    while boundary <= after:
        boundary = _next_cron_time(boundary, expression, zone)
    return boundary


@lru_cache(maxsize=256)
def check_cron(expression: str) -> None:
    """Refuse an expression that is not plain five-field cron, or names no date at all."""
    if len(expression) > _MAX_EXPRESSION:
        problem = f"is longer than {_MAX_EXPRESSION} characters"
        raise InvalidPolicyError("cron", f"{expression[:16]}…", problem)
    fields = expression.split()
    if len(fields) != 5 or not all(map(_CRON_FIELD.fullmatch, fields)):  # noqa: PLR2004
        raise InvalidPolicyError("cron", expression, "must have five fields: minute hour day month weekday")
    if any(map(_DRAWN_BY_LOT.match, fields)):
        raise InvalidPolicyError("cron", expression, "leaves a field to chance (H, R); name the times")
    _, _, day, _, weekday = fields
    if (_SPECIAL_DAY.search(day) and weekday not in _ANY_DAY) or (
        _SPECIAL_WEEKDAY.search(weekday) and day not in _ANY_DAY
    ):
        raise InvalidPolicyError("cron", expression, "needs * in the day field that has no L, W or #")
    _check_has_dates(expression)


_BEYOND: Final = "the boundary lies beyond the calendar"


def _wall_time(instant: datetime, zone: tzinfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


def _utc_offset(local: datetime, zone: tzinfo) -> timedelta:
    return local.replace(tzinfo=zone).utcoffset() or timedelta(0)


def _instant_of(local: datetime, offset: timedelta) -> datetime:
    return EPOCH + (local - _WALL_EPOCH - offset)


def _jump_over(local: datetime, before: timedelta, after: timedelta, zone: tzinfo) -> datetime:
    """Return the instant at which the clock jumps over *local*, found between its two readings."""
    early, late = _instant_of(local, max(before, after)), _instant_of(local, min(before, after))
    while late - early > RESOLUTION:
        middle = early + (late - early) // 2
        if _wall_time(middle, zone) < local:
            early = middle
        else:
            late = middle
    return late


@lru_cache(maxsize=4096)
def _daily_boundary(day: int, at_hour: int, zone: tzinfo) -> datetime | None:
    """Return the boundary of one local date; None if the zone left that date out."""
    midnight = datetime.fromordinal(day)
    if _wall_time(first_instant(midnight, zone), zone).toordinal() != day:
        return None
    return first_instant(midnight + timedelta(hours=at_hour), zone)


@lru_cache(maxsize=4096)
def _next_cron_time(after: datetime, expression: str, zone: tzinfo) -> datetime:
    """Return the first instant of the expression's next wall time; in an overlap the instant may be past."""
    # Naive on purpose: with a zone, croniter fires twice in an overlap.
    wall = (_wall_time(after, zone) - _WALL_EPOCH).total_seconds()
    try:
        # The cached schedule is copied, because croniter notes its position, and other threads ask as well.
        slot = copy(_parse_schedule(expression)).get_next(float, start_time=wall)
    except ValueError as error:
        raise OverflowError(_BEYOND) from error
    return first_instant(_WALL_EPOCH + timedelta(seconds=slot), zone)


@lru_cache(maxsize=256)
def _parse_schedule(expression: str) -> croniter:
    """Return the parsed expression, cached: parsing takes longer than finding the next time."""
    # croniter is slow to import, and few policies need it: `check_cron` imports it with the first of them.
    from croniter import croniter  # noqa: PLC0415

    return croniter(expression, 0.0)


def _check_has_dates(expression: str) -> None:
    from croniter import CroniterBadDateError, croniter  # noqa: PLC0415 - as above

    try:
        croniter(expression, 0.0, max_years_between_matches=_YEARS_SEARCHED).get_next(float)
    except CroniterBadDateError:
        raise InvalidPolicyError("cron", expression, "names a date that no year has") from None
    except ValueError as error:
        raise InvalidPolicyError("cron", expression, f"is not understood: {error}") from None
