"""Where the values of a configuration come from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, cast

from gateway_sessions.config.draft import Draft, KeyPath, dotted
from gateway_sessions.config.key_tree import child
from gateway_sessions.config.loading import text_of
from gateway_sessions.core.addresses import without_secrets

DEFAULT: Final = "default"
"""Where a value comes from that nobody has set."""
_SECRET: Final = frozenset({"url"})
_NEVER_SHOWN: Final = frozenset({"api_key", "webhook_secrets"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that counts."""

    key: str
    value: str
    """As it is shown: without passwords."""
    where: str
    """The file and its line, the variable, or that it is the default."""
    is_set: bool = True
    """Whether somebody has set it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The same, with its value as it is."""

    path: KeyPath
    value: object
    where: str
    is_set: bool = True
    """Whether every variable in it has a value; else it is shown as it was written."""


def settings_of(path: Path | None, environ: Mapping[str, str] | None = None) -> list[Setting]:
    """All values that count: what somebody has set, the strongest of each, and else the defaults."""
    from gateway_sessions.config.defaults import defaults  # noqa: PLC0415 -- as in `loading`

    found = {one.path: one for one in written_in(path, environ) if not _is_empty_block(one)}
    usual = {place: Placed(place, value, DEFAULT) for place, value in defaults()}
    order = {place[:length]: at for at, place in reversed([*enumerate(usual)]) for length in (1, 2, 3)}
    counting = found | {place: one for place, one in usual.items() if not _is_decided(place, found)}
    return [
        Setting(dotted(place), _shown(one), one.where, is_set=place in found)
        for place, one in sorted(counting.items(), key=lambda item: order.get(item[0], len(usual)))
    ]


def _is_empty_block(one: Placed) -> bool:
    """Whether nothing but the name of a block was written."""
    from gateway_sessions.config.schema import KEYS  # noqa: PLC0415 -- as in `loading`

    return one.value is None and bool(reduce(child, one.path, KEYS))


def _is_decided(place: KeyPath, found: Mapping[KeyPath, Placed]) -> bool:
    """Whether somebody has set the key, or a word that stands for its block."""
    block = found.get(place[:1])
    by_word = block is not None and isinstance(block.value, str)
    return place in found or (by_word and (place[0] == "session_reset" or place[1:] == ("mode",)))


def written_in(path: Path | None, environ: Mapping[str, str] | None = None) -> list[Placed]:
    """The same, as it is: not to be shown."""
    draft = draft_of(path, environ)
    return [_placed(draft, place, value) for place, value in _leaves(draft.values, ())]


def draft_of(path: Path | None, environ: Mapping[str, str] | None = None) -> Draft:
    """Return what a file and the environment say, with its lines, before anybody asks what it means."""
    from gateway_sessions.config.document import read_yaml  # noqa: PLC0415 -- as in `loading`
    from gateway_sessions.config.draft import make_plain  # noqa: PLC0415 -- as above
    from gateway_sessions.config.environment import merge, overrides  # noqa: PLC0415 -- as above
    from gateway_sessions.config.schema import KEYS  # noqa: PLC0415 -- as above

    known = os.environ if environ is None else environ
    draft = Draft(str(path) if path is not None else "environment", unresolved={})
    read_yaml(draft, "" if path is None else text_of(path), known)
    make_plain(draft)
    for override in overrides(draft, known, KEYS):
        merge(draft.values, override)
    draft.raise_problems()
    return draft


def _placed(draft: Draft, place: KeyPath, value: object) -> Placed:
    unset = next((path for path in draft.unresolved or () if path[: len(place)] == place), None)
    if unset is None or "${" not in str(value):
        return Placed(place, value, _where(draft, place))
    return Placed(place, value, f"{_where(draft, place)}, of a variable that is not set", is_set=False)


def _leaves(values: object, above: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    if not isinstance(values, dict):
        yield above, values
        return
    for key, value in cast("dict[str, Any]", values).items():
        yield from _leaves(value, (*above, key))


def _where(draft: Draft, place: KeyPath) -> str:
    for length in range(len(place), 0, -1):
        part = place[:length]
        if part in draft.variables:
            return f"${draft.variables[part]}"
        if part in draft.lines:
            return f"{draft.origin}, line {draft.lines[part]}"
    return draft.origin


def _shown(one: Placed) -> str:
    place, value = one.path, one.value
    text = _written(value)
    if value and any(key in _NEVER_SHOWN for key in place):
        return "***" if one.is_set else text
    if place[-1] in _SECRET and "://" in text and not text.startswith("sqlite"):
        return f"{text.partition('://')[0]}://…"
    return without_secrets(text)


def _written(value: object) -> str:
    """Return the value as a file says it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_written, cast('list[object]', value)))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
