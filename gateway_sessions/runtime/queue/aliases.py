"""Resolvers that map the identifiers of a person, such as WhatsApp ids, to one, with a cache.

Finding it may take files or a network, and every message needs it: answers can be kept for a while, and then
the message is routed whatever goes wrong.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import stat
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from cachetools import LRUCache, TTLCache

from gateway_sessions.core.identity.keys import normalize_whatsapp_id
from gateway_sessions.core.identity.source import Platform, check_identifier
from gateway_sessions.errors import AliasUnknownError
from gateway_sessions.ports import AliasResolver, Clock
from gateway_sessions.runtime.queue.routing import SingleFlight
from gateway_sessions.runtime.user_code import MAX_PROBLEM, answer_within

TTL: Final = timedelta(minutes=5)
SIZE: Final = 4096
MAX_ALIASES: Final = 32
MAX_FILE_BYTES: Final = 4096
TO_RESOLVE: Final = timedelta(seconds=5)
"""The time limit of a resolver: a person's message waits for the answer."""

_SAFE_ID = re.compile(r"[A-Za-z0-9@.+-]+")
_logger = logging.getLogger(__name__)

_Key = tuple[str, str]


class Aliases:
    """Asks a resolver each time. `AliasUnknownError` if that fails, or takes too long.

    Without an answer nobody knows which lane a message belongs to. None is guessed: another one's would be
    wrong, and so would be a new one.
    """

    def __init__(self, resolve: AliasResolver, *, clock: Clock) -> None:
        self._resolve = resolve
        self._clock = clock

    async def __call__(self, platform: str, identifier: str) -> str:
        """Return the identifier that all aliases of this one share."""
        try:
            return await _asked(self._resolve, self._clock, platform, identifier) or identifier
        except Exception as error:
            raise AliasUnknownError(platform, f"{type(error).__name__}: {error}"[:MAX_PROBLEM]) from error


async def _asked(resolve: AliasResolver, clock: Clock, platform: str, identifier: str) -> str:
    """Return the answer of a resolver, which must come in time."""
    ask = partial(resolve, platform, identifier)
    alias = await answer_within(TO_RESOLVE, "an alias resolver", ask, clock, grace=timedelta())
    check_identifier("alias", alias)
    return alias


class CachedAliases:
    """Asks a resolver once for each id and while; lookups of one id at the same time share the answer.

    Where the resolver fails, the last alias it gave stands, or else the id itself: a failure must not move a
    conversation to another lane.
    """

    def __init__(
        self, resolve: AliasResolver, *, clock: Clock, ttl: timedelta = TTL, size: int = SIZE
    ) -> None:
        self._resolve = resolve
        self._clock = clock
        self._fresh: TTLCache[_Key, str] = TTLCache(
            size, ttl.total_seconds(), timer=lambda: clock.now().timestamp()
        )
        self._last_known: LRUCache[_Key, str] = LRUCache(size)
        self._complained: LRUCache[_Key, bool] = LRUCache(size)
        self._lookups: SingleFlight[str] = SingleFlight()

    async def __call__(self, platform: str, identifier: str) -> str:
        """Return the identifier that all aliases of this one share."""
        key = platform, normalize_whatsapp_id(identifier) if platform == Platform.WHATSAPP else identifier
        if not key[1]:
            return ""
        if (alias := self._fresh.get(key)) is not None:
            return alias
        return await self._lookups.share(key, lambda: self._look_up(key))

    async def _look_up(self, key: _Key) -> str:
        self._fresh[key] = alias = await self._ask(key)
        return alias

    async def _ask(self, key: _Key) -> str:
        platform, identifier = key
        try:
            alias = await _asked(self._resolve, self._clock, platform, identifier)
        except Exception as error:  # noqa: BLE001 -- the resolver is foreign code; the message must go on
            self._complain(key, error)
            return self._last_known.get(key, identifier)
        self._last_known[key] = alias = alias or identifier
        return alias

    def _complain(self, key: _Key, error: Exception) -> None:
        """Log once for each id. The text of the error stays out: it may show the id."""
        if key not in self._complained:
            self._complained[key] = True
            facts = {"action": "alias_failed", "platform": key[0], "error": type(error).__name__}
            _logger.warning("alias lookup failed; the id stands for itself", extra=facts)


class WhatsAppAliasFiles:
    """Reads the mappings between phone numbers and linked ids that a WhatsApp bridge leaves in a directory.

    Of the given directories the first that holds anything counts. Use it through `CachedAliases`.
    """

    def __init__(self, directories: Sequence[str | os.PathLike[str]]) -> None:
        self._directories = tuple(map(Path, directories))

    async def __call__(self, platform: str, identifier: str) -> str:
        """Return the shortest of a WhatsApp id's aliases; other platforms have none."""
        if platform != Platform.WHATSAPP:
            return identifier
        return await asyncio.to_thread(canonical_id, self._directories, identifier)


def canonical_id(directories: Sequence[Path], identifier: str) -> str:
    """Find the alias by which the id's owner goes: the shortest, then the first in order. Blocks."""
    bare = normalize_whatsapp_id(identifier)
    directory = next(filter(_holds_anything, directories), None)
    if directory is None or not _SAFE_ID.fullmatch(bare):
        return bare
    return min(_aliases(directory, bare), key=lambda alias: (len(alias), alias))


def _holds_anything(directory: Path) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _aliases(directory: Path, bare: str) -> list[str]:
    """Follow the mappings in both directions from one id, breadth first."""
    found = [bare]
    waiting = deque(found)
    while waiting and len(found) < MAX_ALIASES:
        current = waiting.popleft()
        for suffix in ("", "_reverse"):
            alias = _mapped(directory / f"lid-mapping-{current}{suffix}.json")
            if alias is not None and alias not in found:
                found.append(alias)
                waiting.append(alias)
    return found


def _mapped(path: Path) -> str | None:
    """Read one mapping, a JSON string; None for anything else."""
    try:
        value = json.loads(_content(path))
    except (OSError, ValueError, RecursionError):
        return None
    alias = normalize_whatsapp_id(value) if isinstance(value, str) and len(value.split()) == 1 else ""
    return alias if _SAFE_ID.fullmatch(alias) else None


def _content(path: Path) -> bytes:
    """Read the beginning of a regular file; a link, a pipe or a device would lead or hold us elsewhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, MAX_FILE_BYTES) if regular else b""
    finally:
        os.close(descriptor)
