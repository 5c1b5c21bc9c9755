"""Putting other messages in the place of the conversation, and following what happens on platforms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.messages import STEERED, Content, Hidden, Message, MessageVersion
from gateway_sessions.core.storable import Intake
from gateway_sessions.ports import Row, Statement, Verb
from gateway_sessions.storage.verbs.index_notes import note_changes
from gateway_sessions.storage.verbs.message_codec import content_columns
from gateway_sessions.storage.verbs.messages import Appended, append, must_exist
from gateway_sessions.storage.verbs.rewinding import adjust, hide_from
from gateway_sessions.storage.verbs.stored import content_of, from_json


def replace(
    session_id: str, messages: Sequence[Message], now: datetime, ids: Iterator[int]
) -> Verb[Appended]:
    """Put *messages* in the place of the conversation; what is hidden stays, in the places before them."""
    yield from _delete(session_id, ids, hidden_too=False)
    return (yield from append(session_id, messages, now, ids))


def clear(session_id: str, ids: Iterator[int]) -> Verb[int]:
    """Delete every message, hidden ones too; how many there were."""
    return (yield from _delete(session_id, ids, hidden_too=True))


def compact(
    session_id: str, messages: Sequence[Message], now: datetime, ids: Iterator[int]
) -> Verb[tuple[int, Appended]]:
    """Let *messages*, a summary, stand for the conversation, which stays stored; how many were hidden."""
    hidden = yield from hide_from(session_id, 0, Hidden.COMPACTED, ids)
    yield from adjust(session_id, messages=-len(hidden), calls=-sum(row[1] for row in hidden))
    return len(hidden), (yield from append(session_id, messages, now, ids))


def holding(session_key: str, platform_message_id: str) -> Verb[list[str]]:
    """The sessions of a lane in which that message is: several, if one was branched off."""
    rows = yield Statement("sessions_on_lane_that_hold", (session_key, platform_message_id))
    return [row[0] for row in rows]


def edit(
    session_id: str, platform_message_id: str, content: Content, now: datetime, ids: Iterator[int]
) -> Verb[tuple[bool, bool]]:
    """Let a message say something else and keep what it said.

    Whether that changed anything, and whether characters had to be replaced.
    """
    rows = yield Statement("latest_platform_message", (session_id, platform_message_id))
    if not rows:
        yield from must_exist(session_id)
        return False, False
    message_id, was = rows[0][0], rows[0][2:4]
    intake = Intake()
    becomes = content_columns(intake, content)
    if tuple(was) == becomes:
        return False, False
    yield Statement("keep_message_version", (to_micros(now), message_id))
    yield Statement("edit_message", (*becomes, to_micros(now), message_id))
    yield from note_changes((message_id,), ids)
    size = sum(len(text.encode()) for text in rows[0][2:5] if text is not None)
    yield from adjust(session_id, size=intake.size - size)
    return True, intake.replaced


def reword(
    session_key: str, message_id: int, told: Message | None, now: datetime, ids: Iterator[int], *, keep: bool
) -> Verb[None]:
    """Let a row of messages of a platform say what these say now, or hide it, with its copies on the lane.

    If *keep*, what it said is kept; what somebody took back is not.
    """
    rows = yield Statement("row_of_messages", (message_id,))
    if not rows:
        return
    name = rows[0][2]
    if told is None:
        yield from _retract_row(rows[0], message_id, ids)
    else:
        yield from _reword_row(rows[0], message_id, told, now, ids, keep=keep)
    if name is None:
        return
    for session_id in (yield from holding(session_key, name)):
        if told is None:
            yield from retract(session_id, name, ids)
            continue
        latest = yield Statement("latest_platform_message", (session_id, name))
        copies = yield Statement("row_of_messages", latest[0][:1])
        yield from _reword_row(copies[0], latest[0][0], told, now, ids, keep=keep)


def retract(session_id: str, platform_message_id: str, ids: Iterator[int]) -> Verb[bool]:
    """Hide what was deleted on its platform; False if there is no such message, or it is hidden for that."""
    rows = yield Statement("platform_messages_to_retract", (session_id, platform_message_id))
    if not rows:
        yield from must_exist(session_id)
        return False
    change_id = next(ids)
    yield Statement("retract_message", many=[(change_id, row[0]) for row in rows])
    active = [row for row in rows if row[2]]
    yield from adjust(session_id, messages=-len(active), calls=-sum(row[1] for row in active))
    return True


def versions(session_id: str, message_id: int) -> Verb[list[MessageVersion]]:
    """What a message said before it was edited, the first version first."""
    rows = yield Statement("message_versions", (session_id, message_id))
    return [
        MessageVersion(
            number,
            text if parts is None else content_of(f"message {message_id}", parts),
            from_micros(at),
        )
        for number, text, parts, at in rows
    ]


def _retract_row(row: Row, message_id: int, ids: Iterator[int]) -> Verb[None]:
    session_id, hidden, *_ = row
    if hidden != Hidden.RETRACTED:
        yield Statement("retract_message", (next(ids), message_id))
        yield from adjust(session_id, messages=-int(hidden is None))


def _reword_row(
    row: Row, message_id: int, told: Message, now: datetime, ids: Iterator[int], *, keep: bool
) -> Verb[None]:
    session_id, _, name, extra, *content = row
    if not keep:
        yield Statement("delete_message_versions", (message_id,))
    intake = Intake()
    members = dict(told.extra)
    known = from_json(f"message {message_id}", extra or "{}", dict[str, Any])
    if known.get(STEERED):
        members[STEERED] = True
    becomes = (
        *content_columns(intake, told.content),
        intake.json("api_content", told.api_content),
        intake.text("platform_message_id", told.platform_message_id),
        intake.json("extra", members or None),
    )
    if (*content, name) == becomes[:-1] and known == members:
        return
    if keep:
        yield Statement("keep_message_version", (to_micros(now), message_id))
    yield Statement("reword_row", (*becomes, to_micros(now), message_id))
    yield from note_changes((message_id,), ids)
    was = (name, extra, *content)
    size = sum(len(text.encode()) for text in was if text is not None)
    yield from adjust(session_id, size=intake.size - size)


def _delete(session_id: str, ids: Iterator[int], *, hidden_too: bool) -> Verb[int]:
    """Delete messages and let those that are left close the ranks; how many were deleted."""
    rows = yield Statement("stored_messages", (session_id,))
    if not rows:
        yield from must_exist(session_id)
        return 0
    gone = [(row[0],) for row in rows if hidden_too or not row[2]]
    left = [row for row in rows if row[2] and not hidden_too]
    yield Statement("delete_message", many=gone)
    yield Statement("delete_message_versions", many=gone)
    yield from note_changes((one[0] for one in gone), ids)
    # In ascending order each moves to a place that is free by then.
    moved = [(at, row[0]) for at, row in enumerate(left, start=1) if row[1] != at]
    yield Statement("move_message", many=moved)
    size = yield Statement("bytes_of_messages", (session_id,))
    yield Statement("reset_totals", (len(left), size[0][0], session_id))
    return len(gone)
