"""Conversions between aware UTC datetimes and whole microseconds, and checks of durations and instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from gateway_sessions.errors import InvalidInputError, StorageCorruptError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
RESOLUTION: Final = timedelta(microseconds=1)
LONGEST: Final = timedelta(days=36_525)
"""The longest duration: a longer one is a mistake, and would leave the calendar when added to a date."""
LARGEST_SECONDS: Final = 10_000_000_000
"""The largest number of seconds, in the year 2286: a larger number counts milliseconds."""
ID_BITS: Final = 11
"""The bits below the microseconds in ids that rise with time: room for two thousand ids in each
microsecond."""


def to_micros(instant: datetime) -> int:
    """Return the microseconds since the epoch, exactly."""
    return (instant - EPOCH) // RESOLUTION


def from_micros(micros: int) -> datetime:
    """Return the instant so many microseconds after the epoch; `StorageCorruptError` beyond the calendar."""
    try:
        return EPOCH + micros * RESOLUTION
    except OverflowError:
        what, problem = "an instant in the database", f"is in no calendar: {micros}"
        raise StorageCorruptError(what, problem) from None


def clamp_to_calendar(micros: int) -> datetime:
    """Return that instant, or the nearest one of the calendar, for work that only has to be done by then."""
    return from_micros(min(max(micros, _FIRST), _LAST))


_FIRST: Final = to_micros(datetime(1, 1, 2, tzinfo=UTC))
_LAST: Final = to_micros(datetime(9999, 12, 30, tzinfo=UTC))
"""The ends of the calendar less a day, so that every zone has them."""


def as_utc(moment: datetime, *, naive_zone: tzinfo = UTC) -> datetime:
    """Return a plain UTC datetime for any datetime of a caller; a naive one is read in *naive_zone*."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=naive_zone)
    return EPOCH + (aware.astimezone(UTC) - EPOCH)


def check_duration(name: str, **amount: float) -> timedelta:
    """Return a duration, or raise `InvalidInputError` if *name* is no number or more than a century."""
    try:
        span = timedelta(**amount)
    except (OverflowError, TypeError, ValueError):
        span = timedelta.max
    if abs(span) > LONGEST:
        problem = f"{name} must be a number, and a century at most"
        raise InvalidInputError(problem)
    return span


def first_change_id(now: datetime, last: int) -> int:
    """Return the first id of a process: above all used before, and rising with time across processes.

    63 bits hold microseconds with room for two thousand ids in each of them.
    """
    return max(last + 1, to_micros(now) << ID_BITS)


def parse_instant(name: str, given: object) -> datetime | None:
    """Return the instant of a datetime, of seconds or milliseconds since the epoch, or of ISO text.

    None stays None; another value raises an `InvalidInputError` about *name*.
    """
    if given is None:
        return None
    try:
        match given:
            case datetime():
                return as_utc(given)
            case bool():
                pass
            case int() | float():
                seconds = given / 1000 if abs(given) > LARGEST_SECONDS else given
                return EPOCH + timedelta(microseconds=round(seconds * 1_000_000))
            case str():
                return _parse_instant_text(given)
            case _:
                pass
    except (OverflowError, ValueError):
        pass
    problem = f"{name} must be a datetime, seconds since 1970, or a date and time in ISO form"
    raise InvalidInputError(problem)


def _parse_instant_text(text: str) -> datetime | None:
    try:
        return as_utc(datetime.fromisoformat(text))
    except ValueError:
        return parse_instant("text", float(text))
