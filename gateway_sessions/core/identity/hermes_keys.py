"""Session keys in the spelling of Hermes, and the lanes whose keys would collide there.

Two lanes of ours can have one key there, because ids that hold `:` are not told apart, and accounts not at
all. One of them gets it, and the other one keeps its own key, under which Hermes does not look for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway_sessions.core.identity.keys import ACCOUNT, ROLES, decode_part, without_account

_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class HermesSpelling:
    """Keys that are spelt differently there, and those that cannot be."""

    keys: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Hermes' key of each lane that has another one here."""
    taken: tuple[str, ...] = ()
    """Lanes whose key there is another one's."""


def hermes_key(session_key: str) -> str:
    """Return the key by which Hermes knows a lane."""
    if "%" not in session_key:
        return session_key
    parts = without_account(session_key).split(":")
    return ":".join(decode_part(part) for part in parts if part not in ROLES)


def spell(session_keys: Iterable[str]) -> HermesSpelling:
    """Return how Hermes spells these keys, which are all there are.

    A lane that has the same key here keeps it; then come those that differ by encoded parts only, each in the
    order of their keys.
    """
    keys = list(session_keys)
    encoded = [one for one in keys if "%" in one]
    if not encoded:
        return HermesSpelling()
    used = {one for one in keys if "%" not in one}
    spelt: dict[str, str] = {}
    taken: list[str] = []
    for key in sorted(encoded, key=lambda one: (_is_marked(one), one)):
        name = hermes_key(key)
        if name in used:
            taken.append(key)
        else:
            used.add(name)
            spelt[key] = name
    return HermesSpelling(spelt, tuple(taken))


def _is_marked(key: str) -> bool:
    """Whether it says more than Hermes' keys do: which account it is, or the role of each part."""
    return any(part in ROLES or part == ACCOUNT for part in key.split(":"))
