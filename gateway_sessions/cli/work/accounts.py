"""`sessiondb accounts`: lanes from before named accounts had lanes of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gateway_sessions.cli.commands.sessiondb import Accounts
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.core.account_lanes import LanesReport
from gateway_sessions.core.source import check_identifier
from gateway_sessions.core.telling import counted
from gateway_sessions.core.untrusted import visible
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.account_lanes import rehearse_assignment

UNKNOWN: Final = " (nothing tells whose it was)"


async def assign(context: CommandContext, asked: Accounts) -> None:
    """Give lanes to the accounts that used them, or say which would be given."""
    accounts = _accounts(asked.given or ())
    if asked.unnamed and not accounts:
        problem = "--unnamed needs the name: say PLATFORM=ACCOUNT, such as telegram=support"
        raise InvalidInputError(problem)
    async with context.open_dry_run() as db:
        report = await rehearse_assignment(db, accounts, unnamed_too=asked.unnamed)
    if not asked.dry_run and (report.moved or report.linked):
        context.confirm(_told(report).partition("\n")[0].rstrip(".:") + "?")
        async with context.open_owned() as store:
            report = await store.assign_lanes(accounts, unnamed_too=asked.unnamed)
    context.answer_text(_told(report), report)


def _accounts(given: Iterable[str]) -> dict[str, str]:
    """The account for each platform, of what was typed as `PLATFORM=ACCOUNT`."""
    found: dict[str, str] = {}
    for one in given:
        platform, _, account = one.partition("=")
        if not platform.strip() or not account.strip():
            problem = f"{one!r}: say PLATFORM=ACCOUNT, such as telegram=support"
            raise InvalidInputError(problem)
        check_identifier("account", account)
        found[platform.strip().lower()] = account
    return found


def _told(report: LanesReport) -> str:
    if not (report.moved or report.linked or report.left):
        return "Every lane is its account's already."
    give, link = ("Would give", "would link") if report.dry_run else ("Gave", "linked")
    lines = [f"{give} {counted(len(report.moved), 'lane')} to accounts, {link} {len(report.linked):,}:"]
    lines += [f"  {one.session_key} → {one.now}{'' if one.known else UNKNOWN}" for one in report.moved]
    lines += [f"  {one.session_key} begins anew, linked to {one.session_id}" for one in report.linked]
    lines += [f"  left: {one.session_key}: {one.problem}" for one in report.left]
    return visible("\n".join(lines))
