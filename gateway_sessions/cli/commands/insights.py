"""`insights`, `explain` and `simulate`: what happened, why, and what other policies would have done."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import Source, command, number_from
from gateway_sessions.cli.lookup import find_lane
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.notices.human_units import DAY, parse_duration

if TYPE_CHECKING:
    from datetime import datetime

    from gateway_sessions.cli.context import CommandContext
    from gateway_sessions.cli.output.terminal import ReportProgress
    from gateway_sessions.config.origins import FieldOrigin
    from gateway_sessions.core.identity.keys import Sharing
    from gateway_sessions.core.sessions.entry import SessionEntry
    from gateway_sessions.core.sessions.policy_rules import PolicyBook, ResolvedPolicy
    from gateway_sessions.core.sessions.simulation import WouldReset
    from gateway_sessions.runtime.observability.explain import Explanation
    from gateway_sessions.runtime.operator.store_client import StoreClient

app: Final = typer.Typer()

LANES: Final = 500
"""The number of lanes that are read at a time."""


@command(app, "insights")
async def insights(
    context: CommandContext,
    *,
    days: Annotated[
        float, typer.Option(parser=number_from(0.01), help="The number of days.", metavar="N")
    ] = 30,
    source: Source = None,
    zone: Annotated[
        str | None,
        typer.Option(help="The time zone of dates and hours. Default: the configured one.", metavar="ZONE"),
    ] = None,
) -> None:
    """Report what happened in the last days. Platforms, models, tools, costs, times of day."""
    from gateway_sessions.cli.output.reports import insights_page

    zone = zone or context.home_and_config()[1].policy_book().zone_name
    async with context.open_client() as client:
        report = await client.db.insights(days, scope=Scope.operator(), source=source, zone=zone)
    context.answer([report], partial(insights_page, report, days))


@command(app, "explain")
async def explain(
    context: CommandContext,
    *,
    key: Annotated[str, typer.Argument(help="A session key, or a session on that lane.", metavar="KEY")],
) -> None:
    """Explain the state of a lane. Its session, its next reset, and what the next message will do."""
    from gateway_sessions.cli.output.reports import explanation_page

    async with context.open_client() as client:
        lane = await find_lane(client, key)
        answer = await client.explain(lane)
        listed = await client.queued(lane)
    waiting = sum(not (one.running or one.cut_off) for one in listed)
    origins, sharing = _policy_origins(context, answer), _sharing_rule(answer.entry)
    page = partial(explanation_page, answer, origins, sharing, waiting)
    context.answer([answer], page, queue=listed, policy_fields=origins, sharing=sharing)


def _policy_origins(context: CommandContext, answer: Explanation) -> list[FieldOrigin]:
    from gateway_sessions.config.origins import policy_origins, written_values

    entry, policy = answer.entry, answer.policy
    if entry is None or policy is None:
        return []
    written = written_values(context.config_path)
    return policy_origins(policy, written, entry.platform, entry.chat_type, entry.zone)


def _sharing_rule(entry: SessionEntry | None) -> Sharing | None:
    """Return the rule by which the lane got its key, if its session has an origin."""
    from gateway_sessions.core.identity.keys import sharing_rule

    if entry is None or entry.origin is None:
        return None
    return sharing_rule(entry.chat_type, entry.origin.thread_id, entry.owner)


@command(app, "simulate")
async def simulate(
    context: CommandContext,
    *,
    policy: Annotated[Path, typer.Option(help="A configuration with the policies to try.", metavar="FILE")],
    since: Annotated[
        str, typer.Option("--from", help="The time to look back, such as 30d.", metavar="TIME")
    ] = "30d",
) -> None:
    """Try reset policies on recorded messages. How many sessions would reset, when, for whom."""
    from gateway_sessions.cli.output.reports import simulation_page
    from gateway_sessions.config import load_config

    book, length = load_config(policy).policy_book(), parse_duration("--from", since)
    async with context.open_client() as client:
        with context.progress("Trying the policies on lanes") as report:
            lanes, found = await _simulate_resets(client, book, context.now() - length, report)
    by_lane = Counter(one.session_key for one in found)
    page = partial(simulation_page, found, by_lane, lanes, length / DAY)
    context.answer(found, page, lanes=lanes, lanes_resetting=len(by_lane))


async def _simulate_resets(
    client: StoreClient, book: PolicyBook, begin: datetime, report: ReportProgress
) -> tuple[int, list[WouldReset]]:
    """Return how many lanes were in use since *begin*, and the resets that the policies would have made."""
    from gateway_sessions.core.sessions.simulation import LaneActivity as Activity
    from gateway_sessions.core.sessions.simulation import simulate as resets_of
    from gateway_sessions.storage.transactions.sessions import lists as activity

    found: list[WouldReset] = []
    after, lanes = "", 0
    while keys := await client.db.read(partial(activity.list_lanes_since, begin, after, LANES)):
        for key in keys:
            tried = _policy_of_lane(key, await client.get_session(key), book)
            moments = await client.db.read(partial(activity.list_moments_on, key, begin))
            found += resets_of(Activity(key, tried, moments))
        after, lanes = keys[-1], lanes + len(keys)
        report(lanes, None)
    return lanes, found


def _policy_of_lane(key: str, entry: SessionEntry | None, book: PolicyBook) -> ResolvedPolicy:
    """Return the policy to try on a lane: a session's own policy stays."""
    from gateway_sessions.core.identity.keys import platform_and_chat_type
    from gateway_sessions.core.sessions.state_machine import policy_for

    return policy_for(entry, book) if entry is not None else book.resolve(*platform_and_chat_type(key))
