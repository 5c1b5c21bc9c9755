"""Methods of `SessionStore` that export a person's data or erase the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from gateway_sessions.core.identity.keys import room_owner
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import parse_instant
from gateway_sessions.core.progress import OnProgress
from gateway_sessions.core.sessions.erasure import ErasureReceipt
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.store.open_store import OpenStore


class PrivacyMethods(OpenStore):
    """Methods of `SessionStore` about one person."""

    async def erase(
        self,
        subject: SessionSource | str,
        *,
        keep_copies: bool = False,
        progress: OnProgress | None = None,
    ) -> ErasureReceipt:
        """Forget a person: nothing of them is left in this home when the receipt is there.

        The person is the one who wrote from a source, or an owner as entries and sessions name it.
        `SessionBusyError` while a turn of theirs runs. Once begun, it is finished in the background, even if
        the call fails or is cancelled. See `SessionDB.erase` for what happens to copies.
        """
        owner, finished = await self._owner_of_person(subject), False
        try:
            receipt = await self.db.erase(owner, keep_copies=keep_copies, progress=progress)
            finished = True
        finally:
            if not finished:
                self._erasures.wake()
        return receipt

    async def export_person(self, subject: SessionSource | str) -> AsyncIterator[dict[str, Any]]:
        """All that is known of a person: first their lanes with what happened there, then every session."""
        async for one in self.db.export_owner(await self._owner_of_person(subject)):
            yield one

    async def was_erased(self, source: SessionSource, sent_at: object) -> bool:
        """Return whether a message was sent before its sender was erased, and must be dropped."""
        sent = parse_instant("sent_at", sent_at)
        scope = await self.scope_of(source)
        erased = [await self.db.erased_at(owner) for owner in sorted(scope.owners)]
        return any(one is not None and (sent is None or sent <= one) for one in erased)

    async def _owner_of_person(self, subject: SessionSource | str) -> str:
        if isinstance(subject, str):
            return subject
        room = room_owner(subject, self.isolation)
        people = sorted((await self.scope_of(subject)).owners - {room})
        if not people:
            problem = "the source names no person; give the owner of the room to forget the room"
            raise InvalidInputError(problem)
        return people[0]
