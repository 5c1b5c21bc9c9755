"""Times, sizes and counts as people read and type them, and advice for damaged databases."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from gateway_sessions.core.instants import LONGEST, parse_instant
from gateway_sessions.errors import InvalidInputError

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGER: Final = {"m": "min"}
"""The units that a sentence spells longer than a table."""
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhdw]?)", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)b?", re.IGNORECASE)
AT_START: Final = "at the next start"
"""The time of work that waits because no process is running: "at the next start"."""
_STEP: Final = 1000
_SIZES: Final = ("", "k", "m", "g", "t")


def ago(instant: datetime | None, now: datetime) -> str:
    """Return the time since an instant as briefly as possible; a date from a week on."""
    if instant is None:
        return "?"
    passed = now - instant
    if passed < MINUTE:
        return "just now" if passed > -MINUTE else f"in {short_duration(-passed)}"
    if passed < HOUR:
        return f"{passed // MINUTE}m ago"
    if passed < DAY:
        return f"{passed // HOUR}h ago"
    if passed < 2 * DAY:
        return "yesterday"
    return f"{passed.days}d ago" if passed < 7 * DAY else f"{instant:%Y-%m-%d}"


def ago_in_words(instant: datetime, now: datetime) -> str:
    """Return the time since an instant in its largest unit, for a sentence: `2 h ago`."""
    count, unit = _largest_units((now - instant).total_seconds())[0]
    return "just now" if unit == "s" else f"{count} {_LONGER.get(unit, unit)} ago"


def short_duration(length: timedelta) -> str:
    """Return a length of time in its two largest units, for a table: `5m 3s`."""
    return " ".join(f"{count}{unit}" for count, unit in _largest_units(round(length.total_seconds())))


def duration_in_words(length: timedelta) -> str:
    """Return a length of time in its two largest units, for a sentence: `5 min 3 s`."""
    found = _largest_units(length.total_seconds())
    return " ".join(f"{count} {_LONGER.get(unit, unit)}" for count, unit in found)


def _largest_units(seconds: float) -> list[tuple[int, str]]:
    """Return a length of time in its largest unit and the next smaller one, without units of zero."""
    rest = max(int(seconds), 0)
    found: list[tuple[int, str]] = []
    for unit in "dhms":
        count, rest = divmod(rest, _UNITS[unit])
        if count or found:
            found.append((count, unit))
    return [one for one in found[:2] if one[0]] or [(0, "s")]


def zone_of(instant: datetime) -> str:
    """Return an instant's zone by the name that a configuration uses: not `CET`, and no offset from UTC."""
    return instant.tzinfo.key if isinstance(instant.tzinfo, ZoneInfo) else f"{instant:%Z}"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Return a number with its noun, in the singular or the plural."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def counted_with_example(number: int, thing: str, things: str, example: str) -> str:
    """Return a number with its noun and an example; of a single thing, the thing itself."""
    return f"{counted(number, thing, things)}{': ' if number == 1 else ', such as '}{example}"


def size_with_unit(number: int) -> str:
    """Return a number of bytes in its largest unit."""
    amount, unit = float(number), 0
    while amount >= _STEP and unit < len(_SIZES) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{number} B" if not unit else f"{amount:.1f} {_SIZES[unit]}B".upper().replace("KB", "kB")


def parse_duration(name: str, text: str) -> timedelta:
    """Return the length of time in a text: `30` (days), `90m`, `5h` or `2w`."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        problem = f"{name}: {text!r} is no length of time; write 45m, 5h, 3d or 2w, or a number of days"
        raise InvalidInputError(problem)
    seconds = float(found[1]) * _UNITS[found[2].lower() or "d"]
    if seconds > LONGEST.total_seconds():
        problem = f"{name}: {text!r} is more than a century"
        raise InvalidInputError(problem)
    return timedelta(seconds=seconds)


def parse_byte_count(name: str, text: str) -> int:
    """Return the number of bytes in a text: `500M`, `2G`, or just a number."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        problem = f"{name}: {text!r} is no size; write 500k, 20M or 2G, or a number of bytes"
        raise InvalidInputError(problem)
    return round(float(found[1]) * float(_STEP ** _SIZES.index(found[2].lower())))


def parse_moment(name: str, text: str | None, now: datetime) -> datetime | None:
    """Return the instant in a text: a length of time ago, or a date with or without a time."""
    if text is None:
        return None
    if _SPAN.fullmatch(text.strip()):
        return now - parse_duration(name, text)
    try:
        return parse_instant(name, text)
    except InvalidInputError:
        problem = (
            f"{name}: {text!r} is no time; write 5h or 3d (so long ago), or 2026-03-31 or 2026-03-31T18:00Z"
        )
        raise InvalidInputError(problem) from None


MEND_FILE: Final = "stop the gateway, then: gateway-sessions sessiondb repair"
MEND_SERVER: Final = "ask whoever runs the server, who has its backups"
MEND_ELSEWHERE: Final = (
    "it is no file of this store: bring it back from a copy, or let its own program mend it"
)
