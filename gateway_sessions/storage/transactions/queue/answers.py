"""The outcome of one accepted message, and the answer that the transcript has to it."""

from __future__ import annotations

from typing import Final, NamedTuple

from gateway_sessions.core.transcript.messages import STEERED, UNPROMPTED, Message, Role
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.transactions.transcripts.messages import MessagePage, load_page
from gateway_sessions.storage.transactions.transcripts.rewrite import rows_made_of

FORGOTTEN: Final = "forgotten"
"""What is said of a message of which nothing is left, because its sender was erased."""
PAGE: Final = 200
"""The rows that are read at once behind a message, until its answer has come."""


@row_of("outcome_of_event")
class OutcomeRow(NamedTuple):
    """What became of a message."""

    session_key: str
    outcome: str | None
    """None while it waits or runs."""
    problem: str | None


class FoundAnswer(NamedTuple):
    """The answer that a transcript has to a message."""

    session_id: str
    text: str
    finish_reason: str | None


def outcome_of(event: str) -> Transaction[OutcomeRow]:
    """Return what became of the message with that idempotency key."""
    rows = yield Statement("outcome_of_event", (event,))
    return OutcomeRow._make(rows[0]) if rows else OutcomeRow("", FORGOTTEN, None)


def answer_to(session_key: str, message_id: str) -> Transaction[FoundAnswer | None]:
    """Return the last answer behind a message in the sessions of its lane; None if the message is gone.

    What the gateway said by itself meanwhile is no answer, and what was steered into the turn ends it not.
    """
    sessions = [str(session_id) for session_id, _ in (yield Statement("sessions_of_lane", (session_key,)))]
    rows = yield from rows_made_of(sessions, message_id)
    asked = [one for one in rows if one.role == Role.USER and one.active]
    if not asked:
        return None
    last = asked[-1]
    answer: Message | None = None
    after = last.seq
    while page := (yield from load_page(last.session_id, MessagePage(after_seq=after, limit=PAGE))):
        for row in page:
            if row.role == Role.USER and not row.observed and not row.extra.get(STEERED):
                return _found(last.session_id, answer)
            if row.role == Role.ASSISTANT and not row.extra.get(UNPROMPTED):
                answer = row
        after = page[-1].seq
    return _found(last.session_id, answer)


def _found(session_id: str, answer: Message | None) -> FoundAnswer:
    """Return the answer; a turn without a row of an assistant was silent."""
    if answer is None:
        return FoundAnswer(session_id, "", None)
    return FoundAnswer(session_id, answer.text, answer.finish_reason)
