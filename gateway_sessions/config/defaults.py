"""The values that count where nobody has set any, named and measured as in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import Enum
from typing import Final, cast

from gateway_sessions.config.draft import KeyPath
from gateway_sessions.config.key_tree import paths
from gateway_sessions.config.model import Config
from gateway_sessions.config.schema import KEYS

_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "seconds": timedelta(seconds=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
}
_UNIT: Final = re.compile(f"_({'|'.join(_UNITS)})$")
_OTHER_NAMES: Final[dict[tuple[str, ...], str]] = {("session_reset", "timezone"): "zone"}
"""Keys whose field has another name."""
_SECONDS_OR_OFF: Final = frozenset(
    {("agent", "gateway_auto_continue_freshness"), ("agent", "gateway_timeout")}
)
"""Keys of a time that do not say in which unit."""


def defaults() -> Iterator[tuple[KeyPath, object]]:
    """Yield each key and its default, in the order of the reference; names of platforms are no keys."""
    config = Config()
    for path in paths(KEYS):
        if "*" not in path:
            yield path, _as_written(path, _value_at(config, path))


def _value_at(config: Config, path: tuple[str, ...]) -> object:
    found: object = config
    for place, key in enumerate(path, start=1):
        name = _OTHER_NAMES.get(path[:place], key)
        found = getattr(found, name if hasattr(found, name) else _UNIT.sub("", name))
    return found


def _as_written(path: tuple[str, ...], value: object) -> object:
    """Return the value as a file says it: times as numbers of the key's unit, and 0 for never."""
    unit = _UNIT.search(path[-1])
    measured = unit is not None or path in _SECONDS_OR_OFF
    if isinstance(value, timedelta):
        number = value / (_UNITS[unit[1]] if unit else timedelta(seconds=1))
        return int(number) if number.is_integer() else number
    if value is None and measured:
        return 0
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | frozenset | list):
        return sorted(map(str, cast("Iterable[object]", value)))
    return value
