"""/help."""

from __future__ import annotations

from typing import Final

from gateway_sessions.core.command_answers import helped, helped_with
from gateway_sessions.core.commands import quoted, unwrapped
from gateway_sessions.runtime.command import Command, CommandCall


async def _help(call: CommandCall) -> str:
    commands = call.gateway.commands
    wanted = unwrapped(call.arguments).removeprefix("/").lower()
    if not wanted:
        return helped(commands.helps)
    if wanted not in commands:
        return f"There is no command {quoted(wanted)}. /help lists them."
    return helped_with(commands[wanted].help)


COMMANDS: Final = (Command("help", _help, summary="Say what can be asked for.", usage="[command]"),)
