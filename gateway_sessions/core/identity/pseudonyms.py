"""Keyed pseudonyms for the ids of people and chats, and the scrubber that puts them into free text.

A plain hash of a phone number is undone by trying all numbers. These pseudonyms are keyed with a secret of
the installation and separate for each platform and kind: without the secret nobody can undo them, or tell
that two of them mean one person. A pseudonym never changes, so that prompts stay the same to the byte.
"""

from __future__ import annotations

import hmac
import json
import re
from base64 import b32encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import InvalidInputError

RAW_ID_PLATFORMS: Final[frozenset[str]] = frozenset({Platform.DISCORD, Platform.SLACK, Platform.MATRIX})
"""The platforms where an agent must see true ids, because replies mention a person or room by id.

Discord's and Slack's ids are opaque numbers, Matrix' are public addresses. Ids of all other platforms, known
or not, are redacted on request.
"""

# 128 bits: fewer could be guessed.
MIN_SECRET: Final = 16
SHORTEST_UNMISTAKABLE_ID: Final = 5
"""The length from which on ids are replaced inside names: "Team 7" should remain readable."""

_DOMAIN: Final = "gateway_sessions/pseudonym/1"
_DIGEST_BYTES: Final = 10  # 80 bits: no two of ten million ids are likely to share a pseudonym
# Shorter numbers are no phone numbers, but years, prices or room numbers.
_SHORTEST_NUMBER: Final = 7
_NUMBER = re.compile(rf"[0-9]{{{_SHORTEST_NUMBER},}}")
_BETWEEN_DIGITS: Final = r"[\s().\-/]*"


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Makes pseudonyms of ids under a secret of the installation."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < MIN_SECRET:
            problem = (
                f"the secret for pseudonyms has {len(self.secret)} bytes, at least {MIN_SECRET} are needed"
            )
            raise InvalidInputError(problem)

    def user(self, platform: str, user_id: str) -> str:
        """Return `user_…` for a person."""
        return f"user_{self._digest(platform, 'user', user_id)}"

    def chat(self, platform: str, chat_id: str) -> str:
        """Return `<platform>:…` for a chat, a room, a channel or a guild."""
        return f"{platform}:{self._digest(platform, 'chat', chat_id)}"

    def thread(self, platform: str, thread_id: str) -> str:
        """Return `thread_…` for a thread or topic of a chat."""
        return f"thread_{self._digest(platform, 'thread', thread_id)}"

    def speaker(self, session_key: str, person: str) -> str:
        """Return `user_…` for a person without a name on a shared lane; each lane has its own pseudonym."""
        return f"user_{self._digest(session_key, 'speaker', person)}"

    def _digest(self, platform: str, kind: str, value: str) -> str:
        message = json.dumps([_DOMAIN, platform, kind, value]).encode()
        digest = hmac.digest(self.secret, message, "sha256")[:_DIGEST_BYTES]
        return b32encode(digest).decode().lower()


def can_hide_ids(platform: str, raw_id_platforms: Collection[str] = RAW_ID_PLATFORMS) -> bool:
    """Return whether ids of this platform become pseudonyms on request: unless an agent needs true ids."""
    return platform not in raw_id_platforms


class IdScrubber:
    """Replaces ids wherever they occur in free text, also in a name that consists of the number."""

    def __init__(self, pseudonyms: Mapping[str, str]) -> None:
        self._whole = pseudonyms
        found = [
            (len(written), pattern, pseudonym)
            for raw, pseudonym in pseudonyms.items()
            if len(raw) >= SHORTEST_UNMISTAKABLE_ID
            for written, pattern in _id_patterns(raw)
        ]
        longest_first = sorted(found, key=lambda one: one[0], reverse=True)
        self._stand_ins = [pseudonym for _, _, pseudonym in longest_first]
        self._search = re.compile("|".join(f"({pattern})" for _, pattern, _ in longest_first), re.IGNORECASE)

    def replace_ids(self, text: str) -> str:
        """Return the text with a pseudonym for each id."""
        if (pseudonym := self._whole.get(text.strip())) is not None:
            return pseudonym
        if not self._stand_ins:
            return text
        return self._search.sub(lambda found: self._stand_ins[(found.lastindex or 1) - 1], text)


def _id_patterns(raw: str) -> Iterable[tuple[str, str]]:
    """Yield the spellings of an id with their patterns: as it is, and long numbers as phone numbers."""
    yield raw, re.escape(raw)
    for number in _NUMBER.findall(raw):
        yield number, r"\+?" + _BETWEEN_DIGITS.join(number)
