"""The calls of Slack's Web API that show a message to people, look for one, and tell who people are."""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.core.delivery.outbound_messages import Button, OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import SLACK
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.slack.reading import BUTTON, FILE, THREAD

API_URL: Final = "https://slack.com/api/"
LONGEST_TEXT: Final = 4000
"""The longest text that can take the place of another one; longer ones are also hard to read in Slack."""
LONGEST_SECTION: Final = 3000
LONGEST_LABEL: Final = 75
LONGEST_VALUE: Final = 2000
MOST_BUTTONS: Final = 25
UTF16: Final = LengthUnit.UTF16
EVENT_TYPE: Final = "gateway_sessions_message"
"""The type of the metadata by which a message is found again."""
STATUS: Final = "is typing…"
UPLOAD: Final = "upload"
"""The name of the call that uploads a file: its answer is no JSON."""
PAGE: Final = 200
"""The messages of one page: Slack recommends no more."""

SHOWN_ATTACHMENTS: Final = frozenset(
    {
        *(AttachmentKind.PHOTO, AttachmentKind.VIDEO, AttachmentKind.AUDIO),
        *(AttachmentKind.VOICE, AttachmentKind.DOCUMENT),
    }
)
_QUESTION: Final = re.compile(r"(?:press:)?(\d+\.\d+)(?:$|:)", re.ASCII)
"""The time of a question in its id: that of a message, or of the message whose button was pressed."""
_WORDS: Final = re.compile(r"\S+")


class SlackCalls:
    """Makes calls of the Web API as values, for one address of it."""

    def __init__(self, api_url: str = API_URL, *, unfurl: bool = False) -> None:
        self.api_url: str = api_url.rstrip("/") + "/"
        """The address of the Web API, with a slash at its end."""
        self._unfurl = unfurl

    def method(self, name: str, parameters: Mapping[str, Any], *, chat: str = "") -> ApiCall:
        """Return a call of a method that shows nothing; a pause for it holds up this method alone."""
        # Methods that only read ignore a body in JSON.
        fields = {key: str(value) for key, value in parameters.items()}
        url = f"{self.api_url}{name}"
        return ApiCall.of_form(url, fields, name=name, chat=chat or f"method {name}", shows=False)

    # Messages

    def show(self, target: ReplyTarget, message: OutboundMessage, idempotency_key: str) -> list[ApiCall]:
        """Return the calls that show a message: its files, and at last the text by which it is found."""
        place = _place_of(target)
        calls = [self._share(place, one) for one in message.attachments if one.url.startswith("data:")]
        shown = [one for one in message.attachments if not one.url.startswith("data:")]
        names = ", ".join(one.name or "file" for one in message.attachments)
        text = message.text.strip() or ("" if shown else names)
        if not (text or shown or message.buttons or message.extra.get(Platform.SLACK)):
            return calls
        content = {
            **place,
            "unfurl_links": self._unfurl,
            "unfurl_media": self._unfurl,
            "metadata": metadata_of(idempotency_key),
        }
        spoken = message if message.text.strip() else message.with_text(text)
        return [*calls, self._with_text("chat.postMessage", content, spoken, shown)]

    def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> ApiCall:
        """Return the call that lets a message say something else."""
        place = {"channel": _channel_of(target), "ts": message_id}
        shown = [one for one in message.attachments if not one.url.startswith("data:")]
        return self._with_text("chat.update", place, message, shown)

    def _with_text(
        self, method: str, place: dict[str, Any], message: OutboundMessage, shown: list[Attachment]
    ) -> ApiCall:
        """Return a call with a text; refuse a text that is too long for it."""
        if (length := UTF16.length(message.text)) > LONGEST_TEXT:
            problem = f"a message may have {LONGEST_TEXT} UTF-16 units, this one has {length}"
            raise DeliveryRefusedError(Platform.SLACK, problem)
        edits = method == "chat.update"
        text, mrkdwn = _text_of(message, edits=edits)
        if edits and len(text) > LONGEST_TEXT:
            problem = f"the text has {len(text)} characters with its escapes, too many for an edit"
            raise DeliveryRefusedError(Platform.SLACK, problem)
        # An edit that does not name blocks leaves those that the message has.
        bare: dict[str, Any] = {**place, "text": text, **({"blocks": [], "attachments": []} if edits else {})}
        if not mrkdwn:
            bare["mrkdwn"] = False
        laid_out = {**bare, **_layout_of(message, text, shown, mrkdwn=mrkdwn)}
        laid_out |= message.extra.get(Platform.SLACK, {})
        if laid_out == bare:
            return self._json(method, bare)
        words = "\n".join(filter(None, [text, *_in_words(message, shown)]))
        return replace(self._json(method, laid_out), plain=self._json(method, {**bare, "text": words}))

    def _json(self, method: str, parameters: Mapping[str, Any]) -> ApiCall:
        url, channel = f"{self.api_url}{method}", str(parameters["channel"])
        return ApiCall.of_json(url, parameters, name=method, chat=channel)

    # Files

    def _share(self, place: Mapping[str, Any], attachment: Attachment) -> ApiCall:
        """Return the calls that upload a file and then show it, each made of the answer to the one before."""
        name, content = attachment.name or "file", content_of_data_url(attachment.url)
        if not content:
            raise DeliveryRefusedError(Platform.SLACK, f"{name} is empty, which Slack does not take")

        def complete(number: str) -> Callable[[PlatformAnswer], ApiCall]:
            return lambda _answer: self._complete(place, number, name)

        def upload(answer: PlatformAnswer) -> ApiCall:
            url, number = str(answer.member("upload_url")), str(answer.member("file_id"))
            kind = {"content-type": "application/octet-stream"}
            return ApiCall(
                url=url,
                headers=kind,
                body=content,
                name=UPLOAD,
                chat=f"method {UPLOAD}",
                shows=False,
                then=complete(number),
            )

        parameters = {"filename": name, "length": len(content)}
        return replace(self.method("files.getUploadURLExternal", parameters), then=upload)

    def _complete(self, place: Mapping[str, Any], number: str, name: str) -> ApiCall:
        method = "files.completeUploadExternal"
        shared: dict[str, Any] = {"files": [{"id": number, "title": name}], "channel_id": place["channel"]}
        if THREAD in place:
            shared[THREAD] = place[THREAD]
        return ApiCall.of_json(f"{self.api_url}{method}", shared, name=method, chat=str(place["channel"]))

    # What else is asked

    def status(self, target: ReplyTarget) -> ApiCall | None:
        """Return the call that shows that an answer is being made; None where Slack has no place for that."""
        place = _place_of(target)
        if THREAD not in place:
            return None
        parameters = {"channel_id": place["channel"], THREAD: place[THREAD], "status": STATUS}
        return self.method("assistant.threads.setStatus", parameters)

    def said_since(self, target: ReplyTarget, cursor: str = "") -> ApiCall:
        """Return the call that reads what was said in the place of a reply, since its question."""
        place = _place_of(target)
        wanted: dict[str, Any] = {"include_all_metadata": "true"}
        if (asked := _QUESTION.match(target.reply_to or "")) is not None:
            wanted["oldest"] = asked[1]
        return self._said_in(place["channel"], place.get(THREAD, ""), wanted, cursor)

    def said_behind(self, channel: str, thread: str, oldest: str, cursor: str = "") -> ApiCall:
        """Return the call that reads what was said behind a timestamp, in a channel or in one of its threads.

        What is said in threads does not stand in the channel itself.
        """
        return self._said_in(channel, thread, {"oldest": oldest}, cursor)

    def _said_in(self, channel: str, thread: str, wanted: Mapping[str, Any], cursor: str) -> ApiCall:
        parameters = {"channel": channel, "limit": PAGE, **wanted, **({"cursor": cursor} if cursor else {})}
        if not thread:
            return self.method("conversations.history", parameters)
        return self.method("conversations.replies", {**parameters, "ts": thread})


def metadata_of(idempotency_key: str) -> dict[str, Any]:
    """Return the metadata by which a message is found again."""
    # A hash: a key may be longer than metadata, and other apps of the workspace can read it.
    digest = hashlib.sha256(idempotency_key.encode("utf-8", "surrogatepass")).hexdigest()
    return {"event_type": EVENT_TYPE, "event_payload": {"key": digest}}


def _place_of(target: ReplyTarget) -> dict[str, Any]:
    thread = target.thread_id or target.metadata.get(THREAD)
    return {"channel": _channel_of(target), **({THREAD: str(thread)} if thread else {})}


def _channel_of(target: ReplyTarget) -> str:
    return target.chat_id or target.user_id or ""


def _text_of(message: OutboundMessage, *, edits: bool) -> tuple[str, bool]:
    """Return the text, and whether it is mrkdwn; an edit is always read as mrkdwn, so it is escaped fully."""
    if message.markup is not None:
        return message.markup, True
    if edits:
        return _WORDS.sub(lambda word: SLACK.escape(word[0], False), message.text), True  # noqa: FBT003 -- within a line
    return html.escape(message.text, quote=False), False


def _layout_of(
    message: OutboundMessage, text: str, shown: list[Attachment], *, mrkdwn: bool
) -> dict[str, Any]:
    """Return the blocks of a message that shows more than text."""
    blocks = [_picture(one) if one.kind is AttachmentKind.PHOTO else _link(one) for one in shown]
    if message.buttons:
        blocks.append(_row(message.buttons))
    if not blocks:
        return {}
    if not text:
        return {"blocks": blocks}
    if len(text) > LONGEST_SECTION or not mrkdwn:
        # A section is too short for the text, or would show it as mrkdwn: the blocks stand below it.
        return {"attachments": [{"blocks": blocks, "fallback": "…"}]}
    return {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}, *blocks]}


def _in_words(message: OutboundMessage, shown: list[Attachment]) -> list[str]:
    """Return the lines that stand for blocks which Slack refuses."""
    lines = [" ".join(filter(None, (one.name, one.url))) for one in shown]
    lines += [f"- {one.label}" if one.url is None else f"- {one.label}: {one.url}" for one in message.buttons]
    return [html.escape(line, quote=False) for line in lines]


def _picture(attachment: Attachment) -> dict[str, Any]:
    address = _address_of(attachment)
    named = {"type": "image", "alt_text": attachment.name or "a picture"}
    if address.startswith(FILE):
        return {**named, "slack_file": {"id": address.removeprefix(FILE)}}
    return {**named, "image_url": address}


def _link(attachment: Attachment) -> dict[str, Any]:
    address = html.escape(_address_of(attachment), quote=False)
    if address.startswith(FILE):
        problem = f"{attachment.name or 'a file'} of Slack can be shown again only if it is a picture"
        raise DeliveryRefusedError(Platform.SLACK, problem)
    words = html.escape(attachment.name or "", quote=False)
    return {"type": "section", "text": {"type": "mrkdwn", "text": f"{words} {address}".strip()}}


def _address_of(attachment: Attachment) -> str:
    if attachment.url.startswith(("https://", "http://", FILE)):
        return attachment.url
    problem = f"{attachment.name or 'an attachment'} has no address that Slack can read: http(s) or data"
    raise DeliveryRefusedError(Platform.SLACK, problem)


def _row(buttons: tuple[Button, ...]) -> dict[str, Any]:
    if len(buttons) > MOST_BUTTONS:
        problem = f"a message may have {MOST_BUTTONS} buttons, this one has {len(buttons)}"
        raise DeliveryRefusedError(Platform.SLACK, problem)
    return {"type": "actions", "elements": [_button(number, one) for number, one in enumerate(buttons)]}


def _button(number: int, button: Button) -> dict[str, Any]:
    if len(button.action) > LONGEST_VALUE:
        problem = f"the value of a button may have {LONGEST_VALUE} characters, not {len(button.action)}"
        raise DeliveryRefusedError(Platform.SLACK, problem)
    label = {"type": "plain_text", "text": button.label[:LONGEST_LABEL]}
    shown = {"type": "button", "text": label, "action_id": f"{BUTTON}{number}"}
    return {**shown, "url": button.url} if button.url is not None else {**shown, "value": button.action}


def content_of_data_url(url: str) -> bytes:
    """Return the content of an address that holds it; refuse one that is damaged."""
    head, _, data = url.partition(",")
    try:
        return base64.b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
    except (binascii.Error, ValueError) as error:
        problem = f"the content of an attachment cannot be read ({error})"
        raise DeliveryRefusedError(Platform.SLACK, problem) from error
