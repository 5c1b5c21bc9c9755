"""`/help` and `/start`, and the answer to an unknown command."""

from __future__ import annotations

from typing import Final

from gateway_sessions.core.notices.command_replies import (
    GREETING,
    help_for_command,
    help_list,
    unknown_command_answer,
)
from gateway_sessions.core.queue.slash_commands import strip_brackets
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall


async def _show_help(call: CommandCall) -> str:
    commands = call.gateway.commands
    wanted = strip_brackets(call.arguments).removeprefix("/").lower()
    if not wanted:
        return help_list(commands.help_entries)
    if wanted not in commands:
        return unknown_command_answer(wanted)
    return help_for_command(commands[wanted].help)


async def _greet(_: CommandCall) -> str:
    return GREETING


async def _say_unknown(call: CommandCall) -> str:
    return unknown_command_answer(f"/{call.name}")


COMMANDS: Final = (
    Command("help", _show_help, summary="Say what can be asked for.", usage="[command]"),
    Command("start", _greet, summary="Say hello."),
)
UNKNOWN: Final = Command("unknown", _say_unknown, summary="Say that there is no such command.")
"""The command that answers unknown names, if the configuration wants that."""
