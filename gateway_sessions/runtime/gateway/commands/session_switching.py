"""Steps that several commands share: the current session, and the switch of a lane to another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from gateway_sessions.core.notices.command_replies import overtaken
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import StorageError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.gateway.commands.protocol import CommandCall
from gateway_sessions.runtime.queue.routing import MAX_TRIES
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.transactions.queue.waiting import Overtaken
from gateway_sessions.storage.transactions.sessions.find_or_create import IdTaken

T = TypeVar("T")


async def current_or_new_session(call: CommandCall) -> SessionEntry:
    """The session that the next message belongs to, begun now if it must be."""
    return await call.store.get_or_create_session(call.source)


async def switch_session(
    call: CommandCall, transaction: Callable[[Change], Transaction[SessionEntry | None]]
) -> tuple[SessionEntry | None, str]:
    """Lead the lane to another session, whatever runs or waits on it; the session, and what that ended."""
    entry, ended = await queue_of(call.store).overtaking(
        call.session_key, transaction, by=f"/{call.command.name}"
    )
    return entry, _evict_and_describe(call, ended)


async def switch_to_new_session(
    call: CommandCall, transaction: Callable[[Change, str], Transaction[SessionEntry | IdTaken | None]]
) -> tuple[SessionEntry | None, str]:
    """The same, to one that begins with it."""
    by = f"/{call.command.name}"
    for _ in range(MAX_TRIES):
        begin = partial(_give_new_id, transaction, queue_of(call.store).new_session_id())
        entry, ended = await queue_of(call.store).overtaking(call.session_key, begin, by=by)
        if not isinstance(entry, IdTaken):
            return entry, _evict_and_describe(call, ended)
    raise StorageError("ids", f"none was free in {MAX_TRIES} tries")


def _give_new_id(
    transaction: Callable[[Change, str], Transaction[T]], new_id: str, change: Change
) -> Transaction[T]:
    return transaction(change, new_id)


def _evict_and_describe(call: CommandCall, ended: Overtaken) -> str:
    call.gateway.agents.evict(call.session_key)
    return overtaken(stopped=ended.token is not None, cancelled=ended.cancelled)
