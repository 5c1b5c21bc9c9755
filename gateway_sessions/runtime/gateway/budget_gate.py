"""The gate that asks before each turn whether its budgets allow it, and warns people.

The use of a turn is counted when the turn ends. So several turns at the same time may exceed a budget, each
by its own use.
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
"""The number of sessions whose warnings of today are remembered."""
NOTICED_OUTCOMES: Final = frozenset({TurnOutcome.TURNED, TurnOutcome.DEAD})
"""The outcomes of turns whose notices people get."""

_Day: TypeAlias = tuple[str, datetime]
_Told: TypeAlias = frozenset[tuple[BudgetOf, BudgetUnit]]


class BudgetGate:
    """Lets turns run as long as their budgets allow more use."""

    def __init__(self, store: SessionStore, budgets: Budgets, policies: PolicyBook) -> None:
        self._store = store
        self._budgets = budgets
        self._policies = policies
        self._told_of: LRUCache[_Day, _Told] = LRUCache(REMEMBERED)
        self._waiting_notices: dict[str, tuple[_Day, _Told]] = {}
        """By lane, the warnings that people get when the turn ends."""
        self.has_limits: bool = has_limits(budgets)
        """Whether any budget is limited; without a limit, nobody need ask the gate."""

    async def admit_turn(self, turn: Turn) -> TurnAdmission:
        """Return whether the turn may run, with the notice that people get about its budgets."""
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
        """Remember the warnings of the turn as told, if people get the notices of such an outcome."""
        notices = self._waiting_notices.pop(turn.session_key, None)
        if notices is not None and outcome in NOTICED_OUTCOMES:
            self._told_of[notices[0]] = notices[1]

    async def allows_spending(self, entry: SessionEntry) -> bool:
        """Return whether more may be spent for a session; for calls of agents that nobody waits for."""
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
    """Return whether any of the budgets is limited."""
    return any(one != BudgetLimit() for one in (budgets.session, budgets.person, budgets.day))
