"""`insights`, `explain`, `simulate`: what happened, why, and what would have happened."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from functools import partial
from typing import Final

from gateway_sessions.cli.commands.alone import Explain, Insights, Simulate
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.lookup import find_lane
from gateway_sessions.cli.output.reports import explanation_page, insights_page, simulation_page
from gateway_sessions.cli.output.terminal import ReportProgress
from gateway_sessions.config import load_config
from gateway_sessions.config.origins import written_in
from gateway_sessions.config.policy_origins import FieldOrigin, policy_origins
from gateway_sessions.core.keys import Sharing, place_in, sharing_of
from gateway_sessions.core.lifecycle import policy_for
from gateway_sessions.core.policy_book import PolicyBook, ResolvedPolicy
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.core.simulation import Activity, WouldReset
from gateway_sessions.core.simulation import simulate as would
from gateway_sessions.core.telling import DAY, length_of
from gateway_sessions.runtime.explain import Explanation
from gateway_sessions.runtime.seat import Seat
from gateway_sessions.storage.verbs import activity

LANES: Final = 500
"""Read in one go."""


async def insights(context: CommandContext, asked: Insights) -> None:
    """Report what happened in the last days."""
    zone = asked.zone or context.place()[1].policy_book().zone_name
    async with context.open_client() as client:
        report = await client.db.insights(asked.days, scope=Scope.operator(), source=asked.source, zone=zone)
    context.answer([report], partial(insights_page, report, asked.days))


async def explain(context: CommandContext, asked: Explain) -> None:
    """Say why a lane is as it is."""
    async with context.open_client() as client:
        lane = await find_lane(client, asked.key)
        answer = await client.explain(lane)
        listed = await client.queued(lane)
    waiting = sum(not (one.running or one.cut_off) for one in listed)
    origins, sharing = _origins(context, answer), _sharing(answer.entry)
    page = partial(explanation_page, answer, origins, sharing, waiting)
    context.answer([answer], page, queue=listed, policy_fields=origins, sharing=sharing)


def _origins(context: CommandContext, answer: Explanation) -> list[FieldOrigin]:
    entry, policy = answer.entry, answer.policy
    if entry is None or policy is None:
        return []
    written = written_in(context.config_path)
    return policy_origins(policy, written, entry.platform, entry.chat_type, entry.zone)


def _sharing(entry: SessionEntry | None) -> Sharing | None:
    """By which rule the lane got its key, if its session tells where it comes from."""
    if entry is None or entry.origin is None:
        return None
    return sharing_of(entry.chat_type, entry.origin.thread_id, entry.owner)


async def simulate(context: CommandContext, asked: Simulate) -> None:
    """Try reset policies on what was recorded."""
    book, length = load_config(asked.policy).policy_book(), length_of("--from", asked.since)
    async with context.open_client() as client:
        with context.progress("Trying the policies on lanes") as tell:
            lanes, found = await _simulated(client, book, context.now() - length, tell)
    by_lane = Counter(one.session_key for one in found)
    page = partial(simulation_page, found, by_lane, lanes, length / DAY)
    context.answer(found, page, lanes=lanes, lanes_resetting=len(by_lane))


async def _simulated(
    client: Seat, book: PolicyBook, begin: datetime, tell: ReportProgress
) -> tuple[int, list[WouldReset]]:
    """How many lanes were in use since then, and what would have been reset on them."""
    found: list[WouldReset] = []
    after, lanes = "", 0
    while keys := await client.db.read(partial(activity.lanes_since, begin, after, LANES)):
        for key in keys:
            tried = _policy_on(key, await client.get_session(key), book)
            moments = await client.db.read(partial(activity.moments_on, key, begin))
            found += would(Activity(key, tried, moments))
        after, lanes = keys[-1], lanes + len(keys)
        tell(lanes, None)
    return lanes, found


def _policy_on(key: str, entry: SessionEntry | None, book: PolicyBook) -> ResolvedPolicy:
    """The policy that counts on a lane: a session's own one stays, whatever is tried on the others."""
    return policy_for(entry, book) if entry is not None else book.resolve(*place_in(key))
