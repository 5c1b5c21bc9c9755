"""What people are told by the gateway itself, and agents about what happened to their turn."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from gateway_sessions.core.command_answers import span
from gateway_sessions.core.keys import account_of
from gateway_sessions.core.lifecycle import BY_POLICY
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.core.session import SessionEntry

DELAYED: Final = timedelta(minutes=5)
"""A message that waited longer is told to the agent as an old one."""

FAILED: Final = "Something went wrong while I worked on that. Your message is kept; /retry tries it again."
TOOK_TOO_LONG: Final = "That took too long, so I stopped. Your message is kept; /retry tries it again."
NO_SIGN_OF_LIFE: Final = "I got stuck on that, so I stopped. Your message is kept; /retry tries it again."
GIVEN_UP: Final = (
    "I tried to answer that several times and was cut off each time, so I stopped. Your message is kept; "
    "the next one starts a new conversation."
)
UNFINISHED: Final = "[This answer was not finished.]"
"""What stands behind the beginning of an answer that was shown and to which no end will come."""
INTERRUPTED: Final = "[This turn was interrupted by another message.]"
NOT_CARRIED_OUT: Final = "I was restarted while I carried out {command}: nobody knows whether it was done."


def cut_off_notice(since: datetime, now: datetime) -> str:
    """What people are told whose turn was cut off too long ago to begin again by itself."""
    return (
        f"I was cut off while I worked on your last message, {span(now - since)} ago, and I did not begin "
        "again by myself. It is kept; /retry tries it again."
    )


_REASONS: Final = MappingProxyType(
    {
        EndReason.IDLE: "there was nothing new for a while",
        EndReason.DAILY: "a new day has begun",
        EndReason.CRON: "it was time for it",
        EndReason.SUSPENDED: "the one before was stopped",
        EndReason.RESUME_PENDING_EXPIRED: "the one before was cut off too long ago to go on with",
        EndReason.MOVED: "the one before goes on somewhere else",
    }
)


def reset_notice(entry: SessionEntry) -> str:
    """What people are told about a session that began by itself, and how they get the one before back."""
    reason = entry.auto_reset_reason
    why = _REASONS.get(reason, "of a rule") if reason is not None else "of a rule"
    if reason is EndReason.MOVED:
        # What two accounts had shared goes on at the other one, where nobody here can bring it back from.
        if_here = " if it is here" if account_of(entry.session_key) else ""
        back = f"/resume {entry.previous_session_id} brings it back{if_here}"
        return f"This is a new conversation, because {why}. {back}."
    return f"This is a new conversation, because {why}. /undo-reset brings the one before back."


def reset_note(entry: SessionEntry) -> str | None:
    """What an agent is told in the first turn of a session that began by itself; None if nothing was lost."""
    reason = entry.auto_reset_reason
    if reason is None or not (entry.reset_had_activity or reason not in BY_POLICY):
        return None
    why = _REASONS.get(reason, "of a rule")
    if reason in BY_POLICY:
        return f"**Note:** The session before this one has expired: {why}. What was said in it is not here."
    return f"**Note:** This session has just begun: {why}. What was said before is not here."


_DONE_ALREADY: Final = (
    "What is in the history was done already: do not do it again. A call without a result may have had its "
    "effect: check first."
)


def recovery_note(attempt: int, admitted_at: datetime, now: datetime, *, begun: bool = False) -> str | None:
    """What an agent is told about a turn that is not fresh; None for one that is.

    *begun* is one that has written to the history before, also if its end was in order.
    """
    notes: list[str] = []
    if attempt > 1:
        notes.append(f"This turn was cut off before, and this is attempt {attempt}. {_DONE_ALREADY}")
    elif begun:
        notes.append(f"This turn has begun before, and was stopped. {_DONE_ALREADY}")
    if now - admitted_at > DELAYED:
        notes.append(f"The message was sent at {admitted_at:%Y-%m-%d %H:%M} UTC and waited until now.")
    return " ".join(notes) or None
