"""Methods of `SessionStore` for the session of a lane: find, note, suspend, set, list and explain."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from types import NoneType
from typing import Final

from gateway_sessions.core.checks import check_value
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import check_duration
from gateway_sessions.core.notices.notice_texts import reset_note
from gateway_sessions.core.sessions.entry import (
    SessionEntry,
    check_one_line_reason,
    check_tokens,
    clean_model_override,
)
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.sessions.reset_times import zone_named
from gateway_sessions.core.transcript.session_context_prompt import build_session_context_prompt
from gateway_sessions.errors import InvalidInputError, UnidentifiedSourceError
from gateway_sessions.runtime.observability.explain import Explanation, Rules, explain_lane
from gateway_sessions.runtime.session_prompt import build_session_context
from gateway_sessions.runtime.store.open_store import OpenStore
from gateway_sessions.storage.tables import entries
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.sessions import lane_changes, lists
from gateway_sessions.storage.transactions.sessions.lane_changes import EndOfTurn

PAGE: Final = 100


class SessionMethods(OpenStore):
    """Methods of `SessionStore` about the sessions of lanes and what is set for them."""

    async def get_or_create_session(
        self,
        source: SessionSource,
        force_new: bool = False,  # noqa: FBT001, FBT002 -- the established signature
        touch: bool = True,  # noqa: FBT001, FBT002 -- the established signature
    ) -> SessionEntry:
        """The session that a message from *source* belongs to: the current one, or a new one in its place.

        *touch* is False for heartbeats and cron jobs, which must not keep a session alive.
        """
        self._check_running()
        if not source.has_identifier and not self.config.allow_unidentified_sources:
            raise UnidentifiedSourceError(source.platform)
        entry = await self._parts.routing.session_for(source, force_new=force_new, touched=touch)
        await self._wait_for_snapshot()
        return entry

    async def update_session(
        self,
        session_key: str,
        last_prompt_tokens: int | None = None,
        *,
        session_id: str | None = None,
        touch: bool = True,
    ) -> SessionEntry | None:
        """Note the end of a turn: the person was answered now, and has been told of a reset.

        With *session_id*, a turn that ended after its session was replaced changes nothing. *touch* is False
        for the turn of a heartbeat or cron job, which answered nobody and must not keep a session alive.
        """
        tokens = last_prompt_tokens
        turn = EndOfTurn(
            session_key=session_key,
            session_id=session_id,
            last_prompt_tokens=tokens if tokens is None else check_tokens("last_prompt_tokens", tokens),
            touch=touch,
            known=self._cache.get(session_key),
        )
        entry = await self._write(Actor.PERSON, partial(lane_changes.settle_clocks, turn=turn))
        if entry is not None:
            self._parts.routing.remember_entry(entry)  # else the next message would have to look
            self._parts.titling.consider_session(entry.session_id)
        return entry

    async def suspend_session(self, session_key: str, reason: str = "suspended") -> bool:
        """Make the next message start afresh, whatever the policy says; False if the lane has no session."""
        transaction = partial(
            lane_changes.suspend_session, session_key=session_key, reason=check_one_line_reason(reason)
        )
        return await self._write(Actor.PERSON, transaction) is not None

    async def mark_resume_pending(self, session_key: str, reason: str = ResumeReason.RESTART_TIMEOUT) -> bool:
        """Note that a turn was cut off; False if there is no session, or it may not go on."""
        transaction = partial(
            lane_changes.mark_resume_pending, session_key=session_key, reason=check_one_line_reason(reason)
        )
        return await self._write(Actor.RECOVERY, transaction) is not None

    async def clear_resume_pending(self, session_key: str) -> bool:
        """Note that a turn succeeded; False if no cut-off turn was waiting."""
        transaction = partial(lane_changes.clear_resume_pending, session_key=session_key)
        cleared = await self._write(Actor.RECOVERY, transaction)
        await self._parts.restart.refresh()
        return cleared is not None

    async def suspend_recently_active(self, max_age_seconds: float = 120) -> int:
        """Treat sessions used lately as cut off by a crash: for gateways that do not lease lanes."""
        max_age = check_duration("max_age_seconds", seconds=max_age_seconds)
        marked = await self._parts.restart.suspend_recently_active(max_age)
        await self._wait_for_snapshot()
        return len(marked)

    async def prune_old_entries(self, max_age_days: float | None) -> int:
        """Forget lanes not written to for that long; their next message starts without any history."""
        if max_age_days is None or max_age_days <= 0:
            return 0
        pruned = await self._parts.pruner.sweep(check_duration("max_age_days", days=max_age_days))
        await self._wait_for_snapshot()
        return pruned

    async def set_model_override(
        self, session_key: str, override: Mapping[str, object] | None
    ) -> SessionEntry | None:
        """Choose a model for this session; credentials are left out."""
        check_value("override", override, Mapping, NoneType)
        return await self._configure(session_key, "model_override", clean_model_override(override))

    async def set_reset_policy(
        self, session_key: str, policy: SessionResetPolicy | None
    ) -> SessionEntry | None:
        """Give this session a policy of its own."""
        check_value("policy", policy, SessionResetPolicy, NoneType)
        return await self._configure(session_key, "reset_policy", policy)

    async def set_zone(self, session_key: str, zone: str | None) -> SessionEntry | None:
        """Tell in which time zone the people of this chat live."""
        check_value("zone", zone, str, NoneType)
        return await self._configure(session_key, "zone", None if zone is None else zone_named(zone).key)

    # Looking

    async def list_sessions(
        self,
        active_minutes: float | None = None,
        *,
        scope: Scope,
        limit: int = PAGE,
        after: SessionEntry | None = None,
    ) -> list[SessionEntry]:
        """Return the entries that *scope* may see, the latest written first; *after* is the last one read."""
        if limit < 1:
            problem = f"limit = {limit} must be 1 or more"
            raise InvalidInputError(problem)
        since = None
        if active_minutes is not None:
            since = self._clock.now() - check_duration("active_minutes", minutes=active_minutes)
        return await self._read(partial(lists.list_entries, scope, since, after, limit))

    async def lookup_by_session_id(self, session_id: str, *, scope: Scope) -> SessionEntry | None:
        """The entry that holds a session now, if *scope* may see it."""
        return await self._read(partial(lists.entry_of_session, session_id, scope)) if session_id else None

    async def get_session(self, session_key: str) -> SessionEntry | None:
        """The lane's entry as it is, without judging it."""
        entry = await self._read(partial(entries.load, session_key, self._cache.get(session_key)))
        if entry is not None:
            self._cache.put(entry)
        return entry

    async def peek_session_id(self, session_key: str) -> str | None:
        """The id of the lane's session, without touching it."""
        entry = await self.get_session(session_key)
        return entry.session_id if entry is not None else None

    async def has_any_sessions(self) -> bool:
        """Return whether there has ever been a session."""
        return await self._read(lists.any_session)

    async def explain(self, session_key: str) -> Explanation:
        """Why the lane has the session it has, and what its next message will do."""
        self._check_running()
        context = self._parts.context
        rules = Rules(now=context.clock.now(), policies=context.policies, freshness=context.freshness)
        active_work = await context.has_active_work(session_key)
        return await explain_lane(context.db, session_key, rules, active_work=active_work)

    def session_prompt(
        self,
        source: SessionSource,
        entry: SessionEntry | None = None,
        *,
        connected: Collection[str] | None = None,
    ) -> str:
        """Return the block of a system prompt that says where the agent talks; it is stable between turns.

        *connected* names the platforms that are; without it, those that the configuration enables. With
        `privacy.redact_pii`, pseudonyms made with this store's own secret stand for names and ids. A first
        turn after an automatic reset has one more line at the end, which says so.
        """
        pseudonyms = self._parts.context.pseudonyms if self.config.privacy.redact_pii else None
        context = build_session_context(source, self.config, entry, connected=connected)
        prompt = build_session_context_prompt(context, pseudonyms=pseudonyms)
        note = reset_note(entry) if entry is not None else None
        return prompt if note is None else f"{prompt}\n\n{note}"

    async def _configure(self, session_key: str, name: str, value: object) -> SessionEntry | None:
        configure = partial(lane_changes.configure_session, session_key=session_key, settings={name: value})
        return await self._write(Actor.PERSON, configure)
