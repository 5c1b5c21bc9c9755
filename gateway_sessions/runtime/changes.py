"""What people change after they said it: edits and deletions, wherever the message is by now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from gateway_sessions.core.busy_notices import refusal
from gateway_sessions.core.inbound import InboundMessage, MessageKind, turn_content
from gateway_sessions.core.messages import Content
from gateway_sessions.core.queue import ItemKind, Outcome
from gateway_sessions.core.receipts import Accepted, Disposition, Receipt, Rejected, RejectReason
from gateway_sessions.runtime.ledger import Ledger
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.verbs import entries, rewriting
from gateway_sessions.storage.verbs import ledger as verbs
from gateway_sessions.storage.verbs.ledger import Noted


class Changes:
    """Carries out edits and deletions: in the queue, in the running turn, or in the transcript."""

    def __init__(
        self,
        ledger: Ledger,
        db: SessionDB,
        *,
        tell_running: Callable[[str, InboundMessage], Awaitable[object]],
        on_rewritten: Callable[[str], object],
    ) -> None:
        self._ledger = ledger
        self._db = db
        self._tell_running = tell_running
        """Given the lane and the edit of what its running turn is about."""
        self._on_rewritten = on_rewritten
        """Given a lane whose transcript says something else now."""

    async def apply(self, message: InboundMessage) -> Receipt:
        """Carry a change out once; one of a message that nobody knows is refused."""
        noted = await self._ledger.note(message, ItemKind.CHANGE)
        if not isinstance(noted, Noted):
            return noted
        known = await self._carry_out(message, noted.session_key)
        outcome = Outcome.APPLIED if known else Outcome.CANCELLED
        settle = partial(verbs.carried_out, noted, outcome, "person")
        await self._ledger.change(lambda change: settle(change.now))
        if not known:
            reason = RejectReason.UNKNOWN
            return Rejected(reason=reason, text=refusal(reason), session_key=noted.session_key)
        return Accepted(
            seq=noted.seq,
            session_key=noted.session_key,
            session_id=await self._session_of(noted.session_key),
            disposition=Disposition.APPLIED,
        )

    async def _carry_out(self, message: InboundMessage, session_key: str) -> bool:
        edited = message.kind is MessageKind.EDIT
        found = await self._ledger.reword(_original(message), message if edited else None)
        if found is None:
            content = turn_content([message]) if edited else None
            return await self._rewrite(session_key, message.message_id, content)
        if found.running and edited:
            await self._tell_running(found.session_key, message)
        if found.running or found.dead:
            self._on_rewritten(found.session_key)
        return True

    async def _rewrite(self, session_key: str, name: str | None, content: Content | None) -> bool:
        """Change it in all sessions of the lane: it may have been said before a reset, and be in a branch."""
        if name is None:
            return False
        changed = False
        for session_id in await self._db.read(partial(rewriting.holding, session_key, name)):
            if content is not None:
                changed |= await self._db.edit_message(session_id, name, content)
            else:
                changed |= await self._db.retract_message(session_id, name)
        if changed:
            self._on_rewritten(session_key)
        return changed

    async def _session_of(self, session_key: str) -> str | None:
        entry = await self._db.read(partial(entries.load, session_key))
        return entry.session_id if entry is not None else None


def _original(message: InboundMessage) -> str:
    """The name under which the message came that is changed."""
    original = msgspec.structs.replace(message, kind=MessageKind.NEW, revision=0)
    return original.idempotency_key or ""
