"""Lookup of the session, lane or owner that a typed text means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.errors import InvalidInputError, SessionNotFoundError

if TYPE_CHECKING:
    from gateway_sessions.core.sessions.record import SessionRecord
    from gateway_sessions.runtime.operator.store_client import StoreClient


async def find_session(client: StoreClient, text: str) -> SessionRecord:
    """Return the session that the text means; of a compressed one, its latest continuation."""
    record = await client.db.get_session(await client.db.resolve_session(text, scope=Scope.operator()))
    if record is None:
        raise SessionNotFoundError(text)
    return record


async def find_exact_session(client: StoreClient, text: str) -> SessionRecord:
    """Return the session with exactly that id, even if it was continued; else the one that is meant."""
    found = await client.db.search_sessions_by_id(text, scope=Scope.operator(), limit=1) if text else []
    if [one.session_id for one in found] != [text]:
        return await find_session(client, text)
    record = await client.db.get_session(text)
    if record is None:
        raise SessionNotFoundError(text)
    return record


async def find_lane(client: StoreClient, text: str) -> str:
    """Return the lane with that session key, or the lane of a session."""
    if await client.get_session(text) is not None or text.startswith("agent:"):
        return text
    record = await find_session(client, text)
    if record.session_key is None:
        problem = f"session {record.session_id!r} is of no lane, so no message goes on with it"
        raise InvalidInputError(problem)
    return record.session_key


async def find_owner(client: StoreClient, text: str) -> str:
    """Return the owner of that name, or the owner of a lane or a session."""
    entry = await client.get_session(text)
    if entry is not None:
        return entry.owner
    if text.count(":") >= 2 and not text.startswith("agent:"):  # noqa: PLR2004 -- profile, platform, who
        return text
    return (await find_session(client, text)).owner
