"""What people mean by a text: a session, a lane, or a person."""

from __future__ import annotations

from gateway_sessions.cli.context import everything
from gateway_sessions.core.session_record import SessionRecord
from gateway_sessions.errors import InvalidInputError, SessionNotFoundError
from gateway_sessions.runtime.seat import Seat


async def session_named(seat: Seat, text: str) -> SessionRecord:
    """The session that the text means, with what continues it."""
    record = await seat.db.get_session(await seat.db.resolve_session(text, scope=everything()))
    if record is None:
        raise SessionNotFoundError(text)
    return record


async def exactly(seat: Seat, text: str) -> SessionRecord:
    """The session of that id itself, also where others continue it; else the one that the text means."""
    found = await seat.db.search_sessions_by_id(text, scope=everything(), limit=1) if text else []
    if [one.session_id for one in found] != [text]:
        return await session_named(seat, text)
    record = await seat.db.get_session(text)
    if record is None:
        raise SessionNotFoundError(text)
    return record


async def lane_named(seat: Seat, text: str) -> str:
    """The lane of that key, or the one that a session is on."""
    if await seat.get_session(text) is not None or text.startswith("agent:"):
        return text
    record = await session_named(seat, text)
    if record.session_key is None:
        problem = f"session {record.session_id!r} is of no lane, so no message goes on with it"
        raise InvalidInputError(problem)
    return record.session_key


async def owner_named(seat: Seat, text: str) -> str:
    """The owner that somebody means: by name, or as the one whose lane or session it is."""
    entry = await seat.get_session(text)
    if entry is not None:
        return entry.owner
    if text.count(":") >= 2 and not text.startswith("agent:"):  # noqa: PLR2004 -- profile, platform, who
        return text
    return (await session_named(seat, text)).owner
