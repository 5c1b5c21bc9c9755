"""Reading of Twilio's requests: their signature, the message that one brings, and the fate of sent ones.

Nothing here waits or asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from gateway_sessions.adapters.webhooks import (
    DeliveryState,
    DeliveryStatus,
    PassedOver,
    UnreadableEvent,
    WebhookEvent,
)
from gateway_sessions.adapters.webhooks.signatures import hmac_base64, is_same_secret
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage, ReplyTo
from gateway_sessions.errors import InvalidInputError

PLATFORM: Final = "twilio"
SENDER: Final = "sender"
"""The member of a message's metadata that holds the number to which somebody wrote."""
WHATSAPP: Final = "whatsapp:"
"""The beginning of an address on WhatsApp."""
STOP_WORDS: Final = frozenset(
    {
        *("STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"),
        *("START", "UNSTOP"),
    }
)
"""The messages by which people end and begin what they are sent. Twilio carries them out itself."""
MOST_FIELDS: Final = 200
MOST_MEDIA: Final = 10
"""The most files of one message."""

_STATES: Final = {
    "sent": DeliveryState.SENT,
    "delivered": DeliveryState.DELIVERED,
    "read": DeliveryState.READ,
    "undelivered": DeliveryState.FAILED,
    "failed": DeliveryState.FAILED,
}
_MEANINGS: Final = {
    "30003": "the phone is switched off or out of reach",
    "30004": "the person or the carrier has blocked the number",
    "30005": "the number does not exist",
    "30006": "the number is a landline",
    "30007": "the carrier took the message for spam",
    "63016": "WhatsApp takes only templates more than 24 hours after a person's last message",
}
"""Codes of failures, and what they mean to whoever reads the log."""
_MEDIA: Final = {
    "image": AttachmentKind.PHOTO,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
}

TwilioForm: TypeAlias = Sequence[tuple[str, str]]


def read_form(raw: bytes) -> TwilioForm:
    """Return the fields of a request; `InvalidInputError` if it is no form."""
    try:
        return parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError) as error:
        problem = f"a request of Twilio cannot be read ({type(error).__name__}: {error})"
        raise InvalidInputError(problem) from error


def is_signed(given: str, url: str, form: TwilioForm, auth_token: str) -> bool:
    """Return whether Twilio has signed a form that it posts to exactly this address."""
    # As Twilio's own libraries have it, a value that comes twice under one name counts once.
    fields = "".join(name + value for name, value in sorted(set(form)))
    checks = [
        is_same_secret(hmac_base64(auth_token, (one + fields).encode(), "sha1"), given)
        for one in _spellings_of(url)
    ]
    return any(checks)


def _spellings_of(url: str) -> tuple[str, ...]:
    """Return an address with and without the port that it has anyway: Twilio signs either."""
    parts = urlsplit(url)
    host, usual = parts.hostname or "", {"http": 80, "https": 443}.get(parts.scheme)
    if parts.port not in (None, usual):
        return (url,)
    return tuple(parts._replace(netloc=netloc).geturl() for netloc in (host, f"{host}:{usual}"))


def read_request(
    form: TwilioForm, *, account: str = "", opt_out_words: frozenset[str] = STOP_WORDS
) -> WebhookEvent:
    """Return what a form tells: a message, or the fate of one that was sent."""
    fields = dict(form)
    try:
        if "MessageStatus" in fields:
            return _status(fields)
        if _is_opt_out(fields, opt_out_words):
            return PassedOver("somebody wants no more messages, or messages again: Twilio sees to it")
        return _inbound(fields, account)
    except InvalidInputError as error:
        return UnreadableEvent(fields, f"a request of Twilio cannot be read ({error})")


def _status(fields: Mapping[str, str]) -> WebhookEvent:
    state, message_id = _STATES.get(fields["MessageStatus"]), fields.get("MessageSid", "")
    if state is None or not message_id:
        return PassedOver(f"the status {fields['MessageStatus'][:20]!r}")
    code, problem = fields.get("ErrorCode", ""), None
    if state is DeliveryState.FAILED:
        problem = meaning_of(code)
    return DeliveryStatus(message_id=message_id, state=state, chat_id=fields.get("To", ""), problem=problem)


def meaning_of(code: str) -> str:
    """Return the words for the code of a failure."""
    return f"{_MEANINGS.get(code, 'Twilio could not deliver it')} (error {code or 'unknown'})"


def _is_opt_out(fields: Mapping[str, str], words: frozenset[str]) -> bool:
    if fields.get("OptOutType"):  # the account has rules of its own, and Twilio has applied them
        return True
    is_whatsapp = fields.get("From", "").startswith(WHATSAPP)
    return not is_whatsapp and fields.get("Body", "").strip().upper() in words


def _inbound(fields: Mapping[str, str], account: str) -> InboundMessage:
    sender, message_id = fields.get("From", ""), fields.get("MessageSid", "")
    if not sender or not message_id:
        problem = "it names no sender or no message"
        raise InvalidInputError(problem)
    answered = fields.get("OriginalRepliedMessageSid")
    reply_to = None
    if answered:
        own = fields.get("OriginalRepliedMessageSender") == fields.get("To")
        reply_to = ReplyTo(message_id=answered, own=own)
    return InboundMessage(
        source=SessionSource(
            platform=PLATFORM,
            chat_id=sender,
            user_id=sender,
            user_name=fields.get("ProfileName") or None,
            account=account,
        ),
        text=fields.get("Body", "") or fields.get("ButtonText", ""),
        message_id=message_id,
        attachments=tuple(_attachments_of(fields)),
        reply_to=reply_to,
        action=fields.get("ButtonPayload") or None,
        metadata={SENDER: fields["To"]} if fields.get("To") else {},
    )


def _attachments_of(fields: Mapping[str, str]) -> Iterator[Attachment]:
    for number in range(MOST_MEDIA):
        url, kind = fields.get(f"MediaUrl{number}"), fields.get(f"MediaContentType{number}", "")
        if url:
            found = _MEDIA.get(kind.partition("/")[0], AttachmentKind.DOCUMENT)
            yield Attachment(kind=found, url=url, media_type=kind or None)
    if fields.get("Latitude") and fields.get("Longitude"):
        url = f"geo:{fields['Latitude']},{fields['Longitude']}"
        yield Attachment(kind=AttachmentKind.LOCATION, url=url, name=fields.get("Label") or None)
