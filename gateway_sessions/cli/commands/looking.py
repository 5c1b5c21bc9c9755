"""`insights`, `explain`, `simulate`: what happened, why, and what would have happened."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.desk import Desk, everything, run, this_moment
from gateway_sessions.cli.options import Source
from gateway_sessions.core.telling import DAY, length_of
from gateway_sessions.errors import SessionNotFoundError

if TYPE_CHECKING:
    from datetime import datetime

    import gateway_sessions as gs
    from gateway_sessions.cli.progress import Tells
    from gateway_sessions.config.policy_origins import FieldOrigin
    from gateway_sessions.core.keys import Sharing
    from gateway_sessions.core.policy_book import PolicyBook, ResolvedPolicy
    from gateway_sessions.core.simulation import WouldReset

LANES: Final = 500
"""Read in one go."""


def insights(
    context: typer.Context,
    *,
    days: Annotated[float, typer.Option(min=0.01, help="So far back.")] = 30,
    source: Source = None,
    zone: Annotated[
        str | None, typer.Option(help="The zone of dates and hours; else the configured one.")
    ] = None,
) -> None:
    """Report what happened in the last days. Platforms, models, tools, costs, times of day."""

    async def work(desk: Desk) -> None:
        _, config = desk.place()
        async with desk.seat() as seat:
            report = await seat.db.insights(
                days, scope=everything(), source=source, zone=zone or config.policy_book().zone_name
            )
        from gateway_sessions.cli.reports import insights_page  # noqa: PLC0415 -- --help must not wait for it

        desk.answer([report], partial(insights_page, report, days))

    run(context, work)


def explain(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="A session key, or a session on that lane.", metavar="KEY")],
) -> None:
    """Say why a lane is as it is. Its session, when that resets, and what the next message will do."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.reports import explanation_page  # noqa: PLC0415 -- as above
        from gateway_sessions.storage.verbs import queue  # noqa: PLC0415 -- as above

        async with desk.seat() as seat:
            lane = await lane_named(seat, key)
            answer = await seat.explain(lane)
            waiting = await seat.db.read(partial(queue.listed, lane))
        origins, sharing = _origins(desk, answer), _sharing(answer.entry)
        page = partial(explanation_page, answer, origins, sharing, len(waiting))
        desk.answer([answer], page, queue=waiting, policy_fields=origins, sharing=sharing)

    run(context, work)


def _origins(desk: Desk, answer: gs.Explanation) -> list[FieldOrigin]:
    from gateway_sessions.config.origins import written_in  # noqa: PLC0415 -- as above
    from gateway_sessions.config.policy_origins import policy_origins  # noqa: PLC0415 -- as above

    entry, policy = answer.entry, answer.policy
    if entry is None or policy is None:
        return []
    written = written_in(desk.config_path)
    return policy_origins(policy, written, entry.platform, entry.chat_type, entry.zone)


def _sharing(entry: gs.SessionEntry | None) -> Sharing | None:
    """By which rule the lane got its key, if its session tells where it comes from."""
    from gateway_sessions.core.keys import sharing_of  # noqa: PLC0415 -- as above

    if entry is None or entry.origin is None:
        return None
    return sharing_of(entry.chat_type, entry.origin.thread_id, entry.owner)


async def lane_named(seat: gs.Seat, text: str) -> str:
    """The lane of that key, or the one that a session is on."""
    if await seat.get_session(text) is not None or text.startswith("agent:"):
        return text
    record = await seat.db.get_session(await seat.db.resolve_session(text, scope=everything()))
    if record is None or record.session_key is None:
        raise SessionNotFoundError(text)
    return record.session_key


def simulate(
    context: typer.Context,
    *,
    policy: Annotated[Path, typer.Option(help="A configuration with the policies to try.", metavar="FILE")],
    since: Annotated[str, typer.Option("--from", help="So far back: 30d.", metavar="TIME")] = "30d",
) -> None:
    """Try reset policies on what was recorded. How many sessions would reset, when, for whom."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.reports import simulation_page  # noqa: PLC0415 -- as above
        from gateway_sessions.config import load_config  # noqa: PLC0415 -- as above

        book, length = load_config(policy).policy_book(), length_of("--from", since)
        async with desk.seat() as seat:
            with desk.progress("Trying the policies on lanes") as tell:
                lanes, found = await _simulated(seat, book, this_moment() - length, tell)
        by_lane = Counter(one.session_key for one in found)
        page = partial(simulation_page, found, by_lane, lanes, length / DAY)
        desk.answer(found, page, lanes=lanes, lanes_resetting=len(by_lane))

    run(context, work)


async def _simulated(
    seat: gs.Seat, book: PolicyBook, begin: datetime, tell: Tells
) -> tuple[int, list[WouldReset]]:
    """How many lanes were in use since then, and what would have been reset on them."""
    from gateway_sessions.core.simulation import Activity  # noqa: PLC0415 -- as above
    from gateway_sessions.core.simulation import simulate as would  # noqa: PLC0415 -- as above
    from gateway_sessions.storage.verbs import activity  # noqa: PLC0415 -- as above

    found: list[WouldReset] = []
    after, lanes = "", 0
    while keys := await seat.db.read(partial(activity.lanes_since, begin, after, LANES)):
        for key in keys:
            tried = _policy_on(key, await seat.get_session(key), book)
            moments = await seat.db.read(partial(activity.moments_on, key, begin))
            found += would(Activity(key, tried, moments))
        after, lanes = keys[-1], lanes + len(keys)
        tell(lanes, None)
    return lanes, found


def _policy_on(key: str, entry: gs.SessionEntry | None, book: PolicyBook) -> ResolvedPolicy:
    """The policy that counts on a lane: a session's own one stays, whatever is tried on the others."""
    from gateway_sessions.core.keys import place_in  # noqa: PLC0415 -- as above
    from gateway_sessions.core.lifecycle import policy_for  # noqa: PLC0415 -- as above

    return policy_for(entry, book) if entry is not None else book.resolve(*place_in(key))
