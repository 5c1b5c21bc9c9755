"""Notices about busy lanes, budgets, resets and cut-off turns, and notes to agents.

What people get is a `Notice`, with a code and the values of which its text was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Final

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.identity.keys import account_in_key
from gateway_sessions.core.notices.human_units import duration_in_words
from gateway_sessions.core.notices.notice import Notice
from gateway_sessions.core.queue.busy_modes import Demotion
from gateway_sessions.core.queue.inbound import Disposition, RejectReason
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.state_machine import BY_POLICY
from gateway_sessions.core.usage.budgets import ALL, BudgetOf, BudgetUse, Stop


def acknowledgement_notice(
    disposition: Disposition, depth: int = 0, demotion: Demotion | None = None
) -> Notice | None:
    """Return the notice about a message that was accepted; None where people see the effect soon enough.

    *depth* is the number of turns that wait, this one included.
    """
    others = max(depth - 1, 0)
    after = f"after {others} other{'s' if others > 1 else ''}" if others > 0 else ""
    match disposition:
        case Disposition.QUEUED:
            before = f", {after}" if after else ""
            text = f"Queued: I will answer this when I am done{before}.{demotion_note(demotion)}"
            return Notice("queued", text, others=others, demotion=demotion)
        case Disposition.STEERS:
            return Notice("passed_on", "Passed on to what I am working on.")
        case Disposition.INTERRUPTS:
            then = f". I will answer this {after}." if after else ", and turning to this."
            return Notice("stopping", f"Stopping what I was doing{then}", others=others)
        case Disposition.ROLLS_BACK:
            then = f". I will answer this {after}." if after else ", and starting again with this."
            return Notice("taking_back", f"Taking back what I was doing{then}", others=others)
        case _:
            return None


def demotion_note(demotion: Demotion | None) -> str:
    """Return the end of an acknowledgement that tells why the message only waits."""
    return _NOTES[demotion] if demotion else ""


_NOTES: Final = MappingProxyType(
    {
        Demotion.SUB_WORK: " Work is under way that must not be cut off; /stop ends it all the same.",
        Demotion.CANNOT_STEER: " It cannot be passed on to what I am working on.",
    }
)


def refusal_notice(reason: RejectReason) -> Notice:
    """Return the notice about a message that was refused."""
    return _REFUSALS[reason]


_REFUSALS: Final = MappingProxyType(
    {
        RejectReason.BUSY: Notice(
            "busy", "I am busy, and did not take your message. Please send it again in a moment."
        ),
        RejectReason.QUEUE_FULL: Notice(
            "queue_full",
            "Too many messages wait here already, so I did not take this one. Please send it again later.",
        ),
        RejectReason.OVERLOADED: Notice(
            "overloaded",
            "I have too much to do, and did not take your message. Please send it again later.",
        ),
        RejectReason.TOO_LARGE: Notice("too_large", "Your message is too large, and I did not take it."),
        RejectReason.DRAINING: Notice(
            "draining", "I am about to restart, and did not take your message. Please send it again soon."
        ),
        RejectReason.ERASED: Notice(
            "erased", "This message was sent before your data was erased, and I did not take it."
        ),
        RejectReason.NOT_ALLOWED: Notice("not_allowed", "I may not take this message."),
        RejectReason.NOT_ADDRESSED: Notice("not_addressed", "This command is for somebody else."),
        RejectReason.EMPTY: Notice("empty", "There is nothing in this message."),
        RejectReason.UNKNOWN: Notice("unknown", "I do not know the message that this changes."),
    }
)


def dropped_notice(messages: int = 1) -> Notice:
    """Return the notice to a person whose waiting turn, of that many messages, was dropped for another."""
    what = "a message of yours" if messages == 1 else f"{messages} messages of yours"
    text = f"Too many messages wait here: {what} had to make room, and will not be answered."
    return Notice("dropped", text, messages=messages)


_WHOSE: Final = MappingProxyType(
    {
        BudgetOf.SESSION: "the budget of this conversation",
        BudgetOf.PERSON: "your budget for today",
        BudgetOf.DAY: "today's budget for everybody",
    }
)
_AGAIN: Final = "Please send your message again then."
"""The advice to send the message again. /retry would not do: another conversation may have begun by then."""
_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)


def budget_warning(uses: Sequence[BudgetUse]) -> Notice:
    """Return the notice to people who may go on although a budget is nearly used up."""
    text = " ".join(_capitalise_first(_nearly_used_up(use)) for use in uses)
    return Notice("budget_nearly_used_up", text, budgets=_facts_of(uses))


def budget_stop(stop: Stop, now: datetime, zone: tzinfo) -> Notice:
    """Return the notice to people whose message is not answered because a budget is used up."""
    why = " and ".join(dict.fromkeys(_used_up(use) for use in stop.reached))
    frees_up_at = _frees_up_at(stop)
    return Notice(
        "budget_used_up",
        f"I did not work on that: {why}. {_when_it_goes_on(stop, now, zone)} {_AGAIN}",
        budgets=_facts_of(stop.reached),
        goes_on_at=None if frees_up_at is None else frees_up_at.astimezone(zone),
        zone=str(zone),
        seconds_left=None if frees_up_at is None else (frees_up_at - now).total_seconds(),
        needs_new_conversation=_needs_new_conversation(stop),
    )


def _facts_of(uses: Sequence[BudgetUse]) -> list[dict[str, object]]:
    return [
        {
            "budget": one.budget,
            "percent": int(one.percent),
            "used_up": one.percent >= ALL,
            "has_unknown_prices": one.unknown > 0,
        }
        for one in uses
    ]


def _needs_new_conversation(stop: Stop) -> bool:
    """Return whether a budget never frees up in this conversation."""
    return any(use.frees_up_at is None for use in stop.reached)


def _frees_up_at(stop: Stop) -> datetime | None:
    """Return the time at which the last of the budgets that free up by themselves does so."""
    return max((use.frees_up_at for use in stop.reached if use.frees_up_at is not None), default=None)


def _nearly_used_up(use: BudgetUse) -> str:
    whose, percent = _WHOSE[use.budget], int(use.percent)
    if use.unknown:
        return f"at least {percent} % of {whose} is used; of some of it nobody knows the price."
    return f"{percent} % of {whose} is used."


def _used_up(use: BudgetUse) -> str:
    whose = _WHOSE[use.budget]
    return f"{whose} is used up" if use.percent >= ALL else f"nobody knows how much of {whose} is used"


def _when_it_goes_on(stop: Stop, now: datetime, zone: tzinfo) -> str:
    at = _frees_up_at(stop)
    if at is None:
        return "/new begins a conversation with a budget of its own."
    where = ", in a conversation that /new begins" if _needs_new_conversation(stop) else ""
    return f"It goes on at {at.astimezone(zone):%H:%M} ({zone}), {_time_left(at - now)}{where}."


def _time_left(left: timedelta) -> str:
    if left < _MINUTE:
        return "in less than a minute"
    unit, name = (_HOUR, "hour") if left >= 2 * _HOUR else (_MINUTE, "minute")
    count = round(left / unit)
    return f"in {count} {name}{'s' if count != 1 else ''}"


def _capitalise_first(text: str) -> str:
    return text[:1].upper() + text[1:]


FAILED: Final = Notice(
    "failed", "Something went wrong while I worked on that. Your message is kept; /retry tries it again."
)
TOOK_TOO_LONG: Final = Notice(
    "took_too_long", "That took too long, so I stopped. Your message is kept; /retry tries it again."
)
NO_SIGN_OF_LIFE: Final = Notice(
    "stuck", "I got stuck on that, so I stopped. Your message is kept; /retry tries it again."
)
GIVEN_UP: Final = Notice(
    "given_up",
    "I tried to answer that several times and was cut off each time, so I stopped. Your message is kept; "
    "the next one starts a new conversation.",
)
UNFINISHED: Final = Notice("unfinished", "[This answer was not finished.]")
"""The end of an answer that was shown in part and that will not be finished."""
MAYBE_REPEAT: Final = Notice("maybe_repeat", REPEATED)
"""The first line of a reply that may have been sent before."""
INTERRUPTED: Final = "[This turn was interrupted by another message.]"
"""The note that the agent sees in the place of an answer of which nothing was shown."""


def not_carried_out_notice(command: str | None) -> Notice:
    """Return the notice to a person whose command was cut off by a crash."""
    text = f"I was restarted while I carried out /{command}: nobody knows whether it was done."
    return Notice("not_carried_out", text, command=command)


def cut_off_notice(since: datetime, now: datetime) -> Notice:
    """Return the notice to people whose turn was cut off too long ago to begin again by itself."""
    text = (
        f"I was cut off while I worked on your last message, {duration_in_words(now - since)} ago, and I did "
        "not begin again by myself. It is kept; /retry tries it again."
    )
    return Notice("cut_off", text, since=since, seconds_ago=(now - since).total_seconds())


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


def reset_notice(entry: SessionEntry) -> Notice:
    """Return the notice of a session that began by itself, with the way back to the one before."""
    reason = entry.auto_reset_reason
    why = _REASONS.get(reason, "of a rule") if reason is not None else "of a rule"
    is_here = True
    back = "/undo-reset brings the one before back"
    if reason is EndReason.MOVED:
        # A session that two accounts had shared goes on at the other one, where this account cannot bring it
        # back from.
        is_here = not account_in_key(entry.session_key)
        back = f"/resume {entry.previous_session_id} brings it back{'' if is_here else ' if it is here'}"
    return Notice(
        "reset",
        f"This is a new conversation, because {why}. {back}.",
        reason=reason,
        previous_session_id=entry.previous_session_id,
        previous_is_here=is_here,
    )


def reset_note(entry: SessionEntry) -> str | None:
    """Return the agent's note for the first turn after an automatic reset; None if nothing was lost."""
    reason = entry.auto_reset_reason
    if reason is None or not (entry.reset_had_activity or reason not in BY_POLICY):
        return None
    why = _REASONS.get(reason, "of a rule")
    if reason in BY_POLICY:
        return f"**Note:** The session before this one has expired: {why}. What was said in it is not here."
    return f"**Note:** This session has just begun: {why}. What was said before is not here."
