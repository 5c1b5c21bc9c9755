"""Count each use of a model once, on its session and entry, and sum up use for reports.

An event counts once, and every counter is the sum of its events. The database sums up the reports over
several days, so that few rows leave it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.usage.budgets import Spent
from gateway_sessions.core.usage.insights import (
    Insights,
    PeriodCounts,
    TopSession,
    TopSessions,
    activity_by_time,
    rank_tools,
    sum_by_model,
    sum_by_platform,
)
from gateway_sessions.core.usage.usage_events import (
    COUNTS,
    TURN,
    CostStatus,
    ModelUsage,
    SessionUsage,
    Usage,
    UsageSum,
    add_usage_to_entry,
    cost_nanos,
    from_nanos,
    least_certain_status,
    rank_by_tokens,
    sum_of_event,
    to_nanos,
)
from gateway_sessions.errors import InvalidInputError, SessionNotFoundError
from gateway_sessions.ports import Row, Rows, Statement, Transaction
from gateway_sessions.storage.tables.entries import (
    decode_archive,
    encode_archive,
    load,
    load_by_session,
    put_record_and_clocks,
)
from gateway_sessions.storage.tables.sessions import stored_session
from gateway_sessions.storage.tables.sql_files import record_of, row_of
from gateway_sessions.storage.tables.statements import session_lock


@row_of("usage_event")
class CountedEvent(NamedTuple):
    """A usage event that was counted: where, and its cost as far as it is known."""

    session_id: str
    task: str
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str


@row_of("get_used")
class UsedRow(NamedTuple):
    """The cost of a session's turns so far, and its model."""

    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str | None
    model: str | None
    billing_provider: str | None


@record_of("add_usage")
@row_of("usage_to_export")
class UsageRow(NamedTuple):
    """A usage event as it is stored, by the names of the fields of `Usage`."""

    event_id: str
    at: int
    task: str
    model: str | None
    provider: str | None
    base_url: str | None
    billing_mode: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_calls: int
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str
    cost_source: str | None
    pricing_version: str | None
    session_id: str = ""


@row_of("usage_of_session", "insight_usage", "insight_usage_of_owners")
class ModelUsageRow(NamedTuple):
    """The sum of the use of a model for a task; without events, its sums are NULL."""

    model: str | None
    provider: str | None
    task: str
    events: int | None
    api_calls: int | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_nanos: int | None
    unknown: int | None
    estimated: int | None
    actual: int | None
    included: int | None
    source: str = ""

    @property
    def part(self) -> ModelUsage:
        """Return the sum as a part of a report."""
        used = usage_sum_from_row([getattr(self, name) for name in UsageSum.__struct_fields__])
        return ModelUsage(model=self.model, provider=self.provider, task=self.task, used=used)


row_of("spent_by_session", "spent_by_owner", "spent_by_all")(UsageSum)


@row_of("insight_sessions", "insight_sessions_of_owners")
class SessionsOfSource(NamedTuple):
    """The sessions of one source in use since an instant."""

    source: str
    sessions: int
    begun: int
    micros: int
    """The time that they were in use, in microseconds."""


@row_of("insight_messages_by_source")
class MessagesOfSource(NamedTuple):
    """The messages of one source since an instant."""

    source: str
    said: int
    results: int
    """The number of tool results among them."""


@row_of("insight_messages_of_source", "insight_messages_of_owners")
class MessagesOfQuarter(NamedTuple):
    """The messages of one source and tool in a quarter of an hour."""

    source: str
    quarter_hour: int
    tool_name: str | None
    said: int


@row_of("insight_top", "insight_top_of_owners")
class RankedSession(NamedTuple):
    """A session that stands out in a ranking."""

    ranking: str
    session_id: str
    source: str
    title: str | None
    started_at: int
    amount: int


class CountedUse(NamedTuple):
    """The use of an event that was counted on a session, for its entry."""

    more: UsageSum
    status: CostStatus
    """The certainty of the session's cost with that event."""


def record_usage(session_id: str, usage: Usage, now: datetime) -> Transaction[bool]:
    """Count the event on its session and on that session's entry; False if it was counted already."""
    known = yield from _counted_event(usage.event_id)
    if known is not None and known.session_id != session_id:
        problem = f"event_id {usage.event_id!r} was counted for another session, {known.session_id}"
        raise InvalidInputError(problem)
    if known is not None:
        return False
    counted = yield from _count_on_session(session_id, usage)
    yield from count_on_entry(session_id, counted, now)
    return True


def _count_on_session(session_id: str, usage: Usage) -> Transaction[list[CountedUse]]:
    """Count a new event on its session; return its share of the entry, none for a task beside turns."""
    used = yield Statement("get_used", (session_id,), lock=session_lock(session_id))
    if not used:
        raise SessionNotFoundError(session_id)
    yield Statement("add_usage", usage_row(usage, session_id))
    if usage.task != TURN:
        return []
    before = UsedRow._make(used[0])
    yield from _note_first_model(session_id, usage, before.model, before.billing_provider)
    after = _add_costs(before, usage.estimated_cost_usd, usage.actual_cost_usd)
    status = usage.cost_status
    if before.cost_status is not None:
        status = least_certain_status(before.cost_status, usage.cost_status)
    counts = tuple(getattr(usage, name) for name in COUNTS)
    source = (usage.cost_source, usage.pricing_version)
    yield Statement("add_used", (*counts, *after, str(status), *source, session_id))
    return [CountedUse(sum_of_event(usage), status)]


def usage_row(usage: Usage, session_id: str = "") -> UsageRow:
    """Return a usage event as it is stored."""
    columns: dict[str, Any] = {name: getattr(usage, name, session_id) for name in UsageRow._fields}
    columns |= {"at": to_micros(usage.at), "cost_status": str(usage.cost_status)}
    return UsageRow(**columns)


def record_turn_usage(session_id: str, usages: Sequence[Usage], now: datetime) -> Transaction[None]:
    """Count the use of a turn whose end is not stored, also if it has lost its lane or its session."""
    yield from count_on_entry(session_id, (yield from count_turn_usage(session_id, usages)), now)


def count_turn_usage(session_id: str, usages: Sequence[Usage]) -> Transaction[list[CountedUse]]:
    """Count the use of a turn on its session; return the shares of the entry.

    No event is refused: an event that an earlier try counted for another session stays counted there, and an
    event of an erased session is left out.
    """
    counted: list[CountedUse] = []
    for one in usages:
        if (yield from _counted_event(one.event_id)) is None:
            with suppress(SessionNotFoundError):
                counted += yield from _count_on_session(session_id, one)
    return counted


def set_actual_cost(
    event_id: str, actual_cost_usd: float, source: tuple[str | None, str | None], now: datetime
) -> Transaction[bool]:
    """Store the actual cost of an event; False if it was stored already."""
    known = yield from _counted_event(event_id)
    if known is None:
        problem = f"event_id {event_id!r} was never counted, or its session is gone"
        raise InvalidInputError(problem)
    if known.actual_cost_usd is not None:
        return False
    session_id = known.session_id
    yield Statement("price_usage", (actual_cost_usd, *source, event_id))
    if known.task == TURN:
        used = yield Statement("get_used", (session_id,))
        statuses = yield Statement("statuses_of_turns", (session_id,))
        settled = least_certain_status(*(status for (status,) in statuses))
        costs = (*_add_costs(UsedRow._make(used[0]), None, actual_cost_usd), str(settled))
        yield Statement("add_used", (*(0 for _ in COUNTS), *costs, *source, session_id))
        nanos = to_nanos(actual_cost_usd) - cost_nanos(
            known.cost_status, known.estimated_cost_usd, known.actual_cost_usd
        )
        yield from count_on_entry(session_id, [CountedUse(UsageSum(cost_nanos=nanos), settled)], now)
    return True


def usage_of_session(session_id: str) -> Transaction[SessionUsage]:
    """Return the use of the session, by model and task."""
    if not (yield Statement("session_exists", (session_id,))):
        raise SessionNotFoundError(session_id)
    rows = yield Statement("usage_of_session", (session_id,))
    return SessionUsage(
        session_id=session_id, parts=rank_by_tokens([ModelUsageRow(*row).part for row in rows])
    )


def usage_for_budgets(session_id: str, day: tuple[datetime, datetime]) -> Transaction[Spent]:
    """Return the use of the session, and of its owner and of everybody on that day."""
    owners = yield Statement("owner_of_session", (session_id,))
    if not owners:
        raise SessionNotFoundError(session_id)
    began, ends = map(to_micros, day)
    ((owner,),) = owners
    (session,) = yield Statement("spent_by_session", (session_id,))
    (person,) = yield Statement("spent_by_owner", (owner, began, ends))
    (everybody,) = yield Statement("spent_by_all", (began, ends))
    return Spent(
        session=usage_sum_from_row(session),
        person=usage_sum_from_row(person),
        day=usage_sum_from_row(everybody),
        day_began=day[0],
        day_ends=day[1],
    )


def usage_sum_from_row(columns: Row) -> UsageSum:
    """Return the sum in the columns of a row, in the order of its fields; without events they are NULL."""
    return UsageSum(**dict(zip(UsageSum.__struct_fields__, (one or 0 for one in columns), strict=True)))


def _note_first_model(
    session_id: str, usage: Usage, model: str | None, provider: str | None
) -> Transaction[None]:
    """Store the model and provider of the first event on the session; its row is too large for each one."""
    if model is None and usage.model is not None:
        yield Statement("set_model", (usage.model, session_id))
    if provider is None and usage.provider is not None:
        route = (usage.provider, usage.base_url, usage.billing_mode)
        yield Statement("set_route", (*route, session_id))


def _counted_event(event_id: str) -> Transaction[CountedEvent | None]:
    """Return an event that was counted already; None if it was not."""
    rows = yield Statement("usage_event", (event_id,))
    return CountedEvent._make(rows[0]) if rows else None


def _add_costs(before: UsedRow, estimated: float | None, actual: float | None) -> tuple[float | None, ...]:
    """Return both sums of costs with one more event; None as long as no price is known."""
    return tuple(
        old if more is None else from_nanos(to_nanos(old) + to_nanos(more))
        for old, more in (
            (before.estimated_cost_usd, estimated),
            (before.actual_cost_usd, actual),
        )
    )


def count_on_entry(session_id: str, counted: Sequence[CountedUse], now: datetime) -> Transaction[None]:
    """Count the use on the entry that has the session, or on the archived entry of an ended one."""
    if not counted:
        return
    entry = yield from load_by_session(session_id)
    if entry is not None:  # its lane may be another one: that lane's lock is needed
        entry = yield from load(entry.session_key, entry, locked=True)
    if entry is not None and entry.session_id == session_id:
        yield from put_record_and_clocks(entry_with_use(entry, counted).evolve(now))
        return
    session = yield from stored_session(session_id)
    if session is not None and session.entry is not None:
        text = encode_archive(entry_with_use(decode_archive(session.entry), counted))
        yield Statement("keep_entry", (text, session_id))


def entry_with_use(entry: SessionEntry, counted: Sequence[CountedUse]) -> SessionEntry:
    """Return the entry with more use; the cost of an imported entry before its first event stays unknown."""
    for more, status in counted:
        known = status
        if more.events != 0 and entry.total_tokens != 0:
            known = least_certain_status(entry.cost_status, status)
        entry = add_usage_to_entry(entry, more, known)
    return entry


TOP: Final = 5
"""The number of sessions that a report names in each ranking."""
MICROS: Final = 10**6
"""Microseconds in a second."""


class InsightQuery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The sessions and the days that a report is about."""

    since: datetime
    until: datetime
    scope: Scope
    source: str | None
    zone: ZoneInfo

    def scoped_query(
        self, name: str, *, first: tuple[object, ...] = (), last: tuple[object, ...] = ()
    ) -> Statement:
        """Return the query for the scope, with the common parameters between *first* and *last*."""
        form, scope = (name, ()) if self.scope.sees_everything else (f"{name}_of_owners", self.owner_params)
        wanted = (to_micros(self.since), self.source, self.source)
        return Statement(form, (*first, *scope, *wanted, *last))

    @property
    def owner_params(self) -> tuple[str, str | None]:
        """Return the owners and the lane whose sessions count."""
        return msgspec.json.encode(sorted(self.scope.owners)).decode(), self.scope.session_key


def load_insights(question: InsightQuery) -> Transaction[Insights]:
    """Return the whole report."""
    counts = PeriodCounts()
    yield from _count_sessions(question, counts)
    yield from _count_messages(question, counts)
    yield from _count_usage(question, counts)
    top = yield from _top_sessions(question)
    return Insights(
        since=question.since,
        until=question.until,
        zone=question.zone.key,
        source=question.source,
        platforms=sum_by_platform(counts),
        models=sum_by_model(counts),
        tools=rank_tools(counts),
        activity=activity_by_time(counts.quarters, question.zone, question.until),
        top=top,
    )


def _count_sessions(question: InsightQuery, counts: PeriodCounts) -> Transaction[None]:
    since = to_micros(question.since)
    rows = yield question.scoped_query("insight_sessions", first=(since, since, since))
    for one in map(SessionsOfSource._make, rows):
        counts.sessions[one.source] = (one.sessions, one.begun, timedelta(microseconds=one.micros))


def _count_messages(question: InsightQuery, counts: PeriodCounts) -> Transaction[None]:
    """Count messages: everybody's by several small queries, those of few sessions by one query."""
    since = to_micros(question.since)
    if not question.scope.sees_everything:
        _add_messages(counts, (yield question.scoped_query("insight_messages")))
    elif question.source is not None:
        _add_messages(counts, (yield Statement("insight_messages_of_source", (since, question.source))))
    else:
        rows = yield Statement("insight_messages_by_source", (since,))
        for one in map(MessagesOfSource._make, rows):
            counts.messages[one.source], counts.tool_calls[one.source] = one.said, one.results
        for quarter, said in (yield Statement("insight_messages_by_time", (since,))):
            counts.quarters[quarter] = said
        for tool, calls in (yield Statement("insight_tools", (since,))):
            counts.tools[tool] = calls


def _add_messages(counts: PeriodCounts, rows: Rows) -> None:
    for source, quarter, tool, said in map(MessagesOfQuarter._make, rows):
        counts.messages[source] += said
        counts.quarters[quarter] += said
        if tool is not None:
            counts.tool_calls[source] += said
            counts.tools[tool] += said


def _count_usage(question: InsightQuery, counts: PeriodCounts) -> Transaction[None]:
    for one in map(ModelUsageRow._make, (yield question.scoped_query("insight_usage"))):
        counts.used.setdefault(one.source, []).append(one.part)


def _top_sessions(question: InsightQuery) -> Transaction[TopSessions]:
    found: defaultdict[str, list[TopSession]] = defaultdict(list)
    rows = yield question.scoped_query("insight_top", last=(TOP,) * 4)
    for one in map(RankedSession._make, rows):
        session = TopSession(
            session_id=one.session_id,
            platform=one.source,
            title=one.title,
            started_at=from_micros(one.started_at),
            amount=one.amount // MICROS if one.ranking == "longest" else one.amount,
        )
        found[one.ranking].append(session)
    return TopSessions(**{ranking: tuple(sessions) for ranking, sessions in found.items()})
