"""Edits and deletions of the platform messages that one transcript row holds, planned as values.

A burst is one row, because a model gets one user's row for one turn. The row keeps the id, the sender, the
text, the attachments and the number of the latest edit of each of its messages. A row of one message that was
never edited holds all of that in its own columns and keeps no list.

This module plans an edit or a deletion for one row; the transactions carry the plan out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

import msgspec

from gateway_sessions.core.display_text import prefix_with_name
from gateway_sessions.core.transcript.messages import SEVERAL_IDS, Content, Hidden, Message, text_of

_LABEL: Final = re.compile(r"\[([^\[\]\n]*)\] ?\Z")
"""The label of the speaker that a model sees before each text of a shared room."""
_SOMEBODY: Final = prefix_with_name(None, "")
_BLANK_LINE: Final = "\n\n"
"""The blank line between the quotation of an answered message and the message itself."""


class PlatformMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the messages that a row was made of."""

    id: str | None = None
    """The message's id on the platform."""
    sender: str = ""
    """The person who wrote the message; empty: unknown to the platform."""
    text: str = ""
    attachments: list[Any] = []
    """The attachments, as parts of a content."""
    quoted: str | None = None
    """The quotation of the answered message, as a model sees it."""
    revision: int = 0
    """The number of the latest edit, if the platform counts edits."""
    deleted: bool = False
    """Whether the message was deleted on its platform; then no other field is kept."""


class Effect(StrEnum):
    """The effect of an edit or a deletion on a row."""

    NONE = "none"  # the row holds nothing of that message that could be changed
    STANDS = "stands"  # the row holds this edit, or a newer one, already
    CHANGED = "changed"  # the row gets another content
    HIDDEN = "hidden"  # the row is hidden, since nothing is left of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewording:
    """An edit or a deletion of a message on its platform."""

    message_id: str
    content: Content = None
    """The new content. The attachments of the message stay, unless the edit brings some."""
    deletes: bool = False
    """Whether the message was deleted."""
    revision: int = 0
    """The number of the edit; 0: the platform does not count edits."""


class RowChange(NamedTuple):
    """The effect on a row, and the row after it."""

    effect: Effect
    row: Message


class _Attribution(NamedTuple):
    """The words that a row adds for a model: the speaker's label and the quotation of the answer."""

    label: str | None
    quoted: str | None


def is_older(revision: int, known: int) -> bool:
    """Return whether an edit is older than the stored one; without numbers the latest to come counts."""
    return 0 < revision < known


def joined_text(texts: Iterable[tuple[str, bool]]) -> str:
    """Return texts joined to one, each given with whether it is a caption; repeated captions are dropped."""
    parts: list[str] = []
    for text, is_caption in texts:
        stripped = text.strip()
        if stripped and not (is_caption and stripped in parts):
            parts.append(stripped)
    return "\n".join(parts)


def joined_content(text: str, attachments: Sequence[Any]) -> Content:
    """Return the content of a row: text, or parts if there are attachments."""
    if not attachments:
        return text
    return [*([{"type": "text", "text": text}] if text else []), *attachments]


def messages_to_keep(messages: Sequence[PlatformMessage]) -> list[Any] | None:
    """Return what a row keeps of its messages; None if its own columns hold all of it."""
    if len(messages) < 2 and not any(one.revision or one.deleted for one in messages):  # noqa: PLR2004 -- one is alone
        return None
    return [msgspec.to_builtins(one) for one in messages]


def messages_of(row: Message) -> list[PlatformMessage] | None:
    """Return the messages that a row was made of; None if they cannot be told apart.

    The kept list counts only if it adds up to the content of the row: a program that does not know these
    columns may have written the row since.
    """
    known = _messages_kept_in(row)
    if known is not None and _add_up_to(known, row.content):
        return known
    ids: object = row.extra.get(SEVERAL_IDS)
    if not isinstance(ids, list):
        return [] if row.platform_message_id is None else [_single_message(row)]
    # Each message has at least one line: if there are as many lines as ids, each line is one message.
    lines = row.content.split("\n") if isinstance(row.content, str) else []
    if len(lines) != len(cast("list[object]", ids)):
        return None
    return [
        PlatformMessage(id=str(one), text=line)
        for one, line in zip(cast("list[object]", ids), lines, strict=True)
    ]


def plan_transcript_edit(row: Message, rewording: Rewording) -> RowChange:
    """Return the change that an edit or a deletion makes to a row."""
    messages = messages_of(row)
    if messages is None:
        return _plan_unattributed_row(row, rewording)
    at = next((at for at, one in enumerate(messages) if one.id == rewording.message_id), None)
    if at is None:
        return RowChange(Effect.NONE, row)
    message = messages[at]
    if message.deleted or row.hidden_because is Hidden.RETRACTED:
        return RowChange(Effect.STANDS if rewording.deletes else Effect.NONE, row)
    if rewording.deletes:
        gone = PlatformMessage(id=message.id, deleted=True)
        return _plan_deletion(row, messages, [gone if one is message else one for one in messages])
    if is_older(rewording.revision, message.revision):
        return RowChange(Effect.STANDS, row)
    new = _with_new_text(message, rewording)
    changed = _rebuild_row([new if one is message else one for one in messages], row, messages)
    return RowChange(Effect.STANDS if changed == row else Effect.CHANGED, changed)


def replace_text_by_hand(row: Message, message_id: str, content: Content) -> Message:
    """Return the row after a program has replaced the content and attachments of one of its messages."""
    messages = messages_of(row)
    if messages is None or len(messages) < 2:  # noqa: PLR2004 -- one is alone
        replaced = row.altered(content=content, api_content=None, platform_messages=None)
        return row if content == row.content else replaced
    text, attachments = _text_and_attachments(content)
    new = [
        msgspec.structs.replace(one, text=text, attachments=attachments, deleted=False)
        if one.id == message_id
        else one
        for one in messages
    ]
    return _rebuild_row(new, row, messages)


def has_message_id(row: Message, message_id: str) -> bool:
    """Return whether one of the messages that a row was made of has that id."""
    ids: Any = row.extra.get(SEVERAL_IDS) or ()
    known = _messages_kept_in(row) or ()
    return message_id in (row.platform_message_id, *ids, *(one.id for one in known))


def _plan_unattributed_row(row: Message, rewording: Rewording) -> RowChange:
    """Return the plan for a row whose messages cannot be told apart.

    A deletion of one hides the whole row; an edit of one changes nothing.
    """
    ids: Any = row.extra.get(SEVERAL_IDS)
    if rewording.message_id not in ids or not rewording.deletes:
        return RowChange(Effect.NONE, row)
    effect = Effect.STANDS if row.hidden_because is Hidden.RETRACTED else Effect.HIDDEN
    return RowChange(effect, row)


def _plan_deletion(
    row: Message, before: Sequence[PlatformMessage], after: Sequence[PlatformMessage]
) -> RowChange:
    if all(one.deleted for one in after):
        return RowChange(Effect.HIDDEN, row)
    return RowChange(Effect.CHANGED, _rebuild_row(after, row, before))


def _with_new_text(message: PlatformMessage, rewording: Rewording) -> PlatformMessage:
    text, attachments = _text_and_attachments(rewording.content)
    return msgspec.structs.replace(
        message,
        text=text,
        attachments=attachments or message.attachments,
        revision=max(message.revision, rewording.revision),
    )


def _rebuild_row(
    messages: Sequence[PlatformMessage], row: Message, before: Sequence[PlatformMessage]
) -> Message:
    """Return the row made anew of these messages; *before* are its messages until now."""
    content = _content_of(messages)
    left = [one for one in messages if not one.deleted]
    ids = [one.id for one in left if one.id]
    extra = {name: one for name, one in row.extra.items() if name != SEVERAL_IDS}
    if len(ids) > 1:
        extra[SEVERAL_IDS] = ids
    attribution = _attribution_of(row, before)
    return row.altered(
        content=content,
        api_content=None if attribution is None else _content_for_model(left, content, attribution),
        platform_message_id=ids[0] if ids else None,
        platform_messages=messages_to_keep(messages),
        extra=extra,
    )


def _content_of(messages: Sequence[PlatformMessage]) -> Content:
    left = [one for one in messages if not one.deleted]
    return joined_content(_text_of(left), [one for message in left for one in message.attachments])


def _add_up_to(messages: Sequence[PlatformMessage], content: Content) -> bool:
    text, attachments = _text_and_attachments(content)
    left = [one for one in messages if not one.deleted]
    return text.strip() == _text_of(left) and attachments == [
        one for message in left for one in message.attachments
    ]


def _text_of(messages: Iterable[PlatformMessage]) -> str:
    return joined_text((one.text, bool(one.attachments)) for one in messages if not one.deleted)


def _messages_kept_in(row: Message) -> list[PlatformMessage] | None:
    """Return the messages that the row keeps; None if it keeps none, or a list that cannot be read."""
    if not row.platform_messages:
        return None
    try:
        return msgspec.convert(row.platform_messages, list[PlatformMessage])
    except msgspec.ValidationError:
        return None


def _single_message(row: Message) -> PlatformMessage:
    """Return the single message that a row consists of."""
    text, attachments = _text_and_attachments(row.content)
    message = PlatformMessage(id=row.platform_message_id, text=text, attachments=attachments)
    attribution = _attribution_of(row, [message])
    return message if attribution is None else msgspec.structs.replace(message, quoted=attribution.quoted)


def _text_and_attachments(content: Content) -> tuple[str, list[Any]]:
    """Return the text of a content, and its other parts."""
    match content:
        case None:
            return "", []
        case str():
            return content, []
        case list():
            texts = [one for one in content if _is_text(one)]
            return text_of(texts), [one for one in content if one not in texts]
        case _:
            return "", [content]


def _is_text(part: object) -> bool:
    match part:
        case {"type": "text", "text": str()}:
            return len(cast("dict[str, object]", part)) == 2  # noqa: PLR2004 -- nothing but these
        case _:
            return False


# The content for a model


def _attribution_of(row: Message, messages: Sequence[PlatformMessage]) -> _Attribution | None:
    """Return the label and the quotation of the row's content for a model.

    None: the row has no such content, or a program wrote that content in words of its own.
    """
    model_text = _first_text(row.api_content)
    if model_text is None:
        return None
    text = _text_of(messages)
    room_text = _text_in_room(text)
    for tail, labelled in ((room_text, True), (text, False)):
        if not model_text.endswith(tail):
            continue
        before = model_text.removesuffix(tail) if tail else model_text
        label = _LABEL.search(before) if labelled else None
        if label is not None:
            return _Attribution(label[1], before[: label.start()].removesuffix(_BLANK_LINE) or None)
        if not labelled and (before.endswith(_BLANK_LINE) or not text):
            return _Attribution(None, before.removesuffix(_BLANK_LINE))
    return None


def _first_text(content: Content) -> str | None:
    match content:
        case str():
            return content
        case [{"type": "text", "text": str(text)}, *_]:
            return text
        case _:
            return None


def _content_for_model(
    messages: Sequence[PlatformMessage], content: Content, attribution: _Attribution
) -> Content:
    """Return the content as a model gets it; None if a model gets the content itself."""
    quoted = next((one.quoted for one in messages if one.quoted is not None), None)
    if attribution.label is None and quoted is None:
        return None
    own_text = _text_of(messages)
    text = own_text if attribution.label is None else f"[{attribution.label}] {_text_in_room(own_text)}"
    if quoted is not None:
        text = f"{quoted}{_BLANK_LINE}{text}".rstrip()
    if not isinstance(content, list):
        return text
    return [{"type": "text", "text": text}, *(content[1:] if own_text else content)]


def _text_in_room(text: str) -> str:
    """Return a text in the form that a shared room shows behind the speaker's label."""
    return prefix_with_name(None, text).removeprefix(_SOMEBODY)
