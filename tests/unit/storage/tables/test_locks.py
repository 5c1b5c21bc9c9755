"""The transactions of each message name their locks in the first statement, so they run in parallel."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gateway_sessions import Config
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.tables import lanes
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.tables.statements import lane_lock, reply_lock, session_lock
from gateway_sessions.storage.transactions.queue import admit, claim, outbox, running_turn, waiting
from gateway_sessions.storage.transactions.sessions import find_or_create, lane_changes
from gateway_sessions.storage.transactions.transcripts import messages

ALICE = SessionSource(platform="telegram", chat_id="1", user_id="alice")
FLAGS = Isolation()
IDS = itertools.count(1)
CHANGE = Change(
    now=EPOCH,
    ids=IDS,
    entry_ids=IDS,
    actor=Actor.PERSON,
    policies=Config(timezone="UTC").policy_book("UTC"),
    freshness=None,
)
REQUEST = find_or_create.SessionRequest(source=ALICE, key="k", flags=FLAGS, new_session_id="s")
KNOWN = SessionEntry(
    session_key="k", session_id="s", created_at=EPOCH, updated_at=EPOCH, last_interaction_at=EPOCH
)
STARTER = claim.TurnStarter(epoch=1, new_session_id="n", flags=FLAGS)
HELD = running_turn.TurnLease(session_key="k", epoch=1, token=1)
SAID = [Message("user", "hello")]
REPLY = outbox.OwedReply(
    reply_id=7,
    session_key="k",
    session_id="s",
    seq=1,
    owner="o",
    target=ReplyTarget(platform="telegram", chat_id="1"),
    message=OutboundMessage(text="yes"),
    attempts=0,
    unclear=0,
    created_at=EPOCH,
    due_at=EPOCH,
)


def message(**members: Any) -> InboundMessage:
    return InboundMessage(source=ALICE, text="hello", **members)


def admitting(said: InboundMessage, request: find_or_create.SessionRequest) -> Transaction[Any]:
    return admit.admit(admit.Admission(message=said, payload="", rules=BusyRules()), request, CHANGE)


BESIDE_OTHERS: dict[str, tuple[Callable[[], Transaction[Any]], str]] = {
    "a message": (partial(admitting, message(message_id="1"), REQUEST), lane_lock("k")),
    "one without an id": (partial(admitting, message(), REQUEST), lane_lock("k")),
    "a session for a message": (
        partial(find_or_create.find_or_create_session, REQUEST, CHANGE),
        lane_lock("k"),
    ),
    "a command": (
        partial(admit.note_command, message(), "", ItemKind.COMMAND, REQUEST, CHANGE),
        lane_lock("k"),
    ),
    "a claim": (partial(claim.claim, STARTER, "k", CHANGE), lane_lock("k")),
    "what an agent says": (partial(running_turn.append_messages, HELD, SAID, CHANGE), lane_lock("k")),
    "what it owes": (partial(running_turn.owe_during_turn, HELD, (), CHANGE), lane_lock("k")),
    "the end of a turn": (
        partial(
            running_turn.end_turn, running_turn.TurnSettlement(held=HELD, outcome=Outcome.TURNED), CHANGE
        ),
        lane_lock("k"),
    ),
    "one that failed": (
        partial(running_turn.end_turn, running_turn.TurnSettlement(held=HELD, outcome=Outcome.DEAD), CHANGE),
        lane_lock("k"),
    ),
    "a message on a lane that is known": (
        partial(lanes.lease_calm_lane, lanes.KnownLane(1, 1), "k", 1, 1),
        lane_lock("k"),
    ),
    "a turn that is given back": (
        partial(running_turn.give_back_turn, HELD, None, CHANGE, counted=True),
        lane_lock("k"),
    ),
    "an answer": (
        partial(lane_changes.settle_clocks, CHANGE, lane_changes.EndOfTurn(session_key="k", known=KNOWN)),
        lane_lock("k"),
    ),
    "a row of a transcript": (partial(messages.append_messages, "s", SAID, EPOCH, IDS), session_lock("s")),
    "a reply on its way": (partial(outbox.mark_sending, REPLY, 1), reply_lock(7)),
    "one that was sent": (partial(outbox.mark_sent, [outbox.SentReply(REPLY, None, EPOCH)]), reply_lock(7)),
    "one that is tried again": (partial(outbox.put_off_reply, REPLY, EPOCH, "", unclear=0), reply_lock(7)),
    "one that is given up": (partial(outbox.give_up_reply, REPLY, EPOCH, "", unclear=0), reply_lock(7)),
}
ALONE: dict[str, Callable[[], Transaction[Any]]] = {
    "what overtakes a lane": partial(waiting.stop_all_work, CHANGE, "k", "/stop"),
    "a reset": partial(lane_changes.reset_lane, CHANGE, "k", "n", None),
    "what is forgotten": partial(waiting.forget_settled, EPOCH),
}


@pytest.mark.parametrize("what", BESIDE_OTHERS)
def test_what_every_message_needs_runs_beside_others(what: str):
    transaction, lock = BESIDE_OTHERS[what]
    assert next(transaction()).lock == lock


@pytest.mark.parametrize("what", ALONE)
def test_what_reaches_further_runs_alone(what: str):
    assert next(ALONE[what]()).lock is None


def test_the_shortest_of_changes_runs_beside_others():
    assert find_or_create.touch_statement(KNOWN, EPOCH).lock == lane_lock("k")
