"""What WhatsApp's error codes mean for a call, and what an operator can do about them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from gateway_sessions.adapters.webhooks.api_calls import (
    CallLimited,
    CallOutcome,
    CallRefused,
    CallUnauthorized,
    CallUnavailable,
    CallUnknown,
    PlatformAnswer,
    outcome_of_status,
)
from gateway_sessions.integrations.whatsapp.objects import WaProblem

WINDOW_CLOSED: Final = (
    "the person wrote more than 24 hours ago, and WhatsApp takes only templates then: send an approved one "
    'with extra={"whatsapp": {"type": "template", "template": {...}}}, or wait until the person writes'
)
PAIR_PAUSE: Final = 6.0
"""The seconds between two messages from one number to one person, which WhatsApp allows in the long run."""
NUMBER_PAUSE: Final = 1.0
"""The pause of a number that has sent more messages in a second than it may."""
HOURLY_PAUSE: Final = 60.0
"""The pause after too many calls in an hour: WhatsApp does not say when there is room again."""

_WORDS: Final = {
    0: "does not accept the token: make a new one in the app's settings",
    3: "the app lacks a right: give its token whatsapp_business_messaging",
    10: "the app lacks a right: give its token whatsapp_business_messaging",
    190: "does not accept the token, which has ended: make one of a system user, which does not end",
    368: "has blocked the account for a while because it broke the rules: see the account's quality page",
    130472: "did not deliver the message, which was part of an experiment of Meta's",
    131026: "cannot deliver to this person: not on WhatsApp, blocked, or with a very old app",
    131031: "has locked the account: see the account's quality page",
    131042: "sends nothing before the account's payment is settled: see the billing page",
    131047: WINDOW_CLOSED,
    131049: "keeps this person from more marketing messages for a while",
    131050: "says that the person wants no marketing messages",
    131053: "could not take the file: see which types and sizes it takes",
    133010: "does not know the number: register it first",
}
"""Codes of which more can be said than WhatsApp does; its own words follow."""

_PAIR: Final = frozenset({131056})
_NUMBER: Final = frozenset({130429, 131048})
_HOURLY: Final = frozenset({4, 80007})
_TOKEN: Final = frozenset({0, 190})
_LATER: Final = frozenset({2, 3, 10, 368, 131005, 131016, 131031, 131042, 131045, 131057, 133004, 133010})
_RIGHTS: Final = range(200, 300)
_UNCLEAR: Final = frozenset({1, 131000})


def problem_in_words(problem: WaProblem) -> str:
    """Return what went wrong and what to do, for a log."""
    known = _WORDS.get(problem.code, "")
    details = str((problem.error_data or {}).get("details", ""))
    theirs = " ".join(filter(None, (problem.message or problem.title, details)))
    quoted = f"({problem.code}{': ' * bool(theirs)}{theirs})"
    return f"{known} {quoted}" if known else f"{theirs or 'an error'} ({problem.code})"


def outcome_of_answer(answer: PlatformAnswer, now: datetime) -> CallOutcome:
    """Return what an answer of the Graph API says about a call."""
    if answer.is_success:
        # A success without an id comes from a machine in between, and not from WhatsApp.
        message_id = answer.member("messages", 0, "id")
        known = isinstance(answer.json, dict)
        return outcome_of_status(answer, now, message_id=message_id) if known else CallUnknown(answer.problem)
    try:
        problem = msgspec.convert(answer.member("error"), WaProblem)
    except msgspec.ValidationError:
        return outcome_of_status(answer, now)
    return _outcome_of_problem(problem, answer, now)


def _outcome_of_problem(problem: WaProblem, answer: PlatformAnswer, now: datetime) -> CallOutcome:
    words, code = problem_in_words(problem), problem.code
    told = answer.retry_after(now)
    outcomes: tuple[tuple[bool, Callable[[], CallOutcome]], ...] = (
        (code in _PAIR, lambda: CallLimited(told or PAIR_PAUSE)),
        (code in _NUMBER, lambda: CallLimited(told or NUMBER_PAUSE, everywhere=True)),
        (code in _HOURLY, lambda: CallLimited(told or HOURLY_PAUSE, everywhere=True)),
        (code in _TOKEN, lambda: CallUnauthorized(words)),
        (code in _LATER or code in _RIGHTS, lambda: CallUnavailable(words)),
        (code in _UNCLEAR, lambda: CallUnknown(words)),
    )
    for applies, outcome in outcomes:
        if applies:
            return outcome()
    by_status = outcome_of_status(answer, now)
    return CallRefused(words) if isinstance(by_status, CallRefused) else by_status
