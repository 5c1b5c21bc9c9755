"""Decisions after an unclean end: which cut-off sessions resume, which are suspended, when to wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

CLEAN_SHUTDOWN_FILE: Final = ".clean_shutdown"
RESTART_COUNTS_FILE: Final = "restart_counts.json"


class ResumeReason(StrEnum):
    """The reason why a turn was cut off."""

    RESTART_TIMEOUT = "restart_timeout"  # another process took over, and the drain ran out of time
    SHUTDOWN_TIMEOUT = "shutdown_timeout"  # the gateway ended, and the drain ran out of time
    RESTART_INTERRUPTED = "restart_interrupted"  # the process ended without a drain


class Recovery(StrEnum):
    """The decision about a session whose turn was cut off."""

    RESUME = "resume"
    SUSPEND = "suspend"


def plan_recovery(attempts: int, limit: int) -> Recovery:
    """Return RESUME for a cut-off session, or SUSPEND if that has failed *limit* times in a row."""
    return Recovery.SUSPEND if limit <= attempts else Recovery.RESUME


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashLoopLimits:
    """The limits of unclean ends: so many starts within the window are a crash loop."""

    starts: int = 3
    """The number of starts after which resumed turns wait."""
    window: timedelta = timedelta(seconds=60)
    """The time within which starts count together."""


def recent_unclean_starts(
    starts: Sequence[datetime], now: datetime, window: timedelta
) -> tuple[datetime, ...]:
    """Return the unclean starts of the window, this one included; instants in the future are clock errors."""
    return (*(one for one in starts if now - window <= one <= now), now)


def plan_crash_loop_hold(
    starts: Sequence[datetime], now: datetime, limits: CrashLoopLimits
) -> datetime | None:
    """Return until when resumed turns wait, since one of them may end the process again; None: no wait."""
    return now + limits.window if len(starts) >= limits.starts else None


def encode_starts(starts: Sequence[datetime]) -> str:
    """Return the instants as text."""
    return msgspec.json.encode(list(starts)).decode()


def decode_starts(text: str | None) -> tuple[datetime, ...]:
    """Return the instants in the text; a text that cannot be read holds none."""
    try:
        return msgspec.json.decode(text or "[]", type=tuple[datetime, ...])
    except msgspec.MsgspecError:
        return ()


class _ShutdownMarker(msgspec.Struct):
    epoch: int
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """The content of the marker of an orderly end; the marker counts only for the epoch that wrote it."""

    epoch: int
    at: datetime

    def encode(self) -> bytes:
        """Return the marker's bytes."""
        return msgspec.json.encode({"epoch": self.epoch, "at": self.at.isoformat()}) + b"\n"


def is_clean_end_of(marker: bytes | None, epoch: int) -> bool:
    """Return whether a marker tells of an orderly end of that epoch. A damaged marker never skips work."""
    if not marker:
        return False
    try:
        return msgspec.json.decode(marker, type=_ShutdownMarker).epoch == epoch
    except msgspec.DecodeError:
        return False


def clean_end_time(marker: bytes | None) -> datetime | None:
    """Return the instant of an orderly end, by the clock of its process; None if the marker does not tell."""
    try:
        at = msgspec.json.decode(marker or b"", type=_ShutdownMarker).at
    except msgspec.DecodeError:
        return None
    return at if at is not None and at.tzinfo is not None else None


def encode_restart_counts(counts: Mapping[str, int]) -> bytes:
    """Return the numbers of interrupted runs in a row by session key, as a file for an operator to read."""
    return msgspec.json.encode(dict(sorted(counts.items()))) + b"\n"


def decode_restart_counts(raw: bytes) -> dict[str, int]:
    """Return the counts in such a file; members that are no counts are left out."""
    try:
        content = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
    return {key: count for key, count in content.items() if type(count) is int and count > 0}
