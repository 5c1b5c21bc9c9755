"""`/new`, `/undo-reset`, `/stop`, `/branch`, `/resume`: they change a lane's session or stop its work."""

from __future__ import annotations

from functools import partial
from typing import Final

from cachetools import LRUCache

from gateway_sessions.core.notices.command_replies import (
    NO_CONVERSATION,
    named,
    sessions_listed,
    stopped,
)
from gateway_sessions.core.notices.human_units import counted
from gateway_sessions.core.queue.commands import quoted, unwrapped
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.record import SessionSummary
from gateway_sessions.core.sessions.titles import clean_title
from gateway_sessions.errors import NothingToUndoError, SessionNotFoundError
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall
from gateway_sessions.runtime.gateway.commands.session_switching import (
    current_or_new_session,
    switch_session,
    switch_to_new_session,
)
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.storage.transactions.queue import slash_commands as transactions
from gateway_sessions.storage.transactions.sessions import lane_changes
from gateway_sessions.storage.transactions.sessions.session_rows import TOOL_SOURCE

MOST_LISTED: Final = 10
LISTS: Final = 1024
"""Of so many lanes it is remembered what they were last shown."""


async def _begin_new_session(call: CommandCall) -> str:
    title = _title_from_arguments(call)
    begin = partial(
        transactions.start_over, session_key=call.session_key, title=title, scope=call.own, author=call.author
    )
    entry, ended = await switch_to_new_session(call, begin)
    if entry is None:
        entry = await current_or_new_session(call)
        await _set_title(call, entry, title)
        return f"A new conversation begins{_title_clause(title)}."
    return f"This is a new conversation{_title_clause(title)}.{ended} /undo-reset brings the one before back."


async def _undo_last_reset(call: CommandCall) -> str:
    entry, ended = await switch_session(call, partial(lane_changes.undo_reset, session_key=call.session_key))
    if entry is None:
        raise NothingToUndoError(call.session_key, "it has no session")
    return f"The conversation from before is back: {await _describe_session(call, entry)}.{ended}"


async def _stop_and_clear(call: CommandCall) -> str:
    ended = await queue_of(call.store).stop(call.session_key, by=f"/{call.command.name}")
    return stopped(running=ended.token is not None, cancelled=ended.cancelled)


async def _branch_session(call: CommandCall) -> str:
    title = _title_from_arguments(call)
    copy = partial(
        transactions.branch, session_key=call.session_key, title=title, scope=call.own, author=call.author
    )
    entry, ended = await switch_to_new_session(call, copy)
    if entry is None:
        return NO_CONVERSATION
    before = call.entry.session_id if call.entry is not None else ""
    back = f" /resume {before} goes back to the original." if before else ""
    return f"From here on this is a copy: {await _describe_session(call, entry)}.{ended}{back}"


class _ResumeCommand:
    """Goes on with an earlier conversation; a number means the one of the list that was shown last."""

    def __init__(self) -> None:
        self._shown: LRUCache[str, tuple[str, ...]] = LRUCache(LISTS)

    async def __call__(self, call: CommandCall) -> str:
        wanted = unwrapped(call.arguments)
        if not wanted:
            return await self._list_sessions(call)
        target = await self._find_target(call, wanted)
        here = await current_or_new_session(call)
        if target == here.session_id:
            return f"You are in it already: {await _describe_session(call, here)}."
        switch = partial(lane_changes.switch, session_key=call.session_key, target_id=target, scope=call.own)
        entry, ended = await switch_session(call, switch)
        if entry is None:  # somebody else has led the lane away just now
            raise SessionNotFoundError(wanted)
        return f"Back in {await _describe_session(call, entry)}.{ended}"

    async def _list_sessions(self, call: CommandCall) -> str:
        found = await _resumable_sessions(call)
        self._shown[call.session_key] = tuple(one.session_id for one in found)
        current = call.entry.session_id if call.entry is not None else None
        return sessions_listed(found, current, call.store.clock.now())

    async def _find_target(self, call: CommandCall, wanted: str) -> str:
        if wanted.isascii() and wanted.isdigit() and 1 <= (number := int(wanted[:9])) <= MOST_LISTED:
            shown = self._shown.get(call.session_key)
            if shown is None:
                shown = tuple(one.session_id for one in await _resumable_sessions(call))
            if number <= len(shown):
                return shown[number - 1]
        return await call.store.db.resolve_session(wanted, scope=call.own)


async def _resumable_sessions(call: CommandCall) -> list[SessionSummary]:
    return await call.store.db.list_sessions_rich(
        scope=call.shown, exclude_sources=(TOOL_SOURCE,), min_message_count=1, limit=MOST_LISTED
    )


async def _describe_session(call: CommandCall, entry: SessionEntry) -> str:
    record = await call.store.db.get_session(entry.session_id)
    title, messages = (record.title, record.message_count) if record is not None else (None, 0)
    return f"{named(title, entry.session_id)}, {counted(messages, 'message')}"


async def _set_title(call: CommandCall, entry: SessionEntry, title: str | None) -> None:
    if title is not None:
        await call.store.db.set_session_title(entry.session_id, title, scope=call.own, author=call.author)


def _title_from_arguments(call: CommandCall) -> str | None:
    wanted = unwrapped(call.arguments)
    return clean_title(wanted) if wanted else None


def _title_clause(title: str | None) -> str:
    return f", {quoted(title)}" if title is not None else ""


COMMANDS: Final = (
    Command(
        "new",
        _begin_new_session,
        summary="Begin a new conversation. What runs or waits here is stopped.",
        usage="[title]",
        aliases=("reset",),
    ),
    Command(
        "undo-reset",
        _undo_last_reset,
        summary="Bring back the conversation that the last reset took away.",
        aliases=("undo_reset",),
    ),
    Command("stop", _stop_and_clear, summary="Stop what runs here, and drop what waits.", urgent=True),
    Command(
        "resume",
        _ResumeCommand(),
        summary="Go on with an earlier conversation; without an argument, list them.",
        usage="[number, id or title]",
    ),
    Command(
        "branch",
        _branch_session,
        summary="Go on in a copy of this conversation; the original stays as it is.",
        usage="[title]",
        aliases=("fork",),
    ),
)
