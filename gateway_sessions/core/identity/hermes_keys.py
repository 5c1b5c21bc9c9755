"""Session keys in the spelling of Hermes, and the lanes whose keys would collide there.

Two lanes here can have one key in Hermes, because Hermes does not encode a `:` inside an id and knows no
accounts. One of the lanes gets the Hermes key. The other lane keeps its own key, under which Hermes does not
look for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway_sessions.core.identity.keys import ACCOUNT, ROLES, decode_part, without_account

_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class HermesSpelling:
    """The keys that Hermes spells differently, and the lanes whose Hermes key is taken."""

    keys: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """The Hermes key of each lane that has another key here."""
    taken: tuple[str, ...] = ()
    """The lanes whose Hermes key belongs to another lane."""


def hermes_key(session_key: str) -> str:
    """Return the key by which Hermes knows a lane."""
    if "%" not in session_key:
        return session_key
    parts = without_account(session_key).split(":")
    return ":".join(decode_part(part) for part in parts if part not in ROLES)


def spell_for_hermes(session_keys: Iterable[str]) -> HermesSpelling:
    """Return the Hermes spelling of these keys, which must be all keys of the store.

    A lane with the same key in both keeps it. Then lanes that differ by encoded parts only get their keys,
    then lanes with marks, each group in the order of the keys.
    """
    keys = list(session_keys)
    encoded = [one for one in keys if "%" in one]
    if not encoded:
        return HermesSpelling()
    used = {one for one in keys if "%" not in one}
    spelt: dict[str, str] = {}
    taken: list[str] = []
    for key in sorted(encoded, key=lambda one: (_names_account_or_roles(one), one)):
        name = hermes_key(key)
        if name in used:
            taken.append(key)
        else:
            used.add(name)
            spelt[key] = name
    return HermesSpelling(spelt, tuple(taken))


def _names_account_or_roles(key: str) -> bool:
    """Return whether a key says more than Hermes' keys do: the account, or the role of each part."""
    return any(part in ROLES or part == ACCOUNT for part in key.split(":"))
