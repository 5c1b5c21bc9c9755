"""The calls of the Bot Connector that show, change and announce messages, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from gateway_sessions.adapters.webhooks.api_calls import (
    ApiCall,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    CallUnavailable,
    PlatformAnswer,
    outcome_of_status,
)
from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.teams.activities import ACTION, LABEL, PLATFORM, THREAD
from gateway_sessions.integrations.teams.objects import ConnectorRefusal, ConnectorResource

LONGEST_TEXT: Final = 20_000
"""The longest text in bytes: with all else of an activity, it stays below the limit of each kind of chat."""
LONGEST_ACTIVITY: Final = 28 << 10
"""The most bytes of an activity, without the content of pictures. Teams takes more in some kinds of chats,
in its own count, but this much in each."""
LARGEST_PICTURE: Final = 1 << 20
"""The most characters of a picture that is part of an activity, as Teams documents it."""
BUTTONS_IN_ROW: Final = 6
"""The most buttons that Teams shows in one set of a card; it hides further ones."""
SHOWN_ATTACHMENTS: Final = frozenset({AttachmentKind.PHOTO})
"""What people send as files needs their consent in Teams; the gateway describes it with its address."""

_CARD: Final = "application/vnd.microsoft.card.adaptive"
_REFUSALS: Final = {
    "BotNotInConversationRoster": "the bot is not part of the conversation any more: add it again",
    "MessageWritesBlocked": "the person or the administrator has blocked the bot",
    "ConversationNotFound": "the conversation does not exist any more",
    "MessageSizeTooBig": "the message is larger than Teams takes",
}
"""Codes of refusals, and what they mean to whoever reads the log."""


def call_that_shows(service_url: str, target: ReplyTarget, message: OutboundMessage) -> ApiCall:
    """Return the call that shows a message; refuse what Teams would."""
    answered = (target.reply_to,) if target.reply_to else ()
    return ApiCall.of_json(
        activities_url(service_url, target, *answered),
        activity_of(target, message),
        name="sendActivity",
        chat=target.chat_id,
    )


def call_that_edits(
    service_url: str, target: ReplyTarget, message: OutboundMessage, message_id: str
) -> ApiCall:
    """Return the call that lets a message say something else."""
    return ApiCall.of_json(
        activities_url(service_url, target, message_id),
        {**activity_of(target, message), "id": message_id},
        method="PUT",
        name="updateActivity",
        chat=target.chat_id,
    )


def call_that_types(service_url: str, target: ReplyTarget) -> ApiCall:
    """Return the call that shows for a few seconds that an answer is being made."""
    url = activities_url(service_url, target)
    return ApiCall.of_json(url, {"type": "typing"}, name="typing", chat=target.chat_id, shows=False)


def activities_url(service_url: str, target: ReplyTarget, *activity: str) -> str:
    """Return the address of a conversation's activities, or of one of them."""
    if not target.chat_id:
        problem = "a message needs a conversation: Teams gives none for a person's id alone"
        raise DeliveryRefusedError(PLATFORM, problem)
    thread = f"{THREAD}{target.thread_id}" if target.thread_id else ""
    parts = ("v3", "conversations", target.chat_id + thread, "activities", *activity)
    # An id must not lead to another place of the service: each is quoted, its slashes too.
    return "/".join((service_url.rstrip("/"), *(quote(part, safe="") for part in parts)))


def activity_of(target: ReplyTarget, message: OutboundMessage) -> dict[str, Any]:
    """Return the activity that shows a message."""
    _check_length(message)
    markup = message.markup
    activity: dict[str, Any] = {
        "type": "message",
        "text": message.text if markup is None else markup,
        "textFormat": "plain" if markup is None else "markdown",
    }
    if target.reply_to:
        activity["replyToId"] = target.reply_to
    pictures = [_picture(one) for one in message.attachments]
    attachments: list[Any] = [*pictures, *_card_of(message.buttons)]
    given = message.extra.get(PLATFORM)
    own: Mapping[str, Any] = given if isinstance(given, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]  # JSON
    attachments += own.get("attachments", [])
    activity |= {**own, **({"attachments": attachments} if attachments else {})}
    _check_size(activity)
    return activity


def _check_length(message: OutboundMessage) -> None:
    length = LengthUnit.BYTES.length(message.text if message.markup is None else message.markup)
    if length > LONGEST_TEXT:
        problem = f"a text may have {LONGEST_TEXT} bytes, this one has {length}"
        raise DeliveryRefusedError(PLATFORM, problem)


def _check_size(activity: Mapping[str, Any]) -> None:
    counted = [
        {**one, "contentUrl": ""} if str(one.get("contentUrl", "")).startswith("data:") else one
        for one in activity.get("attachments", ())
    ]
    size = len(msgspec.json.encode({**activity, "attachments": counted}))
    if size > LONGEST_ACTIVITY:
        problem = f"a message may have {LONGEST_ACTIVITY} bytes with its buttons, this one has {size}"
        raise DeliveryRefusedError(PLATFORM, problem)


def _picture(attachment: Attachment) -> dict[str, str]:
    name = attachment.name or "picture"
    if attachment.kind not in SHOWN_ATTACHMENTS:
        problem = f"{name} is no picture: Teams shows other files by their address alone"
        raise DeliveryRefusedError(PLATFORM, problem)
    if not attachment.url.startswith(("https://", "data:image/")):
        problem = f"{name} has no address that Teams can read: https, or data with an image"
        raise DeliveryRefusedError(PLATFORM, problem)
    if attachment.url.startswith("data:") and len(attachment.url) > LARGEST_PICTURE:
        problem = f"{name} may have {LARGEST_PICTURE} characters as part of a message: send its https address"
        raise DeliveryRefusedError(PLATFORM, problem)
    told = attachment.url.partition(";")[0].partition(",")[0].removeprefix("data:")
    kind = attachment.media_type or (told if attachment.url.startswith("data:") else "image/*")
    return {"contentType": kind, "contentUrl": attachment.url, "name": name}


def _card_of(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Return a card with buttons, in rows that Teams shows whole; none for no buttons."""
    if not buttons:
        return []
    rows = [
        {"type": "ActionSet", "actions": [_button(one) for one in buttons[at : at + BUTTONS_IN_ROW]]}
        for at in range(0, len(buttons), BUTTONS_IN_ROW)
    ]
    card = {"type": "AdaptiveCard", "version": "1.4", "body": rows}
    return [{"contentType": _CARD, "content": card}]


def _button(button: Button) -> dict[str, Any]:
    if button.url is not None:
        return {"type": "Action.OpenUrl", "title": button.label, "url": button.url}
    data = {ACTION: button.action, LABEL: button.label}
    return {"type": "Action.Submit", "title": button.label, "data": data}


# What became of a call


def outcome_of(answer: PlatformAnswer, now: datetime) -> CallOutcome:
    """Return what became of a call."""
    if answer.is_success:
        return CallSucceeded(_read(answer, ConnectorResource).id)
    if answer.status == 412:  # noqa: PLR2004 -- a condition of the service itself has changed meanwhile
        return CallUnavailable(answer.problem)
    outcome = outcome_of_status(answer, now)
    if isinstance(outcome, CallRefused):
        return CallRefused(problem_of(answer))
    return outcome


def problem_of(answer: PlatformAnswer) -> str:
    """Return why a call was refused, and what to do if that is known."""
    told = _read(answer, ConnectorRefusal).error
    if (meaning := _REFUSALS.get(told.code)) is not None:
        return f"{meaning} ({told.code})"
    return f"{told.code}: {told.message}" if told.code else answer.problem


def _read(answer: PlatformAnswer, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(answer.json, kind)
    except msgspec.ValidationError:  # an answer of a proxy, or one without a body
        return kind()
