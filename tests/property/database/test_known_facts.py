"""A transaction that is told what its process knows of a lane writes the same rows as one that looks."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from gateway_sessions import BusyMode, Config, InboundMessage, SessionSource
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import encode_message
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.tables.lanes import KnownLane
from gateway_sessions.storage.tables.sql_files import load_queries
from gateway_sessions.storage.transactions.queue import waiting
from gateway_sessions.storage.transactions.queue.admit import Admission, Admitted, MessageRefusedError, admit
from gateway_sessions.storage.transactions.queue.claim import ClaimedTurn, TurnStarter, claim
from gateway_sessions.storage.transactions.queue.outbox import Owed
from gateway_sessions.storage.transactions.queue.running_turn import (
    KnownBeforeEnd,
    TurnSettlement,
    end_turn,
    give_back_turn,
)
from gateway_sessions.storage.transactions.sessions.find_or_create import ActiveWorkUnknown, SessionRequest
from gateway_sessions.storage.transactions.sessions.lane_changes import reset_lane, suspend_session
from tests.raw_sql import migrated_in_memory

T = TypeVar("T")

QUERIES = load_queries("sqlite")
LANE = "a lane"
ALICE = SessionSource(platform="telegram", chat_id="1", user_id="alice")
FLAGS = Isolation()
POLICIES = Config(timezone="UTC").policy_book("UTC")
TABLES = (
    ("inbox", "item_id"),
    ("lanes", "session_key"),
    ("entries", "entry_id"),
    ("clocks", "entry_id"),
    ("sessions", "session_id"),
    ("totals", "session_id"),
    ("messages", "message_id"),
    ("outbox", "reply_id"),
    ("transitions", "change_id"),
)
COLLECTED = BusyRules(mode=BusyMode.COLLECT)
"""The rules by which a message waits for the rest of its burst, on a calm lane too."""
WORDS = ("say", "say in parts", "claim", "end", "fail", "take back", "give back", "stop", "reset", "suspend")
PAUSES = (timedelta(seconds=1), timedelta(hours=7), timedelta(days=2))
STEPS = st.lists(st.sampled_from(WORDS) | st.sampled_from(PAUSES), max_size=24)


class OneLane:
    """A lane in a database of its own, written with what is known of it, or without."""

    def __init__(self, connection: sqlite3.Connection, *, uses_memory: bool) -> None:
        self.uses_memory = uses_memory
        self.lane: KnownLane | None = None
        self.entry: SessionEntry | None = None
        self.turn: ClaimedTurn | None = None
        self._connection = connection
        self._now = datetime(2026, 3, 5, 12, tzinfo=UTC)
        self._ids, self._names = itertools.count(1_000), itertools.count(1)

    def take(self, step: str | timedelta) -> None:
        """Let time pass, or run the transaction of a step."""
        if isinstance(step, timedelta):
            self._now += step
        elif step in ("say", "say in parts"):
            with suppress(MessageRefusedError):
                self._say(in_parts=step == "say in parts")
        elif step in ("end", "fail", "take back"):
            outcomes = {"end": Outcome.TURNED, "fail": Outcome.DEAD, "take back": Outcome.ROLLED_BACK}
            self._end(outcomes[step])
        elif step == "claim":
            self.turn = self._run(claim(self._starter("claim"), LANE, self._change())) or self.turn
        elif step == "give back":
            self._give_back()
        else:  # by another process: this one goes on with what it knew
            self._run(self._meddling(step))
            self.turn = None if step == "stop" else self.turn

    def rows(self) -> dict[str, list[Any]]:
        """Return all rows that these transactions write."""
        return {
            table: self._connection.execute(f"SELECT * FROM {table} ORDER BY {key}").fetchall()  # noqa: S608 -- ours
            for table, key in TABLES
        }

    def _meddling(self, step: str) -> Transaction[object]:
        match step:
            case "stop":
                return waiting.stop_all_work(self._change(), LANE, "/stop")
            case "reset":
                return reset_lane(self._change(), LANE, f"reset {next(self._names)}", None)
            case _:
                return suspend_session(self._change(), LANE, "because")

    def _say(self, *, in_parts: bool) -> None:
        name = next(self._names)
        message = InboundMessage(source=ALICE, text=f"message {name}", message_id=f"m{name}")
        known = self.entry if self.uses_memory else None
        admission = Admission(
            message=message,
            payload=encode_message(message),
            rules=COLLECTED if in_parts else BusyRules(),
            starter=self._starter("say"),
            lane=self.lane if self.uses_memory else None,
        )
        request = SessionRequest(
            source=ALICE, key=LANE, flags=FLAGS, new_session_id=f"session {name}", known=known
        )
        admitted = self._run(admit(admission, request, self._change()))
        if isinstance(admitted, ActiveWorkUnknown):
            told = msgspec.structs.replace(request, active_work=False, asked_version=admitted.version)
            admitted = self._run(admit(admission, told, self._change()))
        assert isinstance(admitted, Admitted)
        self.entry, self.lane = admitted.entry, None
        self.turn = admitted.claimed or self.turn

    def _end(self, outcome: Outcome) -> None:
        if self.turn is None:
            return
        target = ReplyTarget(platform="telegram", chat_id="1")
        settlement = TurnSettlement(
            held=self.turn.held,
            outcome=outcome,
            messages=[Message("assistant", "yes")] if outcome is Outcome.TURNED else [],
            replies=[Owed(target=target, message=OutboundMessage(text="yes"), owner=self.turn.entry.owner)],
            begun=self.turn if self.uses_memory and outcome is not Outcome.DEAD else None,
        )
        memory = KnownBeforeEnd(entry=self.entry) if self.uses_memory else KnownBeforeEnd(others_wait=True)
        settled = self._run(end_turn(settlement, self._change(), memory))
        self.entry, self.lane, self.turn = settled.entry, settled.lane, settled.next

    def _starter(self, of: str) -> TurnStarter:
        known = self.entry if self.uses_memory else None
        return TurnStarter(epoch=1, new_session_id=f"{of} {next(self._names)}", flags=FLAGS, known=known)

    def _give_back(self) -> None:
        if self.turn is not None:
            self._run(give_back_turn(self.turn.held, None, self._change(), counted=True))
            self.turn = None

    def _change(self) -> Change:
        return Change(
            now=self._now,
            ids=self._ids,
            entry_ids=self._ids,
            actor=Actor.PERSON,
            policies=POLICIES,
            freshness=None,
            epoch=1,
        )

    def _run(self, transaction: Transaction[T]) -> T:
        self._connection.execute("BEGIN")
        try:
            statement = next(transaction)
            while True:
                statement = transaction.send(self._answer(statement))
        except StopIteration as end:
            self._connection.execute("COMMIT")
            return end.value
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def _answer(self, statement: Statement) -> Rows:
        if statement.parts:
            return [self._answer(part) for part in statement.parts]
        sql, given = QUERIES[statement.name].sql, statement.many
        if given is not None:
            return [(sum(self._connection.execute(sql, row).rowcount for row in given),)]
        cursor = self._connection.execute(sql, statement.params)
        return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]


@given(STEPS)
@example(["say", "end", "say", "end", "say in parts", timedelta(seconds=1), "claim", "end"])
@example(["say", "give back", "claim", "end", "say", "take back", "say", "end"])
@example(["say", "end", "reset", "say", "end", timedelta(days=2), "say", "end", "suspend", "say"])
def test_memory_changes_no_row(steps: list[str | timedelta]):
    with closing(migrated_in_memory()) as one, closing(migrated_in_memory()) as other:
        knowing, asking = OneLane(one, uses_memory=True), OneLane(other, uses_memory=False)
        for step in steps:
            knowing.take(step)
            asking.take(step)
            assert knowing.rows() == asking.rows()
