"""Counting what happened in some days. The database counts; what comes out of it is small."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from gateway_sessions.core.insights import (
    Counts,
    Insights,
    TopSession,
    TopSessions,
    activity_of,
    models_of,
    platforms_of,
    tools_of,
)
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.usage import ModelUsage
from gateway_sessions.ports import Rows, Statement, Verb
from gateway_sessions.storage.verbs.usage import used_in

TOP: Final = 5
MICROS: Final = 10**6


class Question(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What somebody wants to know, and may."""

    since: datetime
    until: datetime
    scope: Scope
    source: str | None
    zone: ZoneInfo

    def asked(self, name: str, *, first: tuple[object, ...] = (), last: tuple[object, ...] = ()) -> Statement:
        """The query in the form that the scope needs, with its parameters before and after those of all."""
        form, scope = (name, ()) if self.scope.sees_everything else (f"{name}_of_owners", self.of)
        wanted = (to_micros(self.since), self.source, self.source)
        return Statement(form, (*first, *scope, *wanted, *last))

    @property
    def of(self) -> tuple[str, str | None]:
        """The owners and the lane whose sessions count."""
        return msgspec.json.encode(sorted(self.scope.owners)).decode(), self.scope.session_key


def insights(question: Question) -> Verb[Insights]:
    """The whole report."""
    counts = Counts()
    yield from _count_sessions(question, counts)
    yield from _count_messages(question, counts)
    yield from _count_usage(question, counts)
    top = yield from _top(question)
    return Insights(
        since=question.since,
        until=question.until,
        zone=question.zone.key,
        source=question.source,
        platforms=platforms_of(counts),
        models=models_of(counts),
        tools=tools_of(counts),
        activity=activity_of(counts.quarters, question.zone, question.until),
        top=top,
    )


def _count_sessions(question: Question, counts: Counts) -> Verb[None]:
    since = to_micros(question.since)
    for source, sessions, started, micros in (
        yield question.asked("insight_sessions", first=(since, since, since))
    ):
        counts.sessions[source] = (sessions, started, timedelta(microseconds=micros))


def _count_messages(question: Question, counts: Counts) -> Verb[None]:
    """Several queries that read little, or one that finds the messages of a few sessions once."""
    since = to_micros(question.since)
    if not question.scope.sees_everything:
        _add_messages(counts, (yield question.asked("insight_messages")))
    elif question.source is not None:
        _add_messages(counts, (yield Statement("insight_messages_of_source", (since, question.source))))
    else:
        for source, said, results in (yield Statement("insight_messages_by_source", (since,))):
            counts.messages[source], counts.tool_calls[source] = said, results
        for quarter, said in (yield Statement("insight_messages_by_time", (since,))):
            counts.quarters[quarter] = said
        for tool, calls in (yield Statement("insight_tools", (since,))):
            counts.tools[tool] = calls


def _add_messages(counts: Counts, rows: Rows) -> None:
    for source, quarter, tool, said in rows:
        counts.messages[source] += said
        counts.quarters[quarter] += said
        if tool is not None:
            counts.tool_calls[source] += said
            counts.tools[tool] += said


def _count_usage(question: Question, counts: Counts) -> Verb[None]:
    for source, model, provider, task, *sums in (yield question.asked("insight_usage")):
        part = ModelUsage(model=model, provider=provider, task=task, used=used_in(sums))
        counts.used.setdefault(source, []).append(part)


def _top(question: Question) -> Verb[TopSessions]:
    found: defaultdict[str, list[TopSession]] = defaultdict(list)
    for ranking, session_id, source, title, started_at, amount in (
        yield question.asked("insight_top", last=(TOP,) * 4)
    ):
        session = TopSession(
            session_id=session_id,
            platform=source,
            title=title,
            started_at=from_micros(started_at),
            amount=amount // MICROS if ranking == "longest" else amount,
        )
        found[ranking].append(session)
    return TopSessions(**{ranking: tuple(sessions) for ranking, sessions in found.items()})
