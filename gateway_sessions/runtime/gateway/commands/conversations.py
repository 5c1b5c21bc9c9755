"""`/new`, `/undo-reset`, `/stop`, `/resume`, `/branch`, `/title`, `/model`: commands for a lane's session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from cachetools import LRUCache

from gateway_sessions.core.notices.command_replies import NO_CONVERSATION, stop_answer
from gateway_sessions.core.notices.session_replies import (
    ShownSession,
    StoppedWork,
    already_here,
    branched,
    conversation_begins,
    invalid_model,
    model_set,
    model_shown,
    new_conversation,
    reset_undone,
    resumed,
    session_list,
    title_set,
    title_shown,
)
from gateway_sessions.core.queue.slash_commands import (
    DEFAULT_MODEL,
    MAX_MODEL,
    parse_model_name,
    strip_brackets,
)
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.record import SessionSummary
from gateway_sessions.core.sessions.titles import clean_title
from gateway_sessions.errors import NothingToUndoError, SessionNotFoundError, StorageError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall
from gateway_sessions.runtime.queue.routing import MAX_TRIES
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.transactions.queue import slash_commands as transactions
from gateway_sessions.storage.transactions.queue.waiting import Overtaken
from gateway_sessions.storage.transactions.sessions import lane_changes
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionIdTaken
from gateway_sessions.storage.transactions.sessions.session_rows import TOOL_SOURCE

MOST_LISTED: Final = 10
LISTS: Final = 1024
"""The number of lanes whose last list of sessions is remembered."""

T = TypeVar("T")


async def current_or_new_session(call: CommandCall) -> SessionEntry:
    """Return the lane's session; begin one if there is none or it has expired."""
    return await call.store.get_or_create_session(call.source)


async def switch_session(
    call: CommandCall, transaction: Callable[[Change], Transaction[SessionEntry | None]]
) -> tuple[SessionEntry | None, StoppedWork]:
    """Switch the lane to another session, whatever runs or waits; return the session and what ended."""
    entry, ended = await queue_of(call.store).overtake(
        call.session_key, transaction, by=f"/{call.command.name}"
    )
    return entry, _evict_agent(call, ended)


async def switch_to_new_session(
    call: CommandCall, transaction: Callable[[Change, str], Transaction[SessionEntry | SessionIdTaken | None]]
) -> tuple[SessionEntry | None, StoppedWork]:
    """Switch the lane in the same way to a new session, whose id is drawn here."""
    by = f"/{call.command.name}"
    for _ in range(MAX_TRIES):
        begin = partial(_give_new_id, transaction, queue_of(call.store).new_session_id())
        entry, ended = await queue_of(call.store).overtake(call.session_key, begin, by=by)
        if not isinstance(entry, SessionIdTaken):
            return entry, _evict_agent(call, ended)
    raise StorageError("ids", f"none was free in {MAX_TRIES} tries")


def _give_new_id(
    transaction: Callable[[Change, str], Transaction[T]], new_id: str, change: Change
) -> Transaction[T]:
    return transaction(change, new_id)


def _evict_agent(call: CommandCall, ended: Overtaken) -> StoppedWork:
    call.gateway.agents.evict(call.session_key)
    return StoppedWork(stopped=ended.token is not None, cancelled=ended.cancelled)


async def _begin_new_session(call: CommandCall) -> str:
    title = _title_from_arguments(call)
    begin = partial(
        transactions.begin_new_session,
        session_key=call.session_key,
        title=title,
        scope=call.own,
        author=call.author,
    )
    entry, ended = await switch_to_new_session(call, begin)
    if entry is None:
        entry = await current_or_new_session(call)
        await _set_title(call, entry, title)
        return conversation_begins(title)
    return new_conversation(title, ended)


async def _undo_last_reset(call: CommandCall) -> str:
    entry, ended = await switch_session(call, partial(lane_changes.undo_reset, session_key=call.session_key))
    if entry is None:
        raise NothingToUndoError(call.session_key, "it has no session")
    return reset_undone(await _describe_session(call, entry), ended)


async def _stop_and_clear(call: CommandCall) -> str:
    ended = await queue_of(call.store).stop_turn(call.session_key, by=f"/{call.command.name}")
    return stop_answer(running=ended.token is not None, cancelled=ended.cancelled)


async def _branch_session(call: CommandCall) -> str:
    title = _title_from_arguments(call)
    copy = partial(
        transactions.branch_session,
        session_key=call.session_key,
        title=title,
        scope=call.own,
        author=call.author,
    )
    entry, ended = await switch_to_new_session(call, copy)
    if entry is None:
        return NO_CONVERSATION
    original_id = call.entry.session_id if call.entry is not None else None
    return branched(await _describe_session(call, entry), ended, original_id)


class _ResumeCommand:
    """Goes on with an earlier session; a number means that one of the list that was shown last."""

    def __init__(self) -> None:
        self._shown: LRUCache[str, tuple[str, ...]] = LRUCache(LISTS)

    async def __call__(self, call: CommandCall) -> str:
        wanted = strip_brackets(call.arguments)
        if not wanted:
            return await self._list_sessions(call)
        target = await self._find_target(call, wanted)
        here = await current_or_new_session(call)
        if target == here.session_id:
            return already_here(await _describe_session(call, here))
        switch = partial(
            lane_changes.switch_session, session_key=call.session_key, target_id=target, scope=call.own
        )
        entry, ended = await switch_session(call, switch)
        if entry is None:  # another command has switched the lane meanwhile
            raise SessionNotFoundError(wanted)
        return resumed(await _describe_session(call, entry), ended)

    async def _list_sessions(self, call: CommandCall) -> str:
        found = await _resumable_sessions(call)
        self._shown[call.session_key] = tuple(one.session_id for one in found)
        current = call.entry.session_id if call.entry is not None else None
        return session_list(found, current, call.store.clock.now())

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


async def _describe_session(call: CommandCall, entry: SessionEntry) -> ShownSession:
    record = await call.store.db.get_session(entry.session_id)
    title, messages = (record.title, record.message_count) if record is not None else (None, 0)
    return ShownSession(session_id=entry.session_id, title=title, messages=messages)


async def _set_title(call: CommandCall, entry: SessionEntry, title: str | None) -> None:
    if title is not None:
        await call.store.db.set_session_title(entry.session_id, title, scope=call.own, author=call.author)


def _title_from_arguments(call: CommandCall) -> str | None:
    wanted = strip_brackets(call.arguments)
    return clean_title(wanted) if wanted else None


async def _set_or_show_title(call: CommandCall) -> str:
    if not call.arguments:
        return await _show_title(call)
    title = clean_title(strip_brackets(call.arguments))
    entry = await current_or_new_session(call)
    await call.store.db.set_session_title(entry.session_id, title, scope=call.own, author=call.author)
    return title_set(title)


async def _show_title(call: CommandCall) -> str:
    if call.entry is None:
        return NO_CONVERSATION
    title = await call.store.db.get_session_title(call.entry.session_id)
    return title_shown(title, call.entry.session_id)


async def _set_or_show_model(call: CommandCall) -> str:
    if not call.arguments:
        chosen = ((call.entry.model_override if call.entry is not None else None) or {}).get("model")
        return model_shown(chosen)
    name = parse_model_name(call.arguments)
    if name is None:
        return invalid_model(MAX_MODEL)
    chosen = None if name == DEFAULT_MODEL else name
    entry = await current_or_new_session(call)
    await call.store.set_model_override(entry.session_key, None if chosen is None else {"model": chosen})
    return model_set(chosen)


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
SETTINGS_COMMANDS: Final = (
    Command(
        "title",
        _set_or_show_title,
        summary="Give this conversation a title; without one, show it.",
        usage="[title]",
    ),
    Command(
        "model",
        _set_or_show_model,
        summary="Choose a model for this conversation; without a name, show it.",
        usage="[name or default]",
    ),
)
