"""The tables of waiting messages, owed replies and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from gateway_sessions.cli.output.terminal import Column, rows_table
from gateway_sessions.core.notices.human_units import AT_START, ago, counted

if TYPE_CHECKING:
    from gateway_sessions.queue import DeadLetter, OwedReply, QueuedMessage


def waiting_page(
    found: Sequence[QueuedMessage], replies: Sequence[OwedReply], now: datetime, *, served: bool
) -> RenderableType:
    """Return the page of waiting and running messages, and of owed replies.

    *served* says that a process has the store open.
    """
    parts: list[RenderableType] = [_messages_table(found, now)] if found else []
    if replies:
        parts += [Text()] if parts else []
        parts += [_owed_table(replies, now, served=served)]
    return Group(*parts)


def _messages_table(found: Sequence[QueuedMessage], now: datetime) -> RenderableType:
    rows = [
        (one.session_key, one.seq, _message_state(one), ago(one.admitted_at, now), one.message.text)
        for one in found
    ]
    columns = (
        Column("Lane", whole=True),
        Column("No", right=True),
        Column("State"),
        Column("Since", leaves=1),
        Column("Text", 60),
    )
    return rows_table(columns, rows)


def _owed_table(replies: Sequence[OwedReply], now: datetime, *, served: bool) -> RenderableType:
    rows = [
        (
            one.session_key,
            str(one.reply_id),
            _next_try(one, now, served=served),
            ago(one.created_at, now),
            one.message.text or counted(len(one.message.attachments), "attachment"),
        )
        for one in replies
    ]
    columns = (
        Column("Reply owed to", whole=True),
        Column("ID", whole=True, leaves=2),
        Column("Next try"),
        Column("Since", leaves=1),
        Column("Text", 60),
    )
    return rows_table(columns, rows)


def _next_try(one: OwedReply, now: datetime, *, served: bool) -> str:
    if not served:
        return AT_START
    return "now" if one.due_at <= now else ago(one.due_at, now).replace("just now", "now")


def dead_page(letters: Sequence[DeadLetter], replies: Sequence[OwedReply], now: datetime) -> RenderableType:
    """Return the page of dead letters, with the reasons."""
    parts: list[RenderableType] = []
    rows: list[tuple[object, ...]]
    if letters:
        rows = [
            (
                str(one.item_id),
                one.session_key,
                ago(one.given_up_at, now),
                one.problem,
                one.message.text if one.message is not None else "(damaged)",
            )
            for one in letters
        ]
        names = (
            Column("ID", whole=True),
            Column("Lane"),
            Column("Given up"),
            Column("Why"),
            Column("Message", 40),
        )
        parts += [rows_table(names, rows)]
    if replies:
        rows = [
            (str(one.reply_id), one.session_key, ago(one.created_at, now), one.problem, one.message.text)
            for one in replies
        ]
        names = (
            Column("ID", whole=True),
            Column("Lane"),
            Column("Since"),
            Column("Why"),
            Column("Reply", 40),
        )
        parts += [Text()] if parts else []
        parts += [rows_table(names, rows)]
    return Group(*parts)


def _message_state(one: QueuedMessage) -> str:
    if one.cut_off:
        return "cut off"
    if one.running:
        return "running"
    return f"with {one.merged_into}" if one.merged_into is not None else "waiting"
