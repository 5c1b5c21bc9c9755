"""`/title` and `/model`: settings of the current session."""

from __future__ import annotations

from typing import Final

from gateway_sessions.core.notices.command_replies import NO_CONVERSATION
from gateway_sessions.core.queue.commands import model_asked, quoted, unwrapped
from gateway_sessions.core.sessions.titles import clean_title
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall
from gateway_sessions.runtime.gateway.commands.session_switching import current_or_new_session


async def _set_or_show_title(call: CommandCall) -> str:
    if not call.arguments:
        return await _show_title(call)
    title = clean_title(unwrapped(call.arguments))
    entry = await current_or_new_session(call)
    await call.store.db.set_session_title(entry.session_id, title, scope=call.own, author=call.author)
    return f"This conversation is called {quoted(title)}."


async def _show_title(call: CommandCall) -> str:
    if call.entry is None:
        return NO_CONVERSATION
    title = await call.store.db.get_session_title(call.entry.session_id)
    called = f"is called {quoted(title)}" if title else "has no title"
    return f"This conversation {called}. Its id is {call.entry.session_id}."


async def _set_or_show_model(call: CommandCall) -> str:
    if not call.arguments:
        chosen = ((call.entry.model_override if call.entry is not None else None) or {}).get("model")
        return f"The model here is {chosen or 'the default one'}."
    name = model_asked(call.arguments)
    entry = await current_or_new_session(call)
    await call.store.set_model_override(entry.session_key, {"model": name} if name is not None else None)
    if name is None:
        return "From the next turn on, this conversation has the default model."
    return f"From the next turn on, this conversation has the model {name}."


COMMANDS: Final = (
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
