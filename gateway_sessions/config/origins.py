"""Where the values of a configuration come from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from gateway_sessions.config.draft import Draft, KeyPath, dotted
from gateway_sessions.config.loading import text_of

_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@\s]*@")
_SECRET: Final = frozenset({"url"})
_NEVER_SHOWN: Final = frozenset({"api_key", "webhook_secrets"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that somebody has set."""

    key: str
    value: str
    """As it is shown: without passwords."""
    where: str
    """The file and its line, or the variable."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The same, with its value as it is."""

    path: KeyPath
    value: object
    where: str


def settings_of(path: Path | None, environ: Mapping[str, str] | None = None) -> list[Setting]:
    """All values that differ from the defaults because somebody has set them, the strongest of each."""
    found = written_in(path, environ)
    return [Setting(dotted(one.path), _shown(one.path, one.value), one.where) for one in found]


def written_in(path: Path | None, environ: Mapping[str, str] | None = None) -> list[Placed]:
    """The same, as it is: not to be shown."""
    from gateway_sessions.config.document import read_yaml  # noqa: PLC0415 -- as in `loading`
    from gateway_sessions.config.draft import make_plain  # noqa: PLC0415 -- as above
    from gateway_sessions.config.environment import merge, overrides  # noqa: PLC0415 -- as above
    from gateway_sessions.config.schema import KEYS  # noqa: PLC0415 -- as above

    known = os.environ if environ is None else environ
    draft = Draft(str(path) if path is not None else "environment")
    read_yaml(draft, "" if path is None else text_of(path), known)
    make_plain(draft)
    for override in overrides(draft, known, KEYS):
        merge(draft.values, override)
    draft.raise_problems()
    return [Placed(place, value, _where(draft, place)) for place, value in _leaves(draft.values, ())]


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


def _shown(place: KeyPath, value: object) -> str:
    if place[-1] in _NEVER_SHOWN:
        return "***"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    if place[-1] in _SECRET and "://" in text and not text.startswith("sqlite"):
        return f"{text.partition('://')[0]}://…"
    return _PASSWORD.sub(r"\1:***@", text)
