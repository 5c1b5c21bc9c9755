"""`/compress`: a conversation goes on with a summary that a compressor writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from gateway_sessions.core.notices.command_replies import (
    COMPRESSING,
    NO_COMPRESSOR,
    NOT_COMPRESSED,
    NOTHING_TO_COMPRESS,
    compressed_answer,
)
from gateway_sessions.core.transcript.messages import Message, message_from
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import StorageError
from gateway_sessions.runtime.gateway.commands.protocol import IN_BACKGROUND, Command, CommandCall
from gateway_sessions.runtime.queue.routing import MAX_TRIES
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.runtime.user_code import check_function
from gateway_sessions.storage.transactions.queue import slash_commands as transactions
from gateway_sessions.storage.transactions.queue.slash_commands import CompressibleSession
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionIdTaken
from gateway_sessions.storage.transactions.sessions.switch_lane import Compression

Compressor: TypeAlias = Callable[[list[Chat]], Awaitable[Iterable[Message | Mapping[str, Any]]]]
"""Returns, for a conversation as a model gets it, the messages with which the conversation goes on."""


def compress_command(compressor: Compressor | None) -> Command:
    """Return the command; without a *compressor* it only says that it cannot compress."""
    if compressor is not None:
        check_function("compressor", compressor, "give an async function of a conversation")
    return Command(
        "compress",
        _say_no_compressor if compressor is None else partial(_compress_conversation, compressor),
        summary="Go on with a summary of this conversation; the original stays readable.",
        limit=IN_BACKGROUND,
        begun=None if compressor is None else COMPRESSING,
    )


async def _say_no_compressor(_: CommandCall) -> str:
    return NO_COMPRESSOR


async def _compress_conversation(compressor: Compressor, call: CommandCall) -> str:
    found = await queue_of(call.store).read(partial(transactions.load_compressible, call.session_key))
    if found is None:
        return NOTHING_TO_COMPRESS
    before = len(found.chats)
    summary = [message_from(one) for one in await compressor(found.chats)]
    if not await _replace_by_summary(call, found, summary):
        return NOT_COMPRESSED
    call.gateway.agents.evict(call.session_key)
    return compressed_answer(messages=len(summary), before=before, original_id=found.session_id)


async def _replace_by_summary(call: CommandCall, found: CompressibleSession, summary: list[Message]) -> bool:
    asked = Compression(session_key=call.session_key, session_id=found.session_id, messages=tuple(summary))
    for _ in range(MAX_TRIES):
        new_id = queue_of(call.store).new_session_id()
        compress = partial(
            transactions.compress_lane, new_session_id=new_id, asked=asked, version=found.version
        )
        entry = await queue_of(call.store).apply(compress)
        if not isinstance(entry, SessionIdTaken):
            return entry is not None
    raise StorageError("ids", f"none was free in {MAX_TRIES} tries")
