"""The calls of LINE's Messaging API that show a message, and what became of them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec

from gateway_sessions.adapters.webhooks import (
    ApiCall,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    PlatformAnswer,
    outcome_of_status,
)
from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage, ReplyTarget
from gateway_sessions.core.markdown.dialects import PLAIN
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.line.events import PLATFORM
from gateway_sessions.integrations.line.objects import LineSendAnswer

LONGEST_TEXT: Final = 5000
"""In UTF-16 units, as LINE counts."""
LINE_TEXT: Final = replace(PLAIN, name=PLATFORM, limit=LONGEST_TEXT, unit=LengthUnit.UTF16)
"""LINE shows text as it is."""
MESSAGES_IN_CALL: Final = 5
MOST_BUTTONS: Final = 13
LONGEST_LABEL: Final = 20
LONGEST_DATA: Final = 300
LONGEST_URL: Final = 2000
REPLY: Final = "reply"
"""The name of the call that replies by a token."""
LOADING_SECONDS: Final = 20
"""The time for which the sign of typing is shown; it goes when the answer comes. The gateway renews it."""
SHOWN_ATTACHMENTS: Final = frozenset({AttachmentKind.PHOTO})
"""A video needs a picture of its own, an audio its length: the gateway tells of both in words."""

_RETRY_KEYS: Final = uuid.UUID("6d0b3ab1-2c55-4b7e-9a0f-3f2f6f1b7c11")
"""The name space in which a retry key is made of an idempotency key."""


def retry_key(idempotency_key: str, number: int) -> str:
    """Return the retry key of one call of a message: always the same one, in the form that LINE wants."""
    return str(uuid.uuid5(_RETRY_KEYS, f"{number}\x1f{idempotency_key}"))


def messages_of(message: OutboundMessage) -> list[dict[str, Any]]:
    """Return the objects that show a message, in order; refuse what LINE would."""
    text = message.text if message.markup is None else message.markup
    if (length := LengthUnit.UTF16.length(text)) > LONGEST_TEXT:
        problem = f"a text may have {LONGEST_TEXT} UTF-16 units, this one has {length}"
        raise DeliveryRefusedError(PLATFORM, problem)
    shown: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    shown += [_picture(one) for one in message.attachments]
    given = message.extra.get(PLATFORM)
    own: Mapping[str, Any] = given if isinstance(given, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]  # JSON
    shown += own.get("messages", [])
    if not shown:
        problem = "a message needs a text, a picture or messages of its own"
        raise DeliveryRefusedError(PLATFORM, problem)
    if message.buttons:
        shown[-1] = {**shown[-1], "quickReply": {"items": _quick_replies(message.buttons)}}
    return shown


def push_calls(
    api_url: str, target: ReplyTarget, messages: Sequence[Mapping[str, Any]], *, idempotency_key: str
) -> list[ApiCall]:
    """Return the calls that push messages to a chat, which LINE carries out once however often they come."""
    batches = [messages[at : at + MESSAGES_IN_CALL] for at in range(0, len(messages), MESSAGES_IN_CALL)]
    return [
        ApiCall.of_json(
            f"{api_url}/v2/bot/message/push",
            {"to": chat_of(target), "messages": batch},
            name="push",
            chat=chat_of(target),
            headers={"x-line-retry-key": retry_key(idempotency_key, number)},
        )
        for number, batch in enumerate(batches)
    ]


def reply_call(api_url: str, token: str, push: ApiCall) -> ApiCall:
    """Return the call that does the same as a push by a reply token, which costs nothing."""
    messages = msgspec.json.decode(push.body)["messages"]
    url = f"{api_url}/v2/bot/message/reply"
    body = {"replyToken": token, "messages": messages}
    return ApiCall.of_json(url, body, name=REPLY, chat=push.chat, plain=push)


def loading_call(api_url: str, target: ReplyTarget) -> ApiCall:
    """Return the call that shows to one person that an answer is being made."""
    body = {"chatId": chat_of(target), "loadingSeconds": LOADING_SECONDS}
    url = f"{api_url}/v2/bot/chat/loading/start"
    return ApiCall.of_json(url, body, name="loading", chat=chat_of(target), shows=False)


def chat_of(target: ReplyTarget) -> str:
    """Return the chat of a target, which may name a person alone."""
    chat = target.chat_id or target.user_id
    if not chat:
        problem = "the target names neither a chat nor a person"
        raise DeliveryRefusedError(PLATFORM, problem)
    return chat


def _picture(attachment: Attachment) -> dict[str, str]:
    name = attachment.name or "a picture"
    if attachment.kind not in SHOWN_ATTACHMENTS:
        problem = f"{name} is no picture: LINE shows other files by their address alone"
        raise DeliveryRefusedError(PLATFORM, problem)
    if not attachment.url.startswith("https://") or len(attachment.url) > LONGEST_URL:
        problem = f"{name} has no https address of up to {LONGEST_URL} characters, which LINE could read"
        raise DeliveryRefusedError(PLATFORM, problem)
    return {"type": "image", "originalContentUrl": attachment.url, "previewImageUrl": attachment.url}


def _quick_replies(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    if len(buttons) > MOST_BUTTONS:
        problem = f"a message may have {MOST_BUTTONS} buttons, this one has {len(buttons)}"
        raise DeliveryRefusedError(PLATFORM, problem)
    return [{"type": "action", "action": _action(button)} for button in buttons]


def _action(button: Button) -> dict[str, str]:
    label = button.label if len(button.label) <= LONGEST_LABEL else f"{button.label[: LONGEST_LABEL - 1]}…"
    if button.url is not None:
        return {"type": "uri", "label": label, "uri": button.url}
    if len(button.action) > LONGEST_DATA:
        problem = f"the value of a button may have {LONGEST_DATA} characters"
        raise DeliveryRefusedError(PLATFORM, problem)
    shown = button.label[:LONGEST_DATA]
    return {"type": "postback", "label": label, "data": button.action, "displayText": shown}


# What became of a call


def outcome_of(answer: PlatformAnswer, now: datetime) -> CallOutcome:
    """Return what became of a call."""
    told = read_answer(answer)
    first = told.sent_messages[0].id if told.sent_messages else None
    if answer.is_success or answer.status == 409:  # noqa: PLR2004 -- a call with this retry key was accepted before
        return CallSucceeded(first)
    if answer.status == 429 and "monthly limit" in told.message.lower():  # noqa: PLR2004 -- too many requests
        problem = "the messages of this month are used up: see the plan of the account"
        return CallRefused(problem)
    outcome = outcome_of_status(answer, now, everywhere=True)
    if not isinstance(outcome, CallRefused) or not told.message:
        return outcome
    if answer.status == 403:  # noqa: PLR2004 -- the account or its plan lacks a right
        to_do = "see which features the type and the plan of the account have"
        return CallRefused(f"{told.message.rstrip('.')}: {to_do}")
    return CallRefused(told.message)


def is_spent_token(answer: PlatformAnswer) -> bool:
    """Return whether a reply was refused because its token was used before, or is too old."""
    return answer.status == 400 and "invalid reply token" in read_answer(answer).message.lower()  # noqa: PLR2004


def read_answer(answer: PlatformAnswer) -> LineSendAnswer:
    """Return what the answer to a call tells; nothing, if it is a proxy's."""
    try:
        return msgspec.convert(answer.json, LineSendAnswer)
    except msgspec.ValidationError:
        return LineSendAnswer()
