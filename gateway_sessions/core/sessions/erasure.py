"""Values of an erasure: its subject, the tombstone that stays, and the receipt of what was done."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gateway_sessions.core.checks import plain_text
from gateway_sessions.core.identity.keys import decode_part, without_account
from gateway_sessions.errors import InvalidInputError

# The domain keeps this hash apart from other hashes under the same secret.
_DOMAIN: Final = b"gateway_sessions tombstone\x00"
_USER: Final = "user"
_PARTS: Final = 4
_NO_ROWS: Final[Mapping[str, int]] = {}


def tombstone_of(secret: bytes, owner: str) -> str:
    """Return the hash that remembers an erased owner; without the store's secret it reveals nothing."""
    return hmac.new(secret, _DOMAIN + owner.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class ErasureSubject:
    """The owner whose data an erasure is about."""

    owner: str
    platform: str | None = None
    """The platform of the person, given together with `user_id`; None for a room."""
    user_id: str | None = None
    """The person's id on that platform; None for a room."""

    @classmethod
    def named(cls, owner: str) -> ErasureSubject:
        """Return the subject of that owner name, or raise `InvalidInputError`."""
        owner = plain_text(owner)
        parts = owner.split(":")
        if len(parts) < _PARTS - 1 or not all(parts):
            problem = f"{owner!r} is no owner: give the `owner` of one of the person's entries or sessions"
            raise InvalidInputError(problem)
        parts = without_account(owner).split(":")
        if len(parts) == _PARTS and parts[2] == _USER:
            return cls(owner, decode_part(parts[1]), decode_part(parts[3]))
        return cls(owner)


@dataclass(frozen=True, slots=True)
class Kept:
    """A thing that an erasure did not remove, and the reason."""

    what: str
    """The thing that is kept."""
    why: str
    """The reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt:
    """The report of what an erasure did to forget an owner."""

    owner: str
    erased_at: datetime
    """The instant of the erasure; messages that the owner sent before it are refused from then on."""
    rows: Mapping[str, int] = field(default_factory=lambda: _NO_ROWS)
    """The numbers of deleted rows by table; under `scrubbed`, rows of others that named the owner.

    `titles` counts the titles that sessions of others have lost.
    """
    rewritten: tuple[str, ...] = ()
    """The files that were rewritten without the owner."""
    removed: tuple[str, ...] = ()
    """The copies that were removed, because nothing tells whose data they hold."""
    kept: tuple[Kept, ...] = ()
    """The things that were not removed."""


def list_kept_in_rooms(subject: ErasureSubject) -> tuple[Kept, ...]:
    """Return what an erasure keeps because it belongs to others as well; nothing if the subject is a room."""
    if subject.user_id is None:
        return ()
    what = f"what agents and others said of {subject.owner} in rooms that are shared with others"
    why = (
        "it is not theirs; and nobody can tell whose those messages there are which were stored before "
        "messages had an author: delete the room's sessions, or erase the room"
    )
    return (Kept(what, why),)
