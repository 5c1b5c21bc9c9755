"""Edits and deletions of the platform messages that one transcript row holds, planned as values.

A burst is one row, because a model gets one user's row for one turn. The row keeps of each of its messages
the id, the sender, the text and what came with it, and the number of its latest edit. A row of one message
that was never edited says all of that itself, and keeps nothing besides.

An edit or a deletion is planned here for one row. Carrying it out is somebody else's work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

import msgspec

from gateway_sessions.core.text import attributed
from gateway_sessions.core.transcript.messages import SEVERAL_IDS, Content, Hidden, Message, text_of

_LABEL: Final = re.compile(r"\[([^\[\]\n]*)\] ?\Z")
"""Who says what follows, as a model is told it in a shared room."""
_SOMEBODY: Final = attributed(None, "")
_BETWEEN: Final = "\n\n"
"""Stands between what a message answers to and the message."""


class PlatformMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the messages that a row was made of."""

    id: str | None = None
    """Its id on the platform."""
    sender: str = ""
    """Who said it; empty: the platform did not tell."""
    text: str = ""
    attachments: list[Any] = []
    """What came with it, as a content has it."""
    quoted: str | None = None
    """What it answers to, as a model is told it."""
    revision: int = 0
    """The number of its latest edit, where the platform counts them."""
    deleted: bool = False
    """Whether it was deleted on its platform; then nothing else is kept of it."""


class Effect(StrEnum):
    """What an edit or a deletion does to a row."""

    NONE = "none"  # the row has nothing of that message that could be changed
    STANDS = "stands"  # the row says so already, or what is newer
    CHANGED = "changed"  # the row says something else
    HIDDEN = "hidden"  # nothing is left of the row


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewording:
    """A message of a platform says something else from now on, or was deleted there."""

    message_id: str
    content: Content = None
    """What it says. What came with it stays, unless the edit brings something."""
    deletes: bool = False
    """Whether it was deleted."""
    revision: int = 0
    """The number of the edit; 0: the platform does not count them."""


class RowChange(NamedTuple):
    """What is to be done to a row, and how the row is then."""

    effect: Effect
    row: Message


class _Told(NamedTuple):
    """How a row tells a model who said it, and in answer to what."""

    label: str | None
    quoted: str | None


def is_older(revision: int, known: int) -> bool:
    """Whether an edit is older than the one that stands. Without numbers the one that comes last counts."""
    return 0 < revision < known


def joined_text(said: Iterable[tuple[str, bool]]) -> str:
    """What texts say together, each with whether it is a caption. One that only repeats another goes."""
    parts: list[str] = []
    for text, is_caption in said:
        stripped = text.strip()
        if stripped and not (is_caption and stripped in parts):
            parts.append(stripped)
    return "\n".join(parts)


def joined_content(text: str, attachments: Sequence[Any]) -> Content:
    """The content of a row: text, or parts where something came with it."""
    if not attachments:
        return text
    return [*([{"type": "text", "text": text}] if text else []), *attachments]


def kept(messages: Sequence[PlatformMessage]) -> list[Any] | None:
    """What a row keeps of its messages; None if it says all of that itself."""
    if len(messages) < 2 and not any(one.revision or one.deleted for one in messages):  # noqa: PLR2004 -- one is alone
        return None
    return [msgspec.to_builtins(one) for one in messages]


def messages_of(row: Message) -> list[PlatformMessage] | None:
    """The messages that a row was made of; None if they cannot be told apart.

    What the row keeps of them is believed only if it comes to what the row says: a program that does not know
    these columns may have written the row since.
    """
    known = _kept_in(row)
    if known is not None and _comes_to(known, row.content):
        return known
    ids: object = row.extra.get(SEVERAL_IDS)
    if not isinstance(ids, list):
        return [] if row.platform_message_id is None else [_alone(row)]
    # Whoever writes says something on at least one line: so many lines are one for each.
    lines = row.content.split("\n") if isinstance(row.content, str) else []
    if len(lines) != len(cast("list[object]", ids)):
        return None
    return [
        PlatformMessage(id=str(one), text=line)
        for one, line in zip(cast("list[object]", ids), lines, strict=True)
    ]


def plan_rewording(row: Message, rewording: Rewording) -> RowChange:
    """What an edit or a deletion does to a row."""
    messages = messages_of(row)
    if messages is None:
        return _plan_for_unknown(row, rewording)
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
    new = _with_text(message, rewording)
    changed = _made_of([new if one is message else one for one in messages], row, messages)
    return RowChange(Effect.STANDS if changed == row else Effect.CHANGED, changed)


def edited_by_hand(row: Message, message_id: str, content: Content) -> Message:
    """The row once a program has said what one of its messages says: all of that, in words of its own."""
    messages = messages_of(row)
    if messages is None or len(messages) < 2:  # noqa: PLR2004 -- one is alone
        alone = row.altered(content=content, api_content=None, platform_messages=None)
        return row if content == row.content else alone
    text, attachments = _apart(content)
    new = [
        msgspec.structs.replace(one, text=text, attachments=attachments, deleted=False)
        if one.id == message_id
        else one
        for one in messages
    ]
    return _made_of(new, row, messages)


def holds(row: Message, message_id: str) -> bool:
    """Whether one of the messages that a row was made of has that id."""
    ids: Any = row.extra.get(SEVERAL_IDS) or ()
    known = _kept_in(row) or ()
    return message_id in (row.platform_message_id, *ids, *(one.id for one in known))


def _plan_for_unknown(row: Message, rewording: Rewording) -> RowChange:
    """Messages that cannot be told apart go together; none of them can be made to say something else."""
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
    return RowChange(Effect.CHANGED, _made_of(after, row, before))


def _with_text(message: PlatformMessage, rewording: Rewording) -> PlatformMessage:
    text, attachments = _apart(rewording.content)
    return msgspec.structs.replace(
        message,
        text=text,
        attachments=attachments or message.attachments,
        revision=max(message.revision, rewording.revision),
    )


def _made_of(messages: Sequence[PlatformMessage], row: Message, before: Sequence[PlatformMessage]) -> Message:
    """The row once it is made of these messages."""
    content = _content_of(messages)
    left = [one for one in messages if not one.deleted]
    ids = [one.id for one in left if one.id]
    extra = {name: one for name, one in row.extra.items() if name != SEVERAL_IDS}
    if len(ids) > 1:
        extra[SEVERAL_IDS] = ids
    told = _told_of(row, before)
    return row.altered(
        content=content,
        api_content=None if told is None else _for_a_model(left, content, told),
        platform_message_id=ids[0] if ids else None,
        platform_messages=kept(messages),
        extra=extra,
    )


def _content_of(messages: Sequence[PlatformMessage]) -> Content:
    left = [one for one in messages if not one.deleted]
    return joined_content(_text_of(left), [one for message in left for one in message.attachments])


def _comes_to(messages: Sequence[PlatformMessage], content: Content) -> bool:
    text, attachments = _apart(content)
    left = [one for one in messages if not one.deleted]
    return text.strip() == _text_of(left) and attachments == [
        one for message in left for one in message.attachments
    ]


def _text_of(messages: Iterable[PlatformMessage]) -> str:
    return joined_text((one.text, bool(one.attachments)) for one in messages if not one.deleted)


def _kept_in(row: Message) -> list[PlatformMessage] | None:
    """What the row keeps of its messages; None if it keeps nothing, or what nobody can read."""
    if not row.platform_messages:
        return None
    try:
        return msgspec.convert(row.platform_messages, list[PlatformMessage])
    except msgspec.ValidationError:
        return None


def _alone(row: Message) -> PlatformMessage:
    """The one message that a row says all of."""
    text, attachments = _apart(row.content)
    message = PlatformMessage(id=row.platform_message_id, text=text, attachments=attachments)
    told = _told_of(row, [message])
    return message if told is None else msgspec.structs.replace(message, quoted=told.quoted)


def _apart(content: Content) -> tuple[str, list[Any]]:
    """The text of a content, and all else in it."""
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


# What a model is told


def _told_of(row: Message, messages: Sequence[PlatformMessage]) -> _Told | None:
    """How the row tells a model who said it; None if it does not, or in words of somebody else's."""
    told = _first_text(row.api_content)
    if told is None:
        return None
    said = _text_of(messages)
    shown = _shown(said)
    for tail, labelled in ((shown, True), (said, False)):
        if not told.endswith(tail):
            continue
        before = told.removesuffix(tail) if tail else told
        label = _LABEL.search(before) if labelled else None
        if label is not None:
            return _Told(label[1], before[: label.start()].removesuffix(_BETWEEN) or None)
        if not labelled and (before.endswith(_BETWEEN) or not said):
            return _Told(None, before.removesuffix(_BETWEEN))
    return None


def _first_text(told: Content) -> str | None:
    match told:
        case str():
            return told
        case [{"type": "text", "text": str(text)}, *_]:
            return text
        case _:
            return None


def _for_a_model(messages: Sequence[PlatformMessage], content: Content, told: _Told) -> Content:
    """The content as a model gets it."""
    quoted = next((one.quoted for one in messages if one.quoted is not None), None)
    if told.label is None and quoted is None:
        return None
    said = _text_of(messages)
    text = said if told.label is None else f"[{told.label}] {_shown(said)}"
    if quoted is not None:
        text = f"{quoted}{_BETWEEN}{text}".rstrip()
    if not isinstance(content, list):
        return text
    return [{"type": "text", "text": text}, *(content[1:] if said else content)]


def _shown(said: str) -> str:
    """A text as a shared room shows it behind the name of who said it."""
    return attributed(None, said).removeprefix(_SOMEBODY)
