"""Times, sizes and counts as people read and type them, and advice for damaged databases.

How people tell each other times and sizes: `5m ago`, `older than 3d`, `1.5 MB`.

What to do about a database that is damaged, in the words that every surface uses.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from gateway_sessions.core.instants import LONGEST, instant_of
from gateway_sessions.errors import InvalidInputError

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhdw]?)", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)b?", re.IGNORECASE)
AT_START: Final = "at the next start"
"""When what nobody sees to now is seen to."""
_STEP: Final = 1000
_SIZES: Final = ("", "k", "m", "g", "t")


def ago(instant: datetime | None, now: datetime) -> str:
    """How long ago it was, as briefly as it can be told; a date if that is a week or more."""
    if instant is None:
        return "?"
    passed = now - instant
    if passed < MINUTE:
        return "just now" if passed > -MINUTE else f"in {span(-passed)}"
    if passed < HOUR:
        return f"{passed // MINUTE}m ago"
    if passed < DAY:
        return f"{passed // HOUR}h ago"
    if passed < 2 * DAY:
        return "yesterday"
    return f"{passed.days}d ago" if passed < 7 * DAY else f"{instant:%Y-%m-%d}"


def span(length: timedelta) -> str:
    """A length of time in its two largest units."""
    seconds = max(round(length.total_seconds()), 0)
    days, hours = divmod(seconds // 3600, 24)
    minutes = seconds // 60 % 60
    if days:
        return f"{days}d {hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    return (
        f"{minutes}m {seconds % 60}s"
        if minutes and seconds % 60
        else f"{minutes}m"
        if minutes
        else f"{seconds}s"
    )


def zone_of(instant: datetime) -> str:
    """The name of an instant's zone, as a configuration names it: not `CET`, nor how far it is from UTC."""
    return instant.tzinfo.key if isinstance(instant.tzinfo, ZoneInfo) else f"{instant:%Z}"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """So many of something."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def such_as(number: int, thing: str, things: str, example: str) -> str:
    """So many of something, and one of them: which, if there is only that."""
    return f"{counted(number, thing, things)}{': ' if number == 1 else ', such as '}{example}"


def size(number: int) -> str:
    """A number of bytes."""
    amount, unit = float(number), 0
    while amount >= _STEP and unit < len(_SIZES) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{number} B" if not unit else f"{amount:.1f} {_SIZES[unit]}B".upper().replace("KB", "kB")


def length_of(name: str, text: str) -> timedelta:
    """The length of time that somebody means: `30`, a number of days, or `90m`, `5h`, `2w`."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        problem = f"{name}: {text!r} is no length of time; write 45m, 5h, 3d or 2w, or a number of days"
        raise InvalidInputError(problem)
    seconds = float(found[1]) * _UNITS[found[2].lower() or "d"]
    if seconds > LONGEST.total_seconds():
        problem = f"{name}: {text!r} is more than a century"
        raise InvalidInputError(problem)
    return timedelta(seconds=seconds)


def bytes_of(name: str, text: str) -> int:
    """The number of bytes that somebody means: `500M`, `2G`, or just a number."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        problem = f"{name}: {text!r} is no size; write 500k, 20M or 2G, or a number of bytes"
        raise InvalidInputError(problem)
    return round(float(found[1]) * float(_STEP ** _SIZES.index(found[2].lower())))


def moment_of(name: str, text: str | None, now: datetime) -> datetime | None:
    """The moment that somebody means: so long ago, or a date with or without a time."""
    if text is None:
        return None
    if _SPAN.fullmatch(text.strip()):
        return now - length_of(name, text)
    try:
        return instant_of(name, text)
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
