"""Each statement that changes the state of a message or of a reply makes moves of the table, no others."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import product
from typing import Any, Final

import pytest

from gateway_sessions.core.queue.items import ItemKind
from gateway_sessions.core.queue.state_machine import (
    ITEM_MOVES,
    NO_ROW,
    REPLY_MOVES,
    ItemColumns,
    ItemEvent,
    ItemState,
    ReplyEvent,
    ReplyState,
    item_state,
    outcome_after,
    reply_state,
)
from gateway_sessions.errors import InvalidTransitionError
from gateway_sessions.storage.tables.sql_files import load_queries
from gateway_sessions.storage.tables.statements import (
    AS_THEY_WERE,
    FROM_NO_STATE,
    KEEPS_ITS_STATE,
    MOVES,
    move_items,
    move_statement,
)
from tests.raw_sql import migrated_in_memory

QUERIES = load_queries("sqlite")
TOKEN, HEAD, LATE = 7, 1, 1 << 40
ITEM_COLUMNS = ItemColumns._fields
REPLY_COLUMNS = ("state", "settled_at")
WRITES = re.compile(r"^(INSERT INTO|UPDATE|DELETE FROM) (inbox|outbox)\b")
TELLS = {"inbox": {*ITEM_COLUMNS}, "outbox": {*REPLY_COLUMNS}}

ROWS: Final[Mapping[ItemState, tuple[ItemColumns, ...]]] = {
    ItemState.WAITING: (
        ItemColumns("message", None, None, None, None, 2, None),
        ItemColumns("internal", None, None, None, 3, 1, None),
    ),
    ItemState.MERGED: (ItemColumns("message", None, None, HEAD, None, 1, None),),
    ItemState.RUNNING: (
        ItemColumns("message", None, TOKEN, None, None, 2, None),
        ItemColumns("internal", None, TOKEN, None, 3, 1, None),
    ),
    ItemState.RUNNING_MERGED: (ItemColumns("message", None, TOKEN, HEAD, None, 1, None),),
    ItemState.STEERED: (
        ItemColumns("message", None, TOKEN, None, TOKEN, 0, None),
        ItemColumns("message", None, TOKEN, None, TOKEN, 1, None),
        ItemColumns("message", None, TOKEN, None, None, 0, None),
    ),
    ItemState.NOTED: (
        ItemColumns("command", None, None, None, None, 1, None),
        ItemColumns("change", None, None, None, None, 1, None),
    ),
    ItemState.DEAD: (
        ItemColumns("message", "dead", TOKEN, None, None, 2, 9),
        ItemColumns("message", "dead", None, None, None, 1, 9),
        ItemColumns("message", "dead", TOKEN, None, TOKEN, 0, 9),
    ),
    ItemState.DEAD_MERGED: (ItemColumns("message", "dead", TOKEN, HEAD, None, 1, 9),),
    ItemState.TURNED: (
        ItemColumns("message", "turned", TOKEN, None, None, 1, 9),
        ItemColumns("message", "turned", TOKEN, HEAD, None, 1, 9),
    ),
    ItemState.INTERRUPTED: (ItemColumns("message", "interrupted", TOKEN, None, TOKEN, 0, 9),),
    ItemState.ROLLED_BACK: (ItemColumns("message", "rolled_back", TOKEN, None, None, 1, 9),),
    ItemState.CANCELLED: (
        ItemColumns("message", "cancelled", None, HEAD, None, 1, 9),
        ItemColumns("command", "cancelled", None, None, None, 1, 9),
    ),
    ItemState.DROPPED: (ItemColumns("message", "dropped", None, None, None, 1, 9),),
    ItemState.APPLIED: (ItemColumns("change", "applied", None, None, None, 1, 9),),
    ItemState.COMMAND: (ItemColumns("command", "command", None, None, None, 1, 9),),
    ItemState.OBSERVED: (ItemColumns("message", "observed", None, None, None, 1, 9),),
}
"""Each state with a row, and the rows that are in it."""
REPLIES: Final = {
    ReplyState.OWED: ("owed", None),
    ReplyState.SENDING: ("sending", None),
    ReplyState.SENT: ("sent", 9),
    ReplyState.DEAD: ("dead", 9),
}

ENDED: Final = ("turn", None, "lane", TOKEN)
PARAMS: Final[Mapping[str, tuple[Any, ...]]] = {
    "take_item": (TOKEN, 5),
    "steer_item": (TOKEN, TOKEN, 5),
    "lead_item": (4, 5),
    "give_own_turn": (5,),
    "give_back_turn": (0, "lane", TOKEN),
    "give_back_item": (0, 5),
    "free_turns": ("lane",),
    "settle_turn": ("{outcome}", 9, *ENDED),
    "settle_turn_as_begun": ("{outcome}", 9, *ENDED),
    "bury_turn": (9, *ENDED),
    "bury_item": (9, "claim", "damaged", 5),
    "revive": (0, 0, "lane", 2, HEAD),
    "settle_waiting": ("{outcome}", 9, "person", "lane"),
    "cancel_item": ("{outcome}", 9, "person", 5),
    "retract_item": ("{outcome}", 9, "person", 5),
    "drop_dead_item": ("{outcome}", 9, "person", 5),
    "settle_noted": ("{outcome}", 9, "command", None, 5),
    "forget_items": (LATE, LATE, 10),
    "delete_item": (5,),
    "mark_sending": (1, 5, 0, 1),
    "reply_sent": (9, None, 1, 5),
    "reply_retry": (1, 0, 0, "problem", 5),
    "reword_reply": ("{}", 0, 5),
    "doubt_replies": ("[]",),
    "reply_given_up": (1, 9, 0, "problem", 5),
    "revive_reply": (0, 5),
    "forget_replies": (LATE, LATE, 10),
    "delete_replies_of_person": (LATE, "person", "[]", *[None] * 5, LATE),
    "forget_replies_of_session": ("session", LATE),
}
"""The parameters by which each statement finds the row under test, whatever state that is in."""
ADDED = {"add_item", "add_reply"}
BY_REPAIR = {
    (state, ItemEvent.SET_ASIDE)
    for state in (ItemState.RUNNING, ItemState.RUNNING_MERGED, ItemState.STEERED, ItemState.NOTED)
}
"""Moves that are made by the repair of a damaged file alone, which writes columns one by one."""


@pytest.fixture(scope="module")
def empty() -> Iterator[sqlite3.Connection]:
    with closing(migrated_in_memory()) as connection:
        yield connection


@pytest.fixture
def database(empty: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    empty.execute("BEGIN")
    yield empty
    empty.execute("ROLLBACK")


def add(database: sqlite3.Connection, table: str, **columns: object) -> None:
    names, places = ", ".join(columns), ", ".join("?" * len(columns))
    database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(columns.values()))  # noqa: S608


def add_item(database: sqlite3.Connection, row: ItemColumns, item_id: int = 5, seq: int = 2) -> None:
    common = dict.fromkeys(("characters", "media", "solo", "last_at", "admitted_at", "ready_at", "tries"), 0)
    who = {"session_key": "lane", "owner": "person", "sender": "person", "payload": "{}"}
    add(database, "inbox", item_id=item_id, seq=seq, place=seq, **common, **who, **row._asdict())


def add_reply(database: sqlite3.Connection, state: str, settled_at: int | None) -> None:
    where = {"session_key": "lane", "session_id": "session", "platform": "irc", "account": ""}
    what = {"target": "{}", "content": "{}", "epoch": 1, "created_at": 0, "next_try_at": 0}
    add(database, "outbox", reply_id=5, owner="person", state=state, settled_at=settled_at, **where, **what)


def state_of_item(database: sqlite3.Connection) -> ItemState | None:
    columns = ", ".join(ITEM_COLUMNS)
    row = database.execute(f"SELECT {columns} FROM inbox WHERE item_id = 5").fetchone()  # noqa: S608
    return ItemState.FORGOTTEN if row is None else item_state(ItemColumns(*row))


def state_of_reply(database: sqlite3.Connection) -> ReplyState | None:
    row = database.execute("SELECT state, settled_at FROM outbox WHERE reply_id = 5").fetchone()
    return ReplyState.FORGOTTEN if row is None else reply_state(*row)


def run(database: sqlite3.Connection, name: str, outcome: str | None = None) -> int:
    params = [outcome if one == "{outcome}" else one for one in PARAMS[name]]
    return database.execute(QUERIES[name].sql, params).rowcount


def test_the_rows_under_test_are_in_the_states_that_they_stand_for():
    assert set(ROWS) == set(ItemState) - NO_ROW
    for state, rows in ROWS.items():
        assert {item_state(row) for row in rows} == {state}
    assert {state: reply_state(*row) for state, row in REPLIES.items()} == {one: one for one in REPLIES}


@pytest.fixture(scope="module")
def seen(empty: sqlite3.Connection) -> dict[tuple[str, ItemEvent], set[tuple[ItemState, ItemState | None]]]:
    """What each statement was seen to do, for each of its events, with items in every state."""
    found: defaultdict[tuple[str, ItemEvent], set[tuple[ItemState, ItemState | None]]] = defaultdict(set)
    for name, event in ITEM_STATEMENTS:
        for state, row in ((state, row) for state, rows in ROWS.items() for row in rows):
            empty.execute("SAVEPOINT one")
            leader = row._replace(kind="message", outcome=None, settled_at=None, token=None, merged_into=None)
            add_item(empty, leader._replace(messages=3), item_id=4, seq=HEAD)
            add_item(empty, row)
            takes = (state, event) in ITEM_MOVES
            settles = takes and "{outcome}" in PARAMS[name]
            run(empty, name, str(outcome_after(state, event)) if settles else "turned")
            found[name, event].add((state, state_of_item(empty)))
            empty.execute("ROLLBACK TO one")
            empty.execute("RELEASE one")
    return found


ITEM_STATEMENTS = [
    (name, event)
    for name, events in MOVES.items()
    for event in sorted(events)
    if isinstance(event, ItemEvent) and name not in ADDED
]


@pytest.mark.parametrize(("name", "event"), ITEM_STATEMENTS)
def test_a_statement_moves_an_item_as_the_table_says_or_leaves_it(seen, name: str, event: ItemEvent):
    moves = {(state, after) for state, after in seen[name, event] if after is not state}
    assert moves, f"{name} was not seen to do anything"
    for state, after in moves:
        assert ITEM_MOVES.get((state, event)) is after, f"{name} moves an item that is {state} to {after}"


def test_the_statements_make_every_move_of_items_between_them(seen):
    made = {
        (state, event) for (_, event), moves in seen.items() for state, after in moves if after is not state
    }
    first = {move for move in ITEM_MOVES if move[0] is ItemState.NEW}
    assert ITEM_MOVES.keys() - first - made == BY_REPAIR


@pytest.mark.parametrize(
    ("name", "event", "state"),
    [
        (name, event, state)
        for name, events in MOVES.items()
        for event in sorted(events)
        for state in REPLIES
        if isinstance(event, ReplyEvent) and name not in ADDED
    ],
)
def test_a_statement_moves_a_reply_exactly_if_the_table_does(
    database: sqlite3.Connection, name: str, event: ReplyEvent, state: ReplyState
):
    add_reply(database, *REPLIES[state])
    changed = run(database, name)
    takes = (state, event) in REPLY_MOVES
    # A reply that was sent does not repeat anything: its text is gone.
    assert bool(changed) == takes or (name, state) == ("forget_replies_of_session", ReplyState.SENT)
    assert state_of_reply(database) is (REPLY_MOVES[state, event] if changed else state)


def test_every_statement_that_writes_what_tells_a_state_is_known():
    found = set[str]()
    for name, query in QUERIES.items():
        written = WRITES.match(query.sql)
        if written is None:
            continue
        table, sets = written[2], query.sql.partition(" SET ")[2].partition("WHERE")[0]
        columns = set(re.findall(r"(\w+)(?=\s*(?:=|,[^()]*\)\s*=))", sets)) | set(
            re.findall(r"\(([\w, ]+)\) =", sets)
        )
        words = set(re.findall(r"\w+", " ".join(columns)))
        if written[1] != "UPDATE" or words & TELLS[table]:
            found.add(name)
    assert found == {*MOVES, *AS_THEY_WERE, *FROM_NO_STATE, *KEEPS_ITS_STATE}


@pytest.mark.parametrize("name", sorted(KEEPS_ITS_STATE))
def test_a_statement_that_keeps_the_state_keeps_it(database: sqlite3.Connection, name: str):
    params = {"follow_item": (HEAD, 5), "extend_item": (1, 0, 0, 0, 5), "change_size": (0, 1, 5)}[name]
    followers = (ItemState.MERGED, ItemState.RUNNING_MERGED, ItemState.DEAD_MERGED)
    leaders = (ItemState.WAITING, ItemState.RUNNING, ItemState.DEAD)
    for state in followers if name == "follow_item" else leaders:
        database.execute("SAVEPOINT one")
        add_item(database, ROWS[state][0])
        assert database.execute(QUERIES[name].sql, params).rowcount == 1
        assert state_of_item(database) is state
        database.execute("ROLLBACK TO one")


def test_what_was_said_into_a_turn_leads_one_of_its_own_when_it_is_tried_again(database: sqlite3.Connection):
    """A repair gives up also what was said into a turn: `messages` must not tell then that it still was."""
    add_item(database, ItemColumns("message", "dead", TOKEN, None, TOKEN, 0, 9))
    run(database, "revive")
    assert state_of_item(database) is ItemState.WAITING
    run(database, "take_item")
    assert state_of_item(database) is ItemState.RUNNING


# Rows in no state


def all_columns() -> Iterator[ItemColumns]:
    outcomes = (None, "lost", *(str(one) for one in ItemState if one not in NO_ROW))
    kinds = ("massage", *map(str, ItemKind))
    for row in product(kinds, outcomes, (None, TOKEN), (None, HEAD), (None, 3, TOKEN), (0, 1), (None, 9)):
        yield ItemColumns(*row)


def test_the_check_finds_exactly_the_items_that_are_in_no_state(database: sqlite3.Connection):
    wrong = set[int]()
    for item_id, row in enumerate(all_columns(), 1):
        add_item(database, row, item_id=item_id, seq=item_id)
        if item_state(row) is None:
            wrong.add(item_id)
    assert {one for (one,) in database.execute(QUERIES["impossible_items"].sql)} == wrong
    database.executemany(QUERIES["mend_item"].sql, [("damaged", one) for one in wrong])
    assert database.execute(QUERIES["impossible_items"].sql).fetchall() == []


def test_what_is_mended_and_has_a_text_can_be_tried_again(database: sqlite3.Connection):
    add_item(database, ItemColumns("message", "lost", TOKEN, HEAD, None, 1, None))
    database.execute(QUERIES["mend_item"].sql, ("damaged", 5))
    assert state_of_item(database) is ItemState.DEAD


def test_the_check_finds_exactly_the_replies_that_are_in_no_state(database: sqlite3.Connection):
    for state, settled_at in product((*map(str, ReplyState), "lost"), (None, 9)):
        database.execute("SAVEPOINT one")
        add_reply(database, state, settled_at)
        found = database.execute(QUERIES["impossible_replies"].sql).fetchall()
        assert bool(found) == (reply_state(state, settled_at) is None)
        database.execute(QUERIES["mend_reply"].sql, (5,))
        assert state_of_reply(database) is not None
        database.execute("ROLLBACK TO one")


# Naming a move


def test_a_statement_carries_the_events_that_it_was_made_for():
    statement = move_statement("take_item", ItemEvent.BEGUN, params=(1, 2))
    assert (statement.name, statement.params, statement.moves) == ("take_item", (1, 2), (ItemEvent.BEGUN,))


def test_a_statement_is_not_made_for_an_event_that_it_does_not_carry_out():
    with pytest.raises(ValueError, match="take_item carries out"):
        move_statement("take_item", ItemEvent.DROPPED, params=(1, 2))


def test_an_item_that_does_not_take_the_event_is_an_error():
    transaction = move_items("take_item", ItemEvent.BEGUN, [(1, 2), (1, 3)])
    assert len(next(transaction).many or ()) == 2
    with pytest.raises(InvalidTransitionError) as refused:
        transaction.send([(1,)])
    assert refused.value.event == ItemEvent.BEGUN


def test_nothing_is_asked_for_no_items():
    assert list(move_items("take_item", ItemEvent.BEGUN, [])) == []


@pytest.mark.parametrize("state", ROWS)
def test_an_item_that_somebody_else_has_moved_refuses_the_event_and_stays(
    database: sqlite3.Connection, state: ItemState
):
    add_item(database, ROWS[state][0])
    transaction = move_items("cancel_item", ItemEvent.CANCELLED, [("cancelled", 9, "person", 5)])
    statement = next(transaction)
    changed = database.executemany(QUERIES[statement.name].sql, statement.many or ()).rowcount
    if (state, ItemEvent.CANCELLED) in ITEM_MOVES:
        with pytest.raises(StopIteration):
            transaction.send([(changed,)])
        assert state_of_item(database) is ItemState.CANCELLED
    else:
        with pytest.raises(InvalidTransitionError, match="does not take cancelled"):
            transaction.send([(changed,)])
        assert state_of_item(database) is state
