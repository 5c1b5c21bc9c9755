"""Lists and pages of sessions, messages and search hits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from rich.console import Group, RenderableType
from rich.text import Text

from gateway_sessions.cli.output.terminal import NONE, Column, facts_table, rows_table, safe_line
from gateway_sessions.core.display_text import shorten_text, visible_text
from gateway_sessions.core.notices.human_units import ago, counted, size_with_unit
from gateway_sessions.core.transcript.messages import Message, Role

if TYPE_CHECKING:
    from gateway_sessions.search import SearchHit
    from gateway_sessions.sessions import SessionRecord, SessionSummary
    from gateway_sessions.storage.transactions.upkeep.status import SourceCount

TITLE: Final = 32
PREVIEW: Final = 40
LONGEST: Final = 2000
"""The characters of a message that are shown."""
STYLES: Final = {Role.USER: "yellow", Role.ASSISTANT: "green", Role.TOOL: "cyan"}
_MATCH = re.compile(r">>>(.*?)<<<", re.DOTALL)


def sessions_table(found: Sequence[SessionSummary], now: datetime) -> RenderableType:
    """Return a table of conversations: with titles if any has one, else with their sources."""
    when = [ago(one.last_active, now) for one in found]
    identity = Column("ID", whole=True)
    if any(one.title for one in found):
        columns = (Column("Title", TITLE), Column("Preview", PREVIEW), Column("Last Active"), identity)
        rows = [(one.title, one.preview, then, one.session_id) for one, then in zip(found, when, strict=True)]
        return rows_table(columns, rows)
    columns = (Column("Preview", 50), Column("Last Active"), Column("Src", 10), identity)
    return rows_table(
        columns,
        [(one.preview, then, one.source, one.session_id) for one, then in zip(found, when, strict=True)],
    )


def session_page(record: SessionRecord, said: Sequence[Message], now: datetime) -> RenderableType:
    """Return the page of a session with its last messages."""
    ended = f"{record.end_reason} ({ago(record.ended_at, now)})" if record.ended_at else None
    tokens = record.input_tokens + record.output_tokens
    known = facts_table(
        [
            ("Session", record.session_id),
            ("Title", record.title),
            ("Source", record.source),
            ("Lane", record.session_key),
            ("Owner", record.owner),
            ("Started", f"{record.started_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("Last active", ago(record.last_active, now)),
            ("Ended", ended),
            (
                "Comes from",
                f"{record.parent_session_id} ({record.relation})" if record.parent_session_id else None,
            ),
            ("Model", record.model),
            (
                "Messages",
                f"{record.message_count:,}, {record.tool_call_count:,} of them tool calls"
                if record.tool_call_count
                else f"{record.message_count:,}",
            ),
            ("Tokens", f"{tokens:,}" if tokens else None),
            ("Cost", f"${record.estimated_cost_usd:.4f}" if record.estimated_cost_usd is not None else None),
        ]
    )
    earlier = record.message_count - len([one for one in said if one.active])
    parts: list[RenderableType] = [known]
    if said:
        parts.append(Text())
        if earlier > 0:
            parts.append(Text(f"... {counted(earlier, 'earlier message')} ...", style="dim"))
        parts += [message_line(one) for one in said]
    return Group(*parts)


def message_line(one: Message) -> Text:
    """Return a message as a line with its role or tool."""
    names = list(_tools_called(one))
    text = visible_text(one.text)
    if names:
        text += f"{' ' if text else ''}[{counted(len(names), 'tool call')}: {', '.join(names)}]"
    style = STYLES.get(Role(one.role), "") if one.role in set(Role) else ""
    when = f"{one.sent_at:%Y-%m-%d %H:%M} " if one.sent_at else ""
    line = Text(when, style="dim")
    line.append(f"{safe_line(one.tool_name or one.role)}: ", style=f"bold {style}".strip())
    line.append(shorten_text(text, LONGEST), style="dim strike" if one.hidden_because else "")
    return line


def _tools_called(one: Message) -> Iterable[str]:
    for call in one.tool_calls or ():
        if isinstance(call, dict):
            named = cast("dict[str, Any]", call).get("function")
            yield safe_line(cast("dict[str, Any]", named).get("name") if isinstance(named, dict) else "?")


def hits_page(hits: Iterable[SearchHit], now: datetime) -> RenderableType:
    """Return the hits of a search, each with its place."""
    parts: list[RenderableType] = []
    for one in hits:
        where = Text(safe_line(one.title) if one.title else one.session_id, style="bold")
        where.append(f"  {one.source}, {one.role}, {ago(one.timestamp, now)}", style="dim not bold")
        if one.title:
            where.append(f"  {one.session_id}", style="dim not bold")
        parts += [where, _highlight_matches(one.snippet), Text()]
    return Group(*parts[:-1])


def stats_page(known: Mapping[str, object], platforms: Iterable[SourceCount]) -> RenderableType:
    """Return the page with the numbers of sessions, messages and lanes in a store."""
    taken = known["bytes"]
    top = facts_table(
        [
            ("Sessions", f"{known['sessions']:,}"),
            ("Messages", f"{known['messages']:,}"),
            ("Lanes", f"{known['lanes']:,}"),
            ("Database", known["database"]),
            ("Size", size_with_unit(taken) if isinstance(taken, int) else None),
        ]
    )
    rows = [(one.platform, f"{one.sessions:,}") for one in platforms]
    if not rows:
        return top
    columns = (Column("Platform"), Column("Sessions", right=True))
    return Group(top, Text(), rows_table(columns, rows))


def _highlight_matches(snippet: str) -> Text:
    line, end = Text("  "), 0
    text = " ".join(visible_text(snippet).split())
    for match in _MATCH.finditer(text):
        line.append(text[end : match.start()])
        line.append(match[1], style="bold yellow")
        end = match.end()
    line.append(text[end:] or ("" if end else NONE))
    return line
