"""Methods of `SessionStore` that give lanes from before named accounts to those accounts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeVar

from gateway_sessions.core.identity.account_lane_assignment import (
    LaneChoice,
    LanesReport,
    choose_accounts,
    fallback_accounts,
)
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.store.open_store import OpenStore
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.sessions import account_lanes as transactions
from gateway_sessions.storage.transactions.upkeep import erasure

T = TypeVar("T")

PAGE: Final = 50
"""Lanes in one transaction: more together are quicker, and keep others waiting."""

logger: Final = logging.getLogger(__name__)


class AccountMethods(OpenStore):
    """Methods of `SessionStore` about the named accounts of platforms."""

    async def assign_lanes(
        self, accounts: Mapping[str, str] | None = None, *, unnamed_too: bool = False, dry_run: bool = False
    ) -> LanesReport:
        """Give lanes that named accounts used before they had lanes of their own to those accounts.

        *accounts* says by platform which one gets lanes of which nobody knows who used them; *unnamed_too*,
        also those of the account without a name, which is called so from now on.
        """
        self._check_running()
        db = self._parts.context.db
        if dry_run:
            return await rehearse_lane_assignment(db, accounts, unnamed_too=unnamed_too)
        return await self._give_lanes(await _choose_account_lanes(db, accounts, unnamed_too=unnamed_too))

    async def adopt_lanes(self, serving: Collection[tuple[str, str]]) -> None:
        """Do so for the accounts that a gateway serves, once for each platform; a gateway calls it itself."""
        self._check_running()
        db = self._parts.context.db
        platforms = sorted({platform for platform, _ in serving})
        settled = await db.read(partial(transactions.settled_platforms, platforms))
        if not (new := [one for one in platforms if one not in settled]):
            return
        if await db.read(erasure.unfinished_erasures):  # it knows its lanes by the keys that they have now
            return
        fallback = {name: to for name, to in fallback_accounts(serving).items() if name in new}
        named = frozenset(platform for platform, account in serving if account and platform in new)
        report = LanesReport()
        if named:
            report = await self._give_lanes(await _choose_account_lanes(db, fallback, platforms=named))
            self._report_lanes(report)
        if not any(one.busy for one in report.left):
            await db.write(partial(transactions.settle_platforms, new))

    async def _give_lanes(self, choices: list[LaneChoice]) -> LanesReport:
        report, apply = LanesReport(), self._parts.context.apply
        for at in range(0, len(choices), PAGE):
            give = partial(transactions.give_lanes, choices=choices[at : at + PAGE])
            report = report.joined_with(await apply(Actor.OPERATOR, give))
        if choices:
            self._cache.clear()
            await self._parts.queue.refresh_counts()
        return report

    def _report_lanes(self, report: LanesReport) -> None:
        facts = {"moved": len(report.moved), "linked": len(report.linked), "left": len(report.left)}
        if any(facts.values()):
            logger.info("lanes were given to named accounts", extra={"action": "lanes_assigned", **facts})
        for one in report.linked:
            detail = f"{one.session_key} shared session {one.session_id} with {one.kept_by}, which keeps it"
            self._parts.incidents.report("shared_lane_split", f"{detail}; it begins a session linked to that")
        for left in report.left:
            detail = f"{left.session_key} was not given to account {left.account!r}: {left.problem}"
            self._parts.incidents.report("lane_left", detail)


async def rehearse_lane_assignment(
    db: SessionDB, accounts: Mapping[str, str] | None = None, *, unnamed_too: bool = False
) -> LanesReport:
    """Say what `SessionStore.assign_lanes` would do, in a store that is only read."""
    report = LanesReport(dry_run=True)
    for choice in await _choose_account_lanes(db, accounts, unnamed_too=unnamed_too):
        report = report.joined_with(await db.read(partial(transactions.plan_lane_assignment, choice)))
    return report


async def _choose_account_lanes(
    db: SessionDB,
    fallback: Mapping[str, str] | None,
    *,
    platforms: frozenset[str] | None = None,
    unnamed_too: bool = False,
) -> list[LaneChoice]:
    fallback = fallback or {}
    read: Callable[[], Transaction[list[str]]] = partial(transactions.lanes_of_platforms, sorted(fallback))
    used = await db.read(partial(transactions.accounts_used, platforms))
    return choose_accounts(used, await db.read(read), fallback, unnamed_too=unnamed_too)
