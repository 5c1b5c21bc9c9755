"""The rows that a gateway has stored and what people have seen of it, compared with what should be so."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.storage.transactions.queue.recover import TOO_OLD
from gateway_sessions.testing.fake_platform import Sent
from tests.property.gateway.gateway_model import CUT_OFF, Lane

_INBOX = """SELECT seq, coalesce(outcome, 'open') AS outcome, merged_into, token, solo, problem FROM inbox
    WHERE session_key = ? ORDER BY seq"""
_LANE = (
    "SELECT lease_token, lease_epoch, next_seq, waiting, ready_at, attempts FROM lanes WHERE session_key = ?"
)
_ROWS = """SELECT session_id, coalesce(content, '') || coalesce(parts, '') AS text FROM messages
    WHERE hidden_because IS NULL ORDER BY message_id"""
_OUTBOX = "SELECT reply_id, session_key, content, state, problem FROM outbox ORDER BY reply_id"
_STAMPS = """SELECT max(stamp) FROM (SELECT max(last_at) AS stamp FROM inbox WHERE outcome IS NULL
    UNION ALL SELECT max(leased_at) FROM lanes WHERE lease_epoch IS NOT NULL
    UNION ALL SELECT max(created_at) FROM outbox WHERE state IN ('owed', 'sending')
    UNION ALL SELECT max(last_active) FROM totals
    UNION ALL SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'lived_at')"""
ANSWERED = {Outcome.TURNED, Outcome.INTERRUPTED}
NEWS = "This is a new conversation"


class StoredRows:
    """The rows of a database, read beside its owner."""

    def __init__(self, home: Path, keys: Sequence[str]) -> None:
        with closing(sqlite3.connect(f"file:{home / 'sessions.db'}?mode=ro", uri=True)) as raw:
            raw.row_factory = sqlite3.Row
            raw.execute("BEGIN")
            self.inbox = {key: raw.execute(_INBOX, (key,)).fetchall() for key in keys}
            self.lanes = {key: raw.execute(_LANE, (key,)).fetchone() for key in keys}
            self.rows = raw.execute(_ROWS).fetchall()
            self.outbox = raw.execute(_OUTBOX).fetchall()
            self.latest_stamp: int = raw.execute(_STAMPS).fetchone()[0] or 0

    def too_old(self, key: str) -> list[int]:
        """What was put aside on a lane because it was cut off too long ago."""
        return [row["seq"] for row in self.inbox[key] if row["problem"] == TOO_OLD]


def queue_is_as_the_model_says(truth: StoredRows, key: str, lane: Lane) -> None:
    """Everything accepted is there once, without gaps, and is what it should be."""
    rows = truth.inbox[key]
    assert [row["seq"] for row in rows] == [one.seq for one in lane.said], "a gap, or a message too many"
    outcomes = [(row["seq"], row["outcome"]) for row in rows]
    assert outcomes == [(one.seq, str(one.outcome or "open")) for one in lane.said]
    stored = truth.lanes[key]
    if stored is None:
        assert not lane.said
        return
    assert stored["next_seq"] == len(lane.said) + 1
    assert stored["waiting"] == len(lane.waiting)
    assert (stored["lease_epoch"] is not None) == (lane.running is not None)
    assert (stored["ready_at"] is not None) == (lane.running is None and bool(lane.waiting))
    heads = {seq: slot.seqs[0] for slot in lane.waiting for seq in slot.seqs}
    running = {one.seq for one in lane.running.whole} if lane.running is not None else set[int]()
    for row in rows:
        if row["outcome"] == "open":
            token = stored["lease_token"] if row["seq"] in running else None
            assert row["token"] == token
            head = heads.get(row["seq"])
            assert row["merged_into"] == (None if head == row["seq"] else head) or row["seq"] in running


def transcripts_have_each_message_once(truth: StoredRows, lane: Lane) -> None:
    """One row of the user for each message: in the session where it was answered, and taken back with it."""
    for one in lane.said:
        if one.is_change:
            continue
        found = [row["session_id"] for row in truth.rows if one.message.text in row["text"]]
        assert len(found) <= 1, "one message stands in transcripts twice"
        for text in one.former:
            assert not any(text in row["text"] for row in truth.rows), "an edit was lost"
        if one.deleted:
            assert not found, "a deletion was lost"
            continue
        if one.outcome in ANSWERED:
            # A turn that ran for over a day may be stopped in the session that took the place of its own; so
            # may what it is about be edited there.
            late = one.outcome is Outcome.INTERRUPTED or one.changed_late
            elsewhere = late and lane.session_id != one.session_id
            where = found if elsewhere else [one.session_id]
            assert found == where, "what was answered is not in the transcript of the answer"
            assert len(found) == 1
        if one.outcome is Outcome.ROLLED_BACK or not one.tries:
            assert not found, "what was taken back, or never begun, is in a transcript"


def nothing_was_written_by_those_who_lost_their_lane(truth: StoredRows, forbidden: Sequence[str]) -> None:
    """Neither into a transcript nor to people."""
    for text in forbidden:
        assert not any(text in row["text"] for row in truth.rows), "a turn wrote after it was overtaken"
        assert not any(text in (row["content"] or "") for row in truth.outbox)


def replies_are_as_the_model_says(
    truth: StoredRows, sent: Sequence[Sent], keys: dict[str, str], lanes: dict[str, Lane]
) -> None:
    """What was committed is shown in order, once, or again with a mark; and nothing else is."""
    shown = shown_replies(sent)
    assert shown.keys() <= {row["reply_id"] for row in truth.outbox}, "something shown was never committed"
    committed: dict[str, list[str]] = defaultdict(list)
    order: dict[str, list[int]] = defaultdict(list)
    for row in truth.outbox:
        seen = shown.get(row["reply_id"], [])
        reply_was_shown_properly(row["state"], row["problem"], seen)
        order[row["session_key"]].append(row["reply_id"])
        text = (
            msgspec.json.decode(row["content"])["text"] if row["content"] is not None else unmarked(seen[0])
        )
        if not text.startswith(NEWS):
            committed[row["session_key"]].append(CUT_OFF if text.startswith(CUT_OFF) else text)
    for name, lane in lanes.items():
        assert committed[keys[name]] == lane.replies, "a reply was lost, or there is one too many"
        seen_first = [reply_id for reply_id in shown if reply_id in order[keys[name]]]
        assert seen_first == sorted(seen_first), "replies of a lane were shown out of order"


def shown_replies(sent: Sequence[Sent]) -> dict[int, list[str]]:
    """What people have seen of each reply, in the order in which they first saw any of it."""
    shown: dict[int, list[str]] = {}
    for one in sent:
        kind, _, number = one.idempotency_key.partition(":")
        if kind == "reply":
            shown.setdefault(int(number), []).append(one.text)
        else:
            assert one.message.is_notice
    return shown


def reply_was_shown_properly(state: str, problem: str | None, seen: Sequence[str]) -> None:
    """A reply is shown again with a mark only, and given up for a reason only."""
    assert len(set(map(unmarked, seen))) <= 1
    assert all(text.startswith(REPEATED) for text in seen[1:]), "a reply was repeated without a mark"
    assert seen or state != "sent", "a reply counts as sent that nobody has seen"
    assert problem or state != "dead", "a reply was given up without a reason"


def unmarked(text: str) -> str:
    """What a reply says, without the mark of a repeat."""
    return text.removeprefix(f"{REPEATED}\n")
