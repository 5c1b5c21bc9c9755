"""Give a lane from before named accounts to the account that used it, with its queue and replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from gateway_sessions.core.identity.account_lane_assignment import (
    AccountUse,
    LaneChoice,
    LanesReport,
    LeftLane,
    LinkedLane,
    MovedLane,
)
from gateway_sessions.core.identity.keys import key_at_account, owner_at_account
from gateway_sessions.core.queue.inbound import SEPARATOR
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.change import Change, LaneEvent
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.entries import load, put
from gateway_sessions.storage.tables.index_notes import note_moved_session
from gateway_sessions.storage.tables.lanes import load_lane
from gateway_sessions.storage.transactions.sessions import titles
from gateway_sessions.storage.transactions.sessions.session_transitions import transition_statement

PAGE: Final = 1000
"""The number of lanes read in one page."""
_AFTER_SEPARATOR: Final = chr(ord(SEPARATOR) + 1)
"""The character behind the separator: the upper bound of the events of one account."""
_DONE: Final = "lanes_of_accounts;"


def settled_platforms(platforms: list[str]) -> Transaction[set[str]]:
    """Return those of the platforms whose lanes have all been given to accounts."""
    found: set[str] = set()
    for platform in platforms:
        if (yield from meta.get_fact(f"{_DONE}{platform}")) is not None:
            found.add(platform)
    return found


def settle_platforms(platforms: list[str]) -> Transaction[None]:
    """Store that every lane of these platforms has been given to an account."""
    for platform in platforms:
        yield from meta.set_fact(f"{_DONE}{platform}", 1)


def accounts_used(platforms: frozenset[str] | None) -> Transaction[list[AccountUse]]:
    """Return which accounts of these platforms, or of all, used which lanes, from queue and outbox."""
    accounts = yield from _accounts_of_events()
    accounts |= {(platform, account) for platform, account in (yield Statement("accounts_of_outbox"))}
    found: list[AccountUse] = []
    for platform, account in sorted(accounts):
        if platforms is not None and platform not in platforms:
            continue
        first = SEPARATOR.join((platform, account, ""))
        events = yield Statement("lanes_of_events", (first, first[:-1] + _AFTER_SEPARATOR))
        owed = yield Statement("lanes_of_account_owed", (platform, account))
        found += [AccountUse(key, account, last_at) for key, last_at in (*events, *owed)]
    return found


def lanes_of_platforms(platforms: list[str]) -> Transaction[list[str]]:
    """Return all lanes of these platforms that have a session."""
    found: list[str] = []
    for platform in platforms:
        after = ""
        while rows := (yield Statement("lanes_of_platform", (platform, after, PAGE))):
            found += [session_key for (session_key,) in rows]
            after = found[-1]
    return found


def plan_lane_assignment(choice: LaneChoice) -> Transaction[LanesReport]:
    """Return the report of `give_lane` without changing anything."""
    old, account = choice.session_key, choice.account
    now = key_at_account(old, account)
    if (yield from _is_lane_unused(old)):
        return LanesReport()  # another node has done it meanwhile
    if (yield from load_lane(old)).running:
        return _report_left_lane(choice, "a turn runs on it", busy=True)
    if account and not (yield from _is_lane_unused(now)):
        return _report_left_lane(choice, f"{now} was begun meanwhile, and goes on by itself")
    entry = yield from load(old)
    session_id = None if entry is None else entry.session_id
    moved: tuple[MovedLane, ...] = ()
    if account:
        lane = MovedLane(session_key=old, account=account, now=now, session_id=session_id, known=choice.known)
        moved = (lane,)
    linked: list[LinkedLane] = []
    for other in choice.others:
        if session_id is None:
            break
        key = key_at_account(old, other)
        if key == old or (yield from _is_lane_unused(key)):
            linked.append(LinkedLane(session_key=key, account=other, session_id=session_id, kept_by=now))
    return LanesReport(moved=moved, linked=tuple(linked))


def give_lanes(change: Change, choices: Sequence[LaneChoice]) -> Transaction[LanesReport]:
    """Give several lanes to their accounts."""
    report = LanesReport()
    for choice in choices:
        report = report.joined_with((yield from give_lane(change, choice)))
    return report


def give_lane(change: Change, choice: LaneChoice) -> Transaction[LanesReport]:
    """Give a lane to its account, and link the lanes of all other accounts to its session."""
    report = yield from plan_lane_assignment(choice)
    if report.moved or report.linked:
        yield from _give_replies(choice.session_key)
    for lane in report.moved:
        yield from _rename_lane(change, lane.session_key, lane.account)
    for link in report.linked:
        yield Statement("mark_moved", (link.session_key, link.session_id))
    return report


def _give_replies(old: str) -> Transaction[None]:
    """Let each reply that a lane owes go out from the lane of the account that sends it."""
    for owner, account in (yield Statement("replies_of_accounts", (old,))):
        if account:
            there = key_at_account(old, account), owner_at_account(owner, account)
            yield Statement("give_replies", (*there, old, owner, account))


def _rename_lane(change: Change, old: str, account: str) -> Transaction[None]:
    now, entry = key_at_account(old, account), (yield from load(old))
    for session_id, owner in (yield Statement("sessions_of_lane", (old,))):
        yield from _give_session(change, session_id, (old, owner), account)
    for table in ("transitions", "hook_calls"):
        yield Statement(f"give_{table}", (now, old))
    for (owner,) in (yield Statement("owners_in_queue", (old,))):
        yield Statement("give_items", (now, owner_at_account(owner, account), old, owner))
    for (owner,) in (yield Statement("schedule_owners", (old,))):
        there = (now, owner_at_account(owner, account), account)
        yield Statement("give_schedules", (*there, old, owner))
    yield Statement("give_lane", (now, old))
    if entry is None:
        return
    given = entry.altered(
        session_key=now,
        owner=owner_at_account(entry.owner, account),
        origin=None if entry.origin is None else replace(entry.origin, account=account),
        version=entry.version + 1,
    )
    yield Statement("give_entry", (now, entry.entry_id))
    yield transition_statement(change, (yield from put(given)), LaneEvent.ASSIGNED)


def _give_session(change: Change, session_id: str, was: tuple[str, str], account: str) -> Transaction[None]:
    old, owner = was
    now, given = key_at_account(old, account), owner_at_account(owner, account)
    yield from titles.number_if_taken(session_id, given)
    yield from note_moved_session(session_id, now, given, change.ids)
    for (author,) in (yield Statement("authors_on_lane", (session_id, old))):
        yield Statement("give_author", (owner_at_account(author, account), session_id, old, author))
    yield Statement("give_said", (now, session_id, old))
    for message_id, stored in (yield Statement("summaries_of_people", (session_id,))):
        people = decode_json(f"session {session_id!r}", stored, list[str])
        named = [owner_at_account(one, account) for one in people]
        yield Statement("set_people", (msgspec.json.encode(named).decode(), message_id))
    yield Statement("give_session", (now, given, given, session_id))


def _is_lane_unused(session_key: str) -> Transaction[bool]:
    """Return whether a lane was never used."""
    if (yield Statement("entry_by_key", (session_key,))):
        return False
    return not (yield Statement("get_lane", (session_key,)))


def _report_left_lane(choice: LaneChoice, problem: str, *, busy: bool = False) -> LanesReport:
    lane = LeftLane(session_key=choice.session_key, account=choice.account, problem=problem, busy=busy)
    return LanesReport(left=(lane,))


def _accounts_of_events() -> Transaction[set[tuple[str, str]]]:
    """Return the accounts of all known events.

    Each query steps to the next account in the index, so that not every event is read.
    """
    found: set[tuple[str, str]] = set()
    after = ""
    while (event := (yield from _next_event(after))) is not None:
        platform, account, *_ = event.split(SEPARATOR)
        found.add((platform, account))
        after = SEPARATOR.join((platform, account)) + _AFTER_SEPARATOR
    return found


def _next_event(after: str) -> Transaction[str | None]:
    """Return the first event that is not before *after*; None behind the last one."""
    ((event,),) = yield Statement("next_event", (after,))
    return None if event is None else str(event)
