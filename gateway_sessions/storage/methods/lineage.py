"""Which sessions belong together, and how one comes from another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from gateway_sessions.core.field_types import check_value
from gateway_sessions.core.messages import Message, message_of
from gateway_sessions.core.row_ids import row_id
from gateway_sessions.storage.verb_runner import VerbRunner
from gateway_sessions.storage.verbs import lineage as verbs
from gateway_sessions.storage.verbs import splitting
from gateway_sessions.storage.verbs.splitting import Descent


class LineageMethods(VerbRunner):
    """Compressions, branches, and the way from any session to where its conversation began or goes on."""

    async def split_session(
        self,
        session_id: str,
        new_session_id: str,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> str:
        """End a session by compression: *messages*, a summary of it, go on in a new one. Returns its id.

        All in one step: the lane follows, and the old session stays readable. Of several callers one makes
        the continuation; the others get its id. A session that ended otherwise is a `SessionEndedError`.
        """
        descent = self._descent(session_id, new_session_id, model=model, system_prompt=system_prompt)
        summary = [message_of(one) for one in messages]
        return await self.write(partial(splitting.split, descent, summary))

    async def branch_session(
        self, session_id: str, new_session_id: str, *, at_message_id: int | str | None = None
    ) -> str:
        """Copy what was said, up to and with that message, to a new session; the old one goes on. Its id."""
        descent = self._descent(session_id, new_session_id)
        at = None if at_message_id is None else row_id("at_message_id", at_message_id)
        return await self.write(partial(splitting.branch, descent, at))

    async def get_compression_tip(self, session_id: str) -> str:
        """Where a compressed session goes on today; any other one is its own tip."""
        return await self.read(partial(verbs.tip, session_id))

    async def get_compression_lineage(self, session_id: str) -> list[str]:
        """The sessions from the first to the tip of which each continues the one before."""
        return await self.read(partial(verbs.chain, session_id))

    async def get_conversation_root(self, session_id: str) -> str:
        """The session that it all began with: compressions, branches and delegations are followed back."""
        return await self.read(partial(verbs.root, session_id))

    async def get_session_family(self, session_id: str) -> list[str]:
        """All sessions with the same conversation root, in the order of their ids."""
        return await self.read(partial(verbs.family, session_id))

    async def resolve_resume_session_id(self, session_id: str | None) -> str | None:
        """The session to go on with for an id: the latest of its line with messages; nothing for nothing."""
        if not session_id:
            return session_id
        return await self.read(partial(verbs.to_resume, session_id))

    async def set_session_archived(self, session_id: str, *, archived: bool = True) -> None:
        """Leave a session out of lists, with all that it continues and is continued by; or do so no longer.

        `SessionNotFoundError` if there is no such session.
        """
        check_value("archived", archived, bool)
        await self.write(partial(verbs.archive, session_id, archived=archived))

    def _descent(self, session_id: str, new_session_id: str, **answered: str | None) -> Descent:
        return Descent(
            session_id=session_id,
            new_session_id=new_session_id,
            now=self._clock.now(),
            ids=self.change_ids,
            **answered,
        )
