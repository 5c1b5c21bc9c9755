"""The last call to an agent whose session ended by itself, so that it can save what it needs.

The end of a session and the owed call are one transaction, because the call is a hook of the store; so the
new session waits for nothing. The call is made at most once for each end of a session: a call that fails or
is cut off is given up, and listed with the hook calls that were given up. The agent's answer is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import anyio

from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.transcript.model_history import Chat, model_rows
from gateway_sessions.core.usage.usage_events import Usage, UsageFacts, make_usage
from gateway_sessions.runtime.agents.cache import AgentCache, AgentSettings, make_agent, validity_of
from gateway_sessions.runtime.agents.protocol import Agent, AgentSource, Farewelling, SessionEnding
from gateway_sessions.runtime.duties.session_hooks import SessionFinalized
from gateway_sessions.runtime.gateway.budget_gate import BudgetGate
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.runtime.user_code import run_in_fresh_context
from gateway_sessions.storage.transactions.queue import claim
from gateway_sessions.storage.transactions.sessions import lists
from gateway_sessions.storage.transactions.transcripts import usage as usages

HOOK: Final = "gateway.farewell"
"""The name of the hook in the store."""
TASK: Final = "farewell"
"""The task for which the use of models is counted."""
GRACE: Final = timedelta(seconds=1)
"""The time that an agent gets for its clean-up after it was cut off."""
REASONS: Final = frozenset(
    {EndReason.IDLE, EndReason.DAILY, EndReason.CRON, EndReason.RESUME_PENDING_EXPIRED}
)
"""The reasons for which a session ends by itself; only such an end is announced to its agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewells:
    """Calls the agents of a gateway when their sessions end."""

    store: SessionStore
    source: AgentSource
    cache: AgentCache
    budgets: BudgetGate
    settings: AgentSettings | None
    limit: timedelta | None
    """The time that an agent may take; None: no agent is called."""

    def register_hook(self) -> None:
        """Call agents at the end of their sessions from now on, unless no agent wants that."""
        if self.limit is not None and self.source.farewells is not False:
            self.store.hooks.register(self._on_session_end, name=HOOK, once_within=self.limit)

    async def unregister_hook(self) -> None:
        """Wait for calls under way, and make no more; the next gateway makes those that are owed."""
        await self.store.hooks.unregister(HOOK)

    async def _on_session_end(self, event: SessionFinalized) -> None:
        """Call the agent of a session that has ended by itself."""
        if event.reason not in REASONS or self.source.farewells is False:
            return
        entry = await self.store.db.read(partial(lists.ended_entry, event.session_id))
        if entry is None:  # it was brought back or erased
            return
        history = await self.store.load_transcript(event.session_id)
        if not history:
            return
        outcome: str | None = "failed"
        try:
            outcome = await self._call_agent(event, entry, history)
        finally:
            if outcome is not None:
                where = (event.session_key, event.session_id)
                self.store.events.emit(EventKind.FAREWELL, *where, reason=str(event.reason), outcome=outcome)

    async def _call_agent(
        self, event: SessionFinalized, entry: SessionEntry, history: list[Chat]
    ) -> str | None:
        """Return the outcome in a word; None if the agent has no `on_session_ending`."""
        deadline = self.store.clock.now() + (self.limit or timedelta())
        if not await self.budgets.allows_spending(entry):
            return "no_budget"
        used: list[Usage] = []

        def note(facts: UsageFacts) -> None:
            event_id = f"{event.idempotency_key}:{len(used) + 1}"
            used.append(make_usage(event_id, self.store.clock.now(), **(UsageFacts(task=TASK) | facts)))

        ending = SessionEnding(
            entry=entry,
            reason=event.reason,
            history=model_rows(history),
            deadline=deadline,
            idempotency_key=event.idempotency_key,
            note_usage=note,
        )
        agent = await self._agent_of(entry, history)
        try:
            if not isinstance(agent, Farewelling):
                return None
            last_word = partial(agent.on_session_ending, ending)
            await run_in_fresh_context("the agent's farewell", last_word, self.store.clock, grace=GRACE)
        finally:
            if agent is not self.source.shared:
                self.cache.discard(agent)
            with anyio.CancelScope(shield=True):
                for usage in used:
                    await self.store.db.write(partial(usages.record_usage, entry.session_id, usage, usage.at))
        return "said"

    async def _agent_of(self, entry: SessionEntry, history: list[Chat]) -> Agent:
        """Return the shared agent, the session's warm agent, or a new one."""
        if self.source.shared is not None:
            return self.source.shared
        key, session_id = entry.session_key, entry.session_id
        version = await self.store.db.read(partial(claim.transcript_version, session_id))
        validity = validity_of(entry, version, self.settings)
        warm = self.cache.check_out(key, validity) if self.cache.holds(key, validity) else None
        if warm is not None:
            return warm
        return await make_agent(self.source, self.cache, entry, history)
