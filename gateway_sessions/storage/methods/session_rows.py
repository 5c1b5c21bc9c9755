"""Sessions made by hand, and what is known of any session."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from gateway_sessions.core.field_types import check_value
from gateway_sessions.core.instants import instant_of
from gateway_sessions.core.messages import NO_EXTRA
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.session_record import Relation, SessionRecord
from gateway_sessions.core.storable import Intake, check_choice
from gateway_sessions.storage.verb_runner import VerbRunner
from gateway_sessions.storage.verbs import session_rows
from gateway_sessions.storage.verbs.session_rows import UNKNOWN_SOURCE, NewSession


class SessionRowMethods(VerbRunner):
    """The rows of sessions. Sessions of a lane come and go with their lane, through `SessionStore`."""

    async def create_session(
        self,
        session_id: str,
        source: str,
        *,
        model: str | None = None,
        model_config: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        relation: Relation | str | None = None,
        session_key: str | None = None,
        started_at: datetime | float | None = None,
        extra: Mapping[str, Any] = NO_EXTRA,
    ) -> str:
        """Make a session; of one that is there already, fill in what is not known. Returns its id.

        `SentBeforeErasureError` if it began before its owner was erased.
        """
        new = NewSession(
            session_id=session_id,
            source=source,
            started_at=instant_of("started_at", started_at) or self._clock.now(),
            is_new=started_at is None,
            user_id=user_id,
            session_key=session_key,
            parent_session_id=parent_session_id,
            relation=None if relation is None else check_choice("relation", relation, Relation),
            model=model,
            model_config=model_config,
            system_prompt=system_prompt,
            extra=extra,
        )
        return await self.write(partial(session_rows.create, new, self.change_ids))

    async def ensure_session(
        self, session_id: str, source: str = UNKNOWN_SOURCE, model: str | None = None, **known: Any
    ) -> str:
        """Make a session unless it is there: for whoever has messages of it and cannot tell."""
        return await self.create_session(session_id, source, model=model, **known)

    async def get_session(self, session_id: str) -> SessionRecord | None:
        """All that is known of a session; None if there is none."""
        return await self.read(partial(session_rows.get, session_id))

    async def end_session(self, session_id: str, end_reason: str) -> bool:
        """End a session; False if it has ended already: the first reason stands.

        One that a lane has now is a `SessionOnLaneError`: it ends with `reset_session` of the store.
        """
        return await self.write(partial(session_rows.end_row, session_id, end_reason, self._clock.now()))

    async def reopen_session(self, session_id: str) -> bool:
        """Let a session go on that had ended; False if it had not. Not for the current session of a lane."""
        return await self.write(partial(session_rows.reopen_row, session_id))

    async def update_system_prompt(self, session_id: str, system_prompt: str | None) -> None:
        """Remember what the model is told before anything else."""
        await self._change("set_system_prompt", session_id, Intake().text("system_prompt", system_prompt))

    async def note_system_prompt(self, session_id: str, system_prompt: str) -> bool:
        """Remember what the model was told first; False if that is known, or there is no such session."""
        prompt = Intake().text("system_prompt", system_prompt) or ""
        return await self.write(partial(session_rows.note_prompt, session_id, prompt))

    async def update_session_model(
        self, session_id: str, model: str | None, model_config: Mapping[str, Any] | None = None
    ) -> None:
        """Remember which model answers from now on, and how it is set if that is given."""
        config = Intake().json("model_config", None if model_config is None else dict(model_config))
        await self._change("set_session_model", session_id, Intake().text("model", model), config)

    async def set_session_pinned(self, session_id: str, *, pinned: bool = True) -> None:
        """Keep a session whatever retention says, or do so no longer."""
        check_value("pinned", pinned, bool)
        await self._change("set_session_pinned", session_id, int(pinned))

    async def message_count(self, session_id: str, *, include_hidden: bool = False) -> int:
        """How many messages are part of the conversation, or with *include_hidden* are stored at all."""
        return await self.read(
            partial(session_rows.count_messages, session_id, include_hidden=include_hidden)
        )

    async def session_count(
        self,
        source: str | None = None,
        *,
        scope: Scope,
        min_message_count: int = 0,
        include_archived: bool = False,
    ) -> int:
        """How many sessions *scope* may see."""
        verb = partial(
            session_rows.count,
            scope,
            source=source,
            min_message_count=min_message_count,
            include_archived=include_archived,
        )
        return await self.read(verb)

    async def _change(self, statement: str, session_id: str, *values: object) -> None:
        await self.write(partial(session_rows.change, statement, session_id, *values))
