"""Reading of WhatsApp's webhooks: messages, choices, reports on what was sent, and all the rest.

A webhook may bring several entries with several changes with several messages. Each is read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec

from gateway_sessions.adapters.webhooks.events import (
    DeliveryState,
    DeliveryStatus,
    PassedOver,
    UnreadableEvent,
    WebhookEvent,
)
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage, ReplyTo
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.whatsapp.failures import problem_in_words
from gateway_sessions.integrations.whatsapp.objects import (
    WaContact,
    WaMedia,
    WaMessage,
    WaMetadata,
    WaProblem,
    WaStatus,
)

MEDIA: Final = "whatsapp:"
"""The beginning of an attachment's address: behind it stands the id of the file, for this account only."""

_KINDS: Final = {
    "image": AttachmentKind.PHOTO,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
    "document": AttachmentKind.DOCUMENT,
    "sticker": AttachmentKind.STICKER,
}
_NOT_READABLE: Final = (msgspec.ValidationError, InvalidInputError, ValueError, OverflowError, OSError)


@dataclass(frozen=True, slots=True)
class ReadingNumber:
    """The number whose webhooks are read."""

    phone_number_id: str
    account: str = ""
    others: frozenset[str] = frozenset()
    """The ids of other numbers, which get the same webhooks and read their own parts."""


def events_in(body: bytes, number: ReadingNumber) -> list[WebhookEvent]:
    """Return what a webhook tells; `InvalidInputError` if nothing of it can be read."""
    try:
        told = msgspec.json.decode(body)
        entries = told["entry"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, TypeError) as error:
        problem = f"this is no webhook of WhatsApp ({type(error).__name__})"
        raise InvalidInputError(problem) from error
    if not isinstance(entries, list):
        problem = "this is no webhook of WhatsApp: its entries are no list"
        raise InvalidInputError(problem)
    events = [event for entry in cast("list[object]", entries) for event in _events_of_entry(entry, number)]
    return events or [PassedOver("a webhook without entries")]


def _events_of_entry(entry: object, number: ReadingNumber) -> Iterator[WebhookEvent]:
    changes = _member(entry, "changes")
    if not isinstance(changes, list):
        yield UnreadableEvent(entry, "an entry has no list of changes")
        return
    for change in cast("list[object]", changes):
        value = _member(change, "value")
        if _member(change, "field") != "messages":
            yield PassedOver(f"a change of {_member(change, 'field')!r}")
        elif not isinstance(value, dict):
            yield UnreadableEvent(change, "a change has no value")
        else:
            yield from _events_of_value(cast("dict[str, Any]", value), number)


def _events_of_value(value: dict[str, Any], number: ReadingNumber) -> Iterator[WebhookEvent]:
    try:
        metadata = msgspec.convert(value.get("metadata"), WaMetadata)
    except msgspec.ValidationError as error:
        yield UnreadableEvent(value, f"nobody knows for which number this is ({error})")
        return
    if metadata.phone_number_id in number.others:
        yield PassedOver("a change for another number at this path")
        return
    if metadata.phone_number_id != number.phone_number_id:
        problem = (
            f"this is for the number {metadata.phone_number_id}, and not for {number.phone_number_id}: give "
            "that number an adapter, at the same path= or at a webhook address of its own"
        )
        yield UnreadableEvent(value, problem)
        return
    contacts = _items(value, "contacts")
    lists = {name: _items(value, name) for name in ("messages", "statuses", "errors")}
    if not any(lists.values()):
        yield PassedOver("a change without messages")
    for message in lists["messages"]:
        yield _message_event(message, contacts, metadata, number)
    for status in lists["statuses"]:
        yield _status_event(status)
    for told in lists["errors"]:
        yield UnreadableEvent(told, f"WhatsApp reports an error of the account: {_in_words(told)}")


def _items(value: dict[str, Any], name: str) -> list[object]:
    """Return a list of a change; something else in its place counts as one item, so that it is not lost."""
    items = value.get(name)
    if items is None:
        return []
    return cast("list[object]", items) if isinstance(items, list) else [items]


def _member(value: object, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def _in_words(error: object) -> str:
    try:
        return problem_in_words(msgspec.convert(error, WaProblem))
    except msgspec.ValidationError:
        return "of unknown form"


# Messages


def _message_event(
    told: object, contacts: list[object], metadata: WaMetadata, number: ReadingNumber
) -> WebhookEvent:
    try:
        message = msgspec.convert(told, WaMessage)
        if message.type in ("reaction", "system", "request_welcome"):
            return PassedOver(f"a message of type {message.type}")
        content = _content_of(message)
        if content is None:
            return UnreadableEvent(told, f"a message of the unknown type {message.type!r}")
        text, action, attachments = content
        return InboundMessage(
            source=_source_of(message, _contact_of(message, contacts), number.account),
            text=text,
            action=action,
            attachments=attachments,
            message_id=message.id,
            account=number.account,
            sent_at=datetime.fromtimestamp(int(message.timestamp), UTC),
            reply_to=_reply_of(message, metadata),
        )
    except _NOT_READABLE as error:
        return UnreadableEvent(told, f"{type(error).__name__}: {error}")


def _content_of(message: WaMessage) -> tuple[str, str | None, tuple[Attachment, ...]] | None:
    """Return text, action and attachments of a message; None if its type is not known."""
    match message:
        case WaMessage(type="text") if message.text is not None:
            return message.text.body, None, ()
        case WaMessage(type="location") if (place := message.location) is not None:
            where = f"geo:{place.latitude},{place.longitude}"
            words = ", ".join(filter(None, (place.name, place.address)))
            attachment = Attachment(kind=AttachmentKind.LOCATION, url=where, name=words or None)
            return words, None, (attachment,)
        case WaMessage(type="contacts") if message.contacts is not None:
            cards = [
                " ".join([one.name.formatted_name, *(each.phone for each in one.phones)]).strip()
                for one in message.contacts
            ]
            return "\n".join(f"[contact: {card}]" for card in cards), None, ()
        case WaMessage(type="button") if (pressed := message.button) is not None:
            return pressed.text, pressed.payload or pressed.text, ()
        case WaMessage(type="unsupported"):
            return "[a message of a kind that WhatsApp does not pass on]", None, ()
        case _:
            return _choice_of(message) or _file_of(message)


def _choice_of(message: WaMessage) -> tuple[str, str | None, tuple[Attachment, ...]] | None:
    chosen = message.interactive
    if chosen is None:
        return None
    if (choice := chosen.button_reply or chosen.list_reply) is not None:
        return choice.title or choice.id, choice.id, ()
    if chosen.nfm_reply is not None:
        return chosen.nfm_reply.response_json or chosen.nfm_reply.body, None, ()
    return None


def _file_of(message: WaMessage) -> tuple[str, str | None, tuple[Attachment, ...]] | None:
    file: WaMedia | None = getattr(message, message.type) if message.type in _KINDS else None
    if file is None:
        return None
    kind = AttachmentKind.VOICE if file.voice else _KINDS[message.type]
    url = f"{MEDIA}{file.id}"
    attachment = Attachment(kind=kind, url=url, media_type=file.mime_type, name=file.filename)
    return file.caption or "", None, (attachment,)


def _contact_of(message: WaMessage, contacts: list[object]) -> WaContact:
    """Return the contact who wrote: by its ids, or the only one."""
    known: list[WaContact] = []
    for one in contacts:
        try:
            known.append(msgspec.convert(one, WaContact))
        except msgspec.ValidationError:
            continue  # a name less; the ids stand in the message itself as well
    for contact in known:
        ids = {contact.wa_id, contact.user_id} - {None, ""}
        if ids & {message.sender, message.from_user_id}:
            return contact
    nameless = not (message.sender or message.from_user_id)
    return known[0] if nameless and len(known) == 1 else WaContact()


def _source_of(message: WaMessage, contact: WaContact, account: str) -> SessionSource:
    phone = message.sender or contact.wa_id or None
    person = message.from_user_id or contact.user_id or None
    if not (phone or person):
        problem = "nobody knows who wrote this"
        raise InvalidInputError(problem)
    profile = contact.profile
    return SessionSource(
        platform=Platform.WHATSAPP,
        # The id for the business stays when people change or hide their number, so it names the chat.
        chat_id=message.group_id or person or phone or "",
        chat_id_alt=phone if person and not message.group_id else None,
        chat_type="group" if message.group_id else "dm",
        user_id=phone or person,
        user_id_alt=person,
        user_name=profile.name or profile.username,
        account=account,
    )


def _reply_of(message: WaMessage, metadata: WaMetadata) -> ReplyTo | None:
    context = message.context
    if context is None or not context.id:
        return None
    digits = "".join(filter(str.isdigit, metadata.display_phone_number))
    own = bool(digits) and context.sender == digits
    return ReplyTo(message_id=context.id, author_id=context.sender, own=own)


# Reports


def _status_event(told: object) -> WebhookEvent:
    try:
        status = msgspec.convert(told, WaStatus)
        if status.status not in list(DeliveryState):
            return PassedOver(f"a report that a message is {status.status!r}")
        at = None if status.timestamp is None else datetime.fromtimestamp(int(status.timestamp), UTC)
        return DeliveryStatus(
            message_id=status.id,
            state=DeliveryState(status.status),
            idempotency_key=status.biz_opaque_callback_data,
            chat_id=status.recipient_user_id or status.recipient_id or "",
            at=at,
            problem="; ".join(map(problem_in_words, status.errors)) or None,
        )
    except _NOT_READABLE as error:
        return UnreadableEvent(told, f"{type(error).__name__}: {error}")
