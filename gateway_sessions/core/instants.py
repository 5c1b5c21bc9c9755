"""Instants: aware UTC datetimes inside, whole microseconds in the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
RESOLUTION: Final = timedelta(microseconds=1)


def to_micros(instant: datetime) -> int:
    """Microseconds since the epoch, exactly."""
    return (instant - EPOCH) // RESOLUTION


def from_micros(micros: int) -> datetime:
    """The instant that many microseconds after the epoch."""
    return EPOCH + timedelta(microseconds=micros)


def as_utc(moment: datetime, *, naive_zone: tzinfo = UTC) -> datetime:
    """A plain UTC datetime for any datetime a caller gives; one without a zone is read in *naive_zone*."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=naive_zone)
    return EPOCH + (aware.astimezone(UTC) - EPOCH)


def first_change_id(now: datetime, last: int) -> int:
    """Where the ids of one process begin: above all used before, and rising with time across processes.

    63 bits hold microseconds with room for two thousand ids in each of them.
    """
    return max(last + 1, to_micros(now) << 11)
