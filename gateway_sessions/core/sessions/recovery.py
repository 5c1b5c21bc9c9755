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
    """Why a turn was cut off."""

    RESTART_TIMEOUT = "restart_timeout"  # another process took over, and the drain ran out of time
    SHUTDOWN_TIMEOUT = "shutdown_timeout"  # the gateway ended, and the drain ran out of time
    RESTART_INTERRUPTED = "restart_interrupted"  # the process ended without a drain


class Recovery(StrEnum):
    """What becomes of a session whose turn was cut off."""

    RESUME = "resume"
    SUSPEND = "suspend"


def plan_recovery(attempts: int, limit: int) -> Recovery:
    """Continue a cut-off session, unless that has failed *limit* times in a row."""
    return Recovery.SUSPEND if limit <= attempts else Recovery.RESUME


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashLoopLimits:
    """How many unclean ends within which time are too many."""

    starts: int = 3
    window: timedelta = timedelta(seconds=60)


def recent_starts(starts: Sequence[datetime], now: datetime, window: timedelta) -> tuple[datetime, ...]:
    """The unclean starts of that time, this one included; a wrong clock noted what lies in the future."""
    return (*(one for one in starts if now - window <= one <= now), now)


def plan_hold(starts: Sequence[datetime], now: datetime, limits: CrashLoopLimits) -> datetime | None:
    """Until when resumed turns have to wait: one of them may be what ends the process again and again."""
    return now + limits.window if len(starts) >= limits.starts else None


def encode_starts(starts: Sequence[datetime]) -> str:
    """The instants as text."""
    return msgspec.json.encode(list(starts)).decode()


def decode_starts(text: str | None) -> tuple[datetime, ...]:
    """Read them again; whatever is no such text says nothing."""
    try:
        return msgspec.json.decode(text or "[]", type=tuple[datetime, ...])
    except msgspec.MsgspecError:
        return ()


class _Marker(msgspec.Struct):
    epoch: int
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """What the marker of an orderly end says; it counts only for the very store it was written by."""

    epoch: int
    at: datetime

    def encode(self) -> bytes:
        """The marker's bytes."""
        return msgspec.json.encode({"epoch": self.epoch, "at": self.at.isoformat()}) + b"\n"


def names_epoch(marker: bytes | None, epoch: int) -> bool:
    """Whether a marker tells of an orderly end of that epoch. Anything else never skips work."""
    if not marker:
        return False
    try:
        return msgspec.json.decode(marker, type=_Marker).epoch == epoch
    except msgspec.DecodeError:
        return False


def ended_at(marker: bytes | None) -> datetime | None:
    """When an orderly end was, by the clock of its process; None if nothing tells that."""
    try:
        at = msgspec.json.decode(marker or b"", type=_Marker).at
    except msgspec.DecodeError:
        return None
    return at if at is not None and at.tzinfo is not None else None


def encode_restart_counts(counts: Mapping[str, int]) -> bytes:
    """The interrupted runs in a row, by session key, for an operator to read."""
    return msgspec.json.encode(dict(sorted(counts.items()))) + b"\n"


def decode_restart_counts(raw: bytes) -> dict[str, int]:
    """Read such a file; whatever is not a count is left out."""
    try:
        content = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
    return {key: count for key, count in content.items() if type(count) is int and count > 0}
