"""How queues look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from gateway_sessions.cli.screen import Column, table
from gateway_sessions.core.telling import ago

if TYPE_CHECKING:
    from gateway_sessions import DeadLetter, OwedReply, QueuedMessage


def waiting_table(found: Sequence[QueuedMessage], now: datetime) -> RenderableType:
    """What waits or runs, lane by lane."""
    rows = [
        (one.session_key, one.seq, _state(one), ago(one.admitted_at, now), one.message.text) for one in found
    ]
    columns = (
        Column("Lane", whole=True),
        Column("No", right=True),
        Column("State"),
        Column("Since"),
        Column("Text", 60),
    )
    return table(columns, rows)


def dead_page(letters: Sequence[DeadLetter], replies: Sequence[OwedReply], now: datetime) -> RenderableType:
    """What was given up, and why."""
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
        parts += [table(names, rows)]
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
        parts += [table(names, rows)]
    return Group(*parts)


def _state(one: QueuedMessage) -> str:
    if one.running:
        return "running"
    return f"with {one.merged_into}" if one.merged_into is not None else "waiting"
