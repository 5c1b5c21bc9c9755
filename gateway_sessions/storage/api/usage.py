"""Methods of `SessionDB` that record use of models, and that report sessions' use and insights."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Unpack

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import check_duration, parse_instant
from gateway_sessions.core.sessions.entry import check_session_id
from gateway_sessions.core.sessions.reset_times import zone_named
from gateway_sessions.core.usage.budgets import Spent, day_around
from gateway_sessions.core.usage.insights import Insights
from gateway_sessions.core.usage.usage_events import (
    SessionUsage,
    UsageFacts,
    check_cost,
    check_event_id,
    check_optional_word,
    make_usage,
)
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner
from gateway_sessions.storage.transactions.transcripts import usage
from gateway_sessions.storage.transactions.transcripts.usage import InsightQuery


class UsageMethods(TransactionRunner):
    """Use of models, its costs, and reports of it."""

    async def record_usage(
        self,
        session_id: str,
        event_id: str,
        *,
        at: datetime | float | str | None = None,
        **facts: Unpack[UsageFacts],
    ) -> bool:
        """Count one use of a model; False, and no row is changed, if that event was counted already.

        The caller chooses the id of the event, which is unique in the whole store. An unknown price is None:
        `amend_usage` stores it later.
        """
        now = self._clock.now()
        event = make_usage(event_id, parse_instant("at", at) or now, **facts)
        return await self.write(partial(usage.record_usage, check_session_id(session_id), event, now))

    async def amend_usage(
        self,
        event_id: str,
        actual_cost_usd: float,
        *,
        cost_source: str | None = None,
        pricing_version: str | None = None,
    ) -> bool:
        """Store the actual cost of an event, once; False if it was stored already."""
        cost = check_cost("actual_cost_usd", actual_cost_usd)
        if cost is None:
            problem = "actual_cost_usd must be a number: it can only become known"
            raise InvalidInputError(problem)
        source = (
            check_optional_word("cost_source", cost_source),
            check_optional_word("pricing_version", pricing_version),
        )
        transaction = partial(
            usage.set_actual_cost, check_event_id(event_id), cost, source, self._clock.now()
        )
        return await self.write(transaction)

    async def usage_of_session(self, session_id: str) -> SessionUsage:
        """Return the use of a session, by model and task."""
        return await self.read(partial(usage.usage_of_session, check_session_id(session_id)))

    async def spent(self, session_id: str, *, zone: str = "UTC") -> Spent:
        """Return the use that counts against the budgets of a session's next turn, today in *zone*."""
        day = day_around(self._clock.now(), zone_named(zone))
        return await self.read(partial(usage.usage_for_budgets, check_session_id(session_id), day))

    async def insights(
        self, days: float = 30, *, scope: Scope, source: str | None = None, zone: str = "UTC"
    ) -> Insights:
        """Return a report of the last days, as far as *scope* sees them; hours are those of *zone*."""
        until = self._clock.now()
        span = check_duration("days", days=days)
        if span <= timedelta(0):
            problem = "days must be more than 0"
            raise InvalidInputError(problem)
        question = InsightQuery(
            since=until - span, until=until, scope=scope, source=source, zone=zone_named(zone)
        )
        # A reader of its own, because the report may take a second or two and other reads must not wait.
        async with self.view() as reader:
            return await reader.read(partial(usage.load_insights, question))
