"""What people are told about a message that came while its lane was busy."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from gateway_sessions.core.busy import Demotion
from gateway_sessions.core.receipts import Disposition, RejectReason


def acknowledgement(disposition: Disposition, depth: int = 0, demotion: Demotion | None = None) -> str | None:
    """What a person is told about a message that was accepted; None: nothing, as they see it soon enough.

    *depth* is how many turns wait, this one included.
    """
    others = depth - 1
    after = f"after {others} other{'s' if others > 1 else ''}" if others > 0 else ""
    match disposition:
        case Disposition.QUEUED:
            before = f", {after}" if after else ""
            return f"Queued: I will answer this when I am done{before}.{demotion_note(demotion)}"
        case Disposition.STEERS:
            return "Passed on to what I am working on."
        case Disposition.INTERRUPTS:
            then = f". I will answer this {after}." if after else ", and turning to this."
            return f"Stopping what I was doing{then}"
        case Disposition.ROLLS_BACK:
            then = f". I will answer this {after}." if after else ", and starting again with this."
            return f"Taking back what I was doing{then}"
        case _:
            return None


def demotion_note(demotion: Demotion | None) -> str:
    """The end of an acknowledgement that tells why the message only waits."""
    return _NOTES[demotion] if demotion else ""


_NOTES: Final = MappingProxyType(
    {
        Demotion.SUB_WORK: " Work is under way that must not be cut off; /stop ends it all the same.",
        Demotion.CANNOT_STEER: " It cannot be passed on to what I am working on.",
    }
)


def refusal(reason: RejectReason) -> str:
    """What a person is told about a message that was refused."""
    return _REFUSALS[reason]


_REFUSALS: Final = MappingProxyType(
    {
        RejectReason.BUSY: "I am busy, and did not take your message. Please send it again in a moment.",
        RejectReason.QUEUE_FULL: (
            "Too many messages wait here already, so I did not take this one. Please send it again later."
        ),
        RejectReason.OVERLOADED: (
            "I have too much to do, and did not take your message. Please send it again later."
        ),
        RejectReason.TOO_LARGE: "Your message is too large, and I did not take it.",
        RejectReason.DRAINING: (
            "I am about to restart, and did not take your message. Please send it again soon."
        ),
        RejectReason.ERASED: "This message was sent before your data was erased, and I did not take it.",
        RejectReason.NOT_ALLOWED: "I may not take this message.",
        RejectReason.NOT_ADDRESSED: "This command is for somebody else.",
        RejectReason.EMPTY: "There is nothing in this message.",
        RejectReason.UNKNOWN: "I do not know the message that this changes.",
    }
)


def dropped_notice(messages: int = 1) -> str:
    """What a person is told whose waiting turn, of that many messages, made room for a newer one."""
    what = "a message of yours" if messages == 1 else f"{messages} messages of yours"
    return f"Too many messages wait here: {what} had to make room, and will not be answered."
