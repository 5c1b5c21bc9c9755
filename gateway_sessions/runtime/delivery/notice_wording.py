"""The words of notices that a program gives instead of ours, such as translations."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import structs

from gateway_sessions.core.checks import plain_text
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.notices.notice import Notice, notice_in
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.user_code import call_user_code, check_instance

logger: Final = logging.getLogger(__name__)

Wording: TypeAlias = Callable[[Notice, ReplyTarget], str | None]
"""Returns other words for a notice that goes to that target; None: ours stay."""


def word_notice(wording: Wording, message: OutboundMessage, target: ReplyTarget) -> OutboundMessage:
    """Return the message in the program's words. If the program has none or fails, our words stay.

    Words that are final are not worded again. After a failure they are not final: the next try asks again.
    """
    if message.worded or message.notice_code is None:
        return message
    try:
        words = _ask_for_words(wording, message, target)
    except Exception:
        facts = {"action": "wording_failed", "notice_code": message.notice_code}
        logger.exception("a notice could not be worded, and is sent in our words", extra=facts)
        return message
    worded = structs.replace(message, worded=True)
    return worded if words is None else worded.with_text(words)


def _ask_for_words(wording: Wording, message: OutboundMessage, target: ReplyTarget) -> str | None:
    words = call_user_code("wording", wording, notice_in(message), target)
    if words is None:
        return None
    check_instance("what wording returned", words, str, "return a str, or None")
    if not words.strip():
        problem = "wording returned a text that shows nothing; return None for our words"
        raise InvalidInputError(problem)
    return plain_text(words)
