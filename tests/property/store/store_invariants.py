"""What is true of a store's database after every change, whatever the change was."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from gateway_sessions.core.sessions.entry import SessionState
from gateway_sessions.core.sessions.state_machine import TRANSITIONS, Event

_ENTRIES = """SELECT *, coalesce(last_interaction_at, updated_at) AS interaction_at,
    record ->> 'previous_session_id' AS previous_session_id FROM entries JOIN clocks USING (entry_id)"""
_STRAYS = """SELECT entry_id FROM entries FULL JOIN clocks USING (entry_id)
    WHERE session_key IS NULL OR version IS NULL"""
_BORN = {("created", None), ("imported", None)}


class StoredRows:
    """The rows of a database, read beside its owner."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as raw:
            raw.row_factory = sqlite3.Row
            raw.execute("BEGIN")
            self.entries = {row["session_key"]: row for row in raw.execute(_ENTRIES)}
            self.strays = raw.execute(_STRAYS).fetchall()
            self.sessions = {row["session_id"]: row for row in raw.execute("SELECT * FROM sessions")}
            self.lanes = {row["session_key"]: row for row in raw.execute("SELECT * FROM lanes")}
            self.transitions = raw.execute("SELECT * FROM transitions ORDER BY change_id").fetchall()
            self.hook_calls = raw.execute("SELECT * FROM hook_calls").fetchall()


def check_stored_rows(truth: StoredRows) -> None:
    """Check everything that needs no knowledge of what was done."""
    assert not truth.strays, "an entry without clocks, or clocks without an entry"
    entries_and_sessions_agree(truth)
    every_end_has_a_reason(truth)
    parents_exist(truth)
    lanes_are_used_for_something(truth)
    the_log_is_a_legal_chain(truth)


def entries_and_sessions_agree(truth: StoredRows) -> None:
    holders = Counter(row["session_id"] for row in truth.entries.values())
    assert max(holders.values(), default=1) == 1, "a session is on two lanes"
    for key, entry in truth.entries.items():
        session = truth.sessions[entry["session_id"]]
        assert (session["session_key"], session["owner"]) == (key, entry["owner"])
        ended = session["ended_at"] is not None
        state = SessionState(entry["state"])
        if state is not SessionState.SUSPENDED:  # the watcher may have ended it or not
            assert ended == (state is SessionState.EXPIRED), f"{state} and ended: {ended}"
        if ended:
            assert entry["due_at"] is None or state is SessionState.SUSPENDED
    for session_id, session in truth.sessions.items():
        assert session["ended_at"] is not None or session_id in holders, "a session is open and nowhere"


def every_end_has_a_reason(truth: StoredRows) -> None:
    for session in truth.sessions.values():
        ended = session["ended_at"] is not None
        assert (session["end_reason"] is not None) == ended
        assert (session["entry"] is not None) == ended, "an ended session keeps its record, an open one none"
        assert session["ends"] >= ended


def parents_exist(truth: StoredRows) -> None:
    parents = {session["parent_session_id"] for session in truth.sessions.values()}
    links = {entry["previous_session_id"] for entry in truth.entries.values()}
    assert (parents | links) - {None} <= truth.sessions.keys()


def lanes_are_used_for_something(truth: StoredRows) -> None:
    for key, lane in truth.lanes.items():
        if lane["moved_session_id"] is not None:
            assert key not in truth.entries, "a lane has a session and misses one"
            assert lane["moved_session_id"] in truth.sessions


def the_log_is_a_legal_chain(truth: StoredRows) -> None:
    """On each lane every step begins where the one before has ended, and is a move of the state machine."""
    last: dict[str, Any] = {}
    for row in truth.transitions:
        before = last.get(row["session_key"])
        if row["event"] == "pruned":
            assert last.pop(row["session_key"])["to_state"] == row["from_state"]
            continue
        if (row["event"], row["from_state"]) in _BORN:
            assert row["to_state"] == SessionState.ACTIVE
        else:
            assert before is not None
            assert row["from_state"] == before["to_state"], dict(row)
            came_from, event = SessionState(row["from_state"]), Event(row["event"])
            if event is not Event.SWITCHED or row["reason"] != "moved":  # the lane that loses its session
                assert row["to_state"] == TRANSITIONS[came_from, event]
        last[row["session_key"]] = row
    for key, entry in truth.entries.items():
        assert last[key]["to_state"] == entry["state"]
        assert last[key]["session_id"] == entry["session_id"]
