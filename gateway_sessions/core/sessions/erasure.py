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

_DOMAIN: Final = b"gateway_sessions tombstone\x00"
_USER: Final = "user"
_PARTS: Final = 4
_NO_ROWS: Final[Mapping[str, int]] = {}


def tombstone_of(secret: bytes, owner: str) -> str:
    """What is remembered of somebody who was erased: it tells nothing to whoever lacks the store's secret."""
    return hmac.new(secret, _DOMAIN + owner.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose data it is about: an owner of sessions."""

    owner: str
    platform: str | None = None
    """With `user_id`: where and as whom the person is known; None for a room."""
    user_id: str | None = None

    @classmethod
    def named(cls, owner: str) -> Subject:
        """The subject that an owner is; `InvalidInputError` for what can be none."""
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
    """Something that was not removed, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt:
    """What was done to forget somebody."""

    owner: str
    erased_at: datetime
    """What they sent until then is refused from now on."""
    rows: Mapping[str, int] = field(default_factory=lambda: _NO_ROWS)
    """How many rows were deleted, by table; under `scrubbed`, those of others that named them.

    `titles` are those that sessions of others have lost.
    """
    rewritten: tuple[str, ...] = ()
    """Files that were written anew without them."""
    removed: tuple[str, ...] = ()
    """Copies that were removed, because nobody can tell whom they hold."""
    kept: tuple[Kept, ...] = ()


def kept_in_rooms(subject: Subject) -> tuple[Kept, ...]:
    """What belongs to others as well; nothing if it is a room that is forgotten."""
    if subject.user_id is None:
        return ()
    what = f"what agents and others said of {subject.owner} in rooms that are shared with others"
    why = (
        "it is not theirs; and nobody can tell whose those messages there are which were stored before "
        "messages had an author: delete the room's sessions, or erase the room"
    )
    return (Kept(what, why),)
