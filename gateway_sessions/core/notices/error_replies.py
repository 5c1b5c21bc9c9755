"""Answers to commands that failed: for each error, the notice that tells a person why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway_sessions.core.notices.notice import Notice
from gateway_sessions.core.queue.slash_commands import shown_in_quotes, shown_part
from gateway_sessions.errors import (
    AmbiguousSessionError,
    GatewaySessionsError,
    InvalidInputError,
    InvalidTitleError,
    NothingToUndoError,
    SessionBusyError,
    SessionEndedError,
    SessionNotFoundError,
    StorageError,
    TitleTakenError,
)


def error_reply(error: GatewaySessionsError) -> Notice:
    """Return the notice that tells a person why a command failed."""
    match error:
        case AmbiguousSessionError():
            return _choose_session(error)
        case SessionNotFoundError():
            wanted = shown_in_quotes(error.session_id)
            text = f"I know no conversation of yours by {wanted}. /resume lists them."
            return Notice("unknown_session", text, wanted=shown_part(error.session_id))
        case TitleTakenError():
            title = shown_in_quotes(error.title)
            text = f"Another conversation is called {title} already; choose another title."
            return Notice("title_taken", text, title=error.title)
        case InvalidTitleError():
            text = f"The title must have 1 to {error.limit} characters, and that one has {error.length}."
            return Notice("invalid_title", text, most=error.limit, length=error.length)
        case InvalidInputError():
            return Notice("invalid_argument", _as_sentence(str(error)), error=type(error).__name__)
        case _:
            return _plain_reply(error)


def _choose_session(error: AmbiguousSessionError) -> Notice:
    lines = [f"- {one.session_id} ({one.title or 'no title'})" for one in error.candidates]
    first = f"{shown_in_quotes(error.text)} could be any of these; give the whole id:"
    return Notice(
        "ambiguous_session",
        "\n".join([first, *lines]),
        wanted=shown_part(error.text),
        sessions=[{"session_id": one.session_id, "title": one.title} for one in error.candidates],
    )


def _plain_reply(error: GatewaySessionsError) -> Notice:
    plain = next((notice for kind, notice in _PLAIN.items() if isinstance(error, kind)), None)
    if plain is not None:
        return plain
    text = f"That did not work: {_as_sentence(str(error))}"
    return Notice("command_error", text, error=type(error).__name__)


_PLAIN: Final[Mapping[type[GatewaySessionsError], Notice]] = MappingProxyType(
    {
        SessionBusyError: Notice(
            "session_busy", "I am in the middle of something there. /stop ends it; then try again."
        ),
        NothingToUndoError: Notice("nothing_to_undo", "There is nothing to undo."),
        SessionEndedError: Notice(
            "session_ended", "That conversation has ended meanwhile; nothing was changed."
        ),
        StorageError: Notice(
            "storage_unavailable", "I cannot reach my memory right now. Please try again in a moment."
        ),
    }
)


def _as_sentence(text: str) -> str:
    stripped = text.strip() or "nobody knows why"
    return f"{stripped[0].upper()}{stripped[1:]}{'' if stripped[-1] in '.!?:' else '.'}"
