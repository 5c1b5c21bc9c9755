"""Find rows of different tables that contradict each other, and mend them.

This program never writes such rows. They appear when a damaged file was salvaged. No row is deleted because
it lacks another one: a message without a session gets a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from gateway_sessions.core.notices.human_units import counted_with_example
from gateway_sessions.core.queue.state_machine import ItemEvent
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables.lanes import load_lane, put_lane, recount_waiting_turns
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import move_statement

_ORPHANS: Final = ("entries_without_session", "messages_without_session", "usage_without_session")
_CIRCLES: Final = "circles"
IN_NO_STATE: Final = "its row was damaged: it was in no state that there is"
CHECKS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "entries_without_session": ("lane whose session has no row", "lanes whose session has no row"),
        "messages_without_session": (
            "session without a row, of which there are messages",
            "sessions without a row, of which there are messages",
        ),
        "usage_without_session": (
            "session without a row, of which there are bills",
            "sessions without a row, of which there are bills",
        ),
        "sessions_without_totals": ("session without counts", "sessions without counts"),
        "totals_without_session": (
            "session without a row, of which there are counts",
            "sessions without a row, of which there are counts",
        ),
        "wrong_totals": (
            "session whose counts are not those of its messages",
            "sessions whose counts are not those of their messages",
        ),
        "gaps_in_sessions": (
            "session in which messages are missing",
            "sessions in which messages are missing",
        ),
        "entries_without_clock": (
            "lane of which nobody knows when it was used",
            "lanes of which nobody knows when they were used",
        ),
        "clocks_without_entry": ("clock of a lane that is gone", "clocks of lanes that are gone"),
        "queues_without_lane": (
            "lane without a row, of which there are messages",
            "lanes without a row, of which there are messages",
        ),
        "impossible_items": (
            "message in a state that there is not",
            "messages in states that there are not",
        ),
        "impossible_replies": (
            "reply in a state that there is not",
            "replies in states that there are not",
        ),
        "turns_without_lease": (
            "lane with messages of a turn that does not run",
            "lanes with messages of a turn that does not run",
        ),
        "messages_without_turn": (
            "message that joined a turn that is gone",
            "messages that joined a turn that is gone",
        ),
        "wrong_queues": (
            "lane that does not say truly what waits on it",
            "lanes that do not say truly what waits on them",
        ),
        "wrong_places": (
            "lane that would give a place a second time",
            "lanes that would give a place a second time",
        ),
        _CIRCLES: ("conversation that comes from itself", "conversations that come from themselves"),
    }
)
"""The name of each check, with the words for one finding and for several."""


@row_of(*_ORPHANS)
class LostSession(NamedTuple):
    """The columns of a session that lost its row, as far as other tables tell them."""

    session_id: str
    session_key: str | None
    owner: str
    source: str
    started_at: int


@row_of("wrong_totals")
class WrongTotals(NamedTuple):
    """A session whose counts are wrong, and its messages as they are."""

    session_id: str
    messages_stored: int
    highest_seq: int


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """One kind of contradiction, the number of findings, and an example."""

    check: str
    count: int
    example: str

    def __str__(self) -> str:
        return counted_with_example(self.count, *CHECKS[self.check], self.example)


def find_all() -> Transaction[list[Inconsistency]]:
    """Return all contradictions between the tables."""
    found: list[Inconsistency] = []
    for check in CHECKS:
        one = yield from find_one(check)
        found += [one] if one is not None else []
    return found


def find_one(check: str) -> Transaction[Inconsistency | None]:
    """Return the findings of one check; None if there are none."""
    if check == _CIRCLES:
        wrong = yield from _cuts_of_circles()
    else:
        wrong = [str(name) for name, *_ in (yield Statement(check))]
    return Inconsistency(check, len(wrong), wrong[0]) if wrong else None


def mend_all() -> Transaction[list[Inconsistency]]:
    """Make the tables agree; return what was wrong. Missing messages stay missing."""
    wrong = yield from find_all()
    for name in _ORPHANS:
        rows = yield Statement(name)
        yield from _run_if_any("restore_session_row", [LostSession._make(row) for row in rows])
    yield from _run_if_any("add_totals", (yield Statement("sessions_without_totals")))
    yield from _run_if_any("delete_totals", (yield Statement("totals_without_session")))
    for session_id, _, _ in map(WrongTotals._make, (yield Statement("wrong_totals"))):
        ((size,),) = yield Statement("bytes_of_messages", (session_id,))
        yield Statement("recount_totals", (size, session_id))
    yield from _run_if_any("cut_from_parent", [(one,) for one in (yield from _cuts_of_circles())])
    yield from _run_if_any("restore_clock", (yield Statement("entries_without_clock")))
    yield from _run_if_any("delete_clock", (yield Statement("clocks_without_entry")))
    yield from _mend_queues()
    return wrong


def _mend_queues() -> Transaction[None]:
    """Let every accepted message wait on its lane, or run there."""
    yield from _run_if_any("restore_lane", (yield Statement("queues_without_lane")))
    # First each message gets a state, because the checks below compare the states of several messages.
    impossible = yield Statement("impossible_items")
    yield from _run_if_any("mend_item", [(IN_NO_STATE, item_id) for (item_id,) in impossible])
    yield from _run_if_any("mend_reply", (yield Statement("impossible_replies")))
    yield from _run_moving("free_turns", ItemEvent.RELEASED, (yield Statement("turns_without_lease")))
    yield from _run_moving("give_own_turn", ItemEvent.PROMOTED, (yield Statement("messages_without_turn")))
    for session_key, last in (yield Statement("wrong_places")):
        lane = yield from load_lane(session_key)
        lane.next_seq = last + 1
        yield from put_lane(lane)
    for (session_key,) in (yield Statement("wrong_queues")):
        lane = yield from load_lane(session_key)
        yield from recount_waiting_turns(lane)
        yield from put_lane(lane)


def _cuts_of_circles() -> Transaction[list[str]]:
    """Return, for each circle of descent, the session that began first: the circle is cut there."""
    rows = yield Statement("sessions_with_parent")
    parents: dict[str, str] = {child: parent for child, parent in rows}  # noqa: C416 -- a row is no pair by its type
    age = {session_id: number for number, session_id in enumerate(parents)}
    oldest: list[str] = []
    done: set[str] = set()
    for session_id in parents:
        path: dict[str, None] = {}
        current: str | None = session_id
        while current is not None and current not in done and current not in path:
            path[current] = None
            current = parents.get(current)
        if current is not None and current in path:
            way = list(path)
            oldest.append(min(way[way.index(current) :], key=age.__getitem__))
        done.update(path)
    return oldest


def _run_moving(name: str, event: ItemEvent, rows: Rows) -> Transaction[None]:
    if rows:
        yield move_statement(name, event, many=[tuple(row) for row in rows])


def _run_if_any(name: str, rows: Rows) -> Transaction[None]:
    if rows:
        yield Statement(name, many=[tuple(row) for row in rows])
