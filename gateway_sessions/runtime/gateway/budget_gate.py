"""The gate that asks before each turn whether its budgets allow it, and warns people.

What turns that run at the same time use is counted when they end; so several at once may go over a budget,
each by what it uses itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeAlias

from cachetools import LRUCache

from gateway_sessions.core.notices.notice_texts import budget_stop, budget_warning
from gateway_sessions.core.queue.state_machine import TurnOutcome
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.state_machine import policy_for
from gateway_sessions.core.usage.budgets import (
    Allowed,
    BudgetLimit,
    BudgetOf,
    BudgetPlan,
    Budgets,
    BudgetUnit,
    BudgetUse,
    Stop,
    plan_budget,
)
from gateway_sessions.runtime.gateway.running_turn import TurnAdmission
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.runtime.store.store import SessionStore

REMEMBERED: Final = 4096
"""Of so many sessions it is known what their people were told today."""
NOTICED_OUTCOMES: Final = frozenset({TurnOutcome.TURNED, TurnOutcome.DEAD})
"""How a turn ends whose notices people get."""

_Day: TypeAlias = tuple[str, datetime]
_Told: TypeAlias = frozenset[tuple[BudgetOf, BudgetUnit]]


class BudgetGate:
    """Lets turns pass as long as there is something left to spend."""

    def __init__(self, store: SessionStore, budgets: Budgets, policies: PolicyBook) -> None:
        self._store = store
        self._budgets = budgets
        self._policies = policies
        self._told_of: LRUCache[_Day, _Told] = LRUCache(REMEMBERED)
        self._waiting_notices: dict[str, tuple[_Day, _Told]] = {}
        """By lane, what people are told when its turn ends."""
        self.has_limits: bool = has_limits(budgets)
        """Whether any budget is limited: if none is, nobody need ask."""

    async def admit_turn(self, turn: Turn) -> TurnAdmission:
        """Whether the turn may run, and what people have to know of its budgets."""
        if not self.has_limits:
            return TurnAdmission()
        entry, quiet = turn.entry, all(one.internal for one in turn.messages)
        plan, day = await self._plan_by_budgets(entry)
        if isinstance(plan, Stop):
            self._emit_uses(EventKind.BUDGET_STOP, entry, plan.reached)
            zone = policy_for(entry, self._policies).zone
            notice = None if quiet else budget_stop(plan, self._store.clock.now(), zone)
            return TurnAdmission(allowed=False, notice=notice)
        if isinstance(plan, Allowed) or quiet:
            return TurnAdmission()
        told = self._told_of.get((entry.session_id, day), frozenset())
        new = [use for use in plan.reached if (use.budget, use.unit) not in told]
        if not new:
            return TurnAdmission()
        now_told = told | {(use.budget, use.unit) for use in new}
        self._waiting_notices[entry.session_key] = ((entry.session_id, day), now_told)
        self._emit_uses(EventKind.BUDGET_WARNING, entry, new)
        return TurnAdmission(notice=budget_warning(new))

    def note_turn_end(self, turn: Turn, outcome: TurnOutcome) -> None:
        """The turn has ended: what people were to be told, they were told if it ended like that."""
        notices = self._waiting_notices.pop(turn.session_key, None)
        if notices is not None and outcome in NOTICED_OUTCOMES:
            self._told_of[notices[0]] = notices[1]

    async def allows_spending(self, entry: SessionEntry) -> bool:
        """Whether more may be spent for a session that nobody waits for."""
        return not self.has_limits or not isinstance((await self._plan_by_budgets(entry))[0], Stop)

    async def _plan_by_budgets(self, entry: SessionEntry) -> tuple[BudgetPlan, datetime]:
        zone = policy_for(entry, self._policies).zone_name
        spent = await self._store.db.spent(entry.session_id, zone=zone)
        return plan_budget(self._budgets, spent), spent.day_began

    def _emit_uses(
        self, kind: EventKind, entry: SessionEntry, uses: list[BudgetUse] | tuple[BudgetUse, ...]
    ) -> None:
        for use in uses:
            self._store.events.emit(
                kind,
                entry.session_key,
                entry.session_id,
                budget=str(use.budget),
                unit=str(use.unit),
                limit=use.limit,
                spent=use.spent,
                percent=use.percent,
                frees_up_at=use.frees_up_at,
            )


def has_limits(budgets: Budgets) -> bool:
    """Whether anything is limited at all."""
    return any(one != BudgetLimit() for one in (budgets.session, budgets.person, budgets.day))
