"""The built-in slash commands, grouped by what they change.

- ``compression``: `/compress`: a conversation goes on with a summary that a compressor writes.
- ``conversations``: `/new`, `/undo-reset`, `/stop`, `/resume`, `/branch`, `/title`, `/model`: commands for
  a lane's session.
- ``executor``: Execution of slash commands: noted in the queue, run at once, and settled together with the
  answer.
- ``help``: `/help` and `/start`, and the answer to an unknown command.
- ``protocol``: `Command` and `CommandCall`: how a slash command is declared and what its handler gets.
- ``turns``: `/retry`, `/undo`, `/queue`, `/status`: commands for the turns that ran, run or wait on a
  lane.
"""

from __future__ import annotations

from gateway_sessions.runtime.gateway.commands import conversations, turns
from gateway_sessions.runtime.gateway.commands import help as help_commands
from gateway_sessions.runtime.gateway.commands.compression import Compressor, compress_command
from gateway_sessions.runtime.gateway.commands.protocol import Command


def built_in_commands(compressor: Compressor | None = None) -> tuple[Command, ...]:
    """Return the built-in commands in the order of /help. /compress needs a *compressor*."""
    return (
        *conversations.COMMANDS,
        *turns.COMMANDS,
        compress_command(compressor),
        *turns.QUEUE_COMMANDS,
        *conversations.SETTINGS_COMMANDS,
        *help_commands.COMMANDS,
    )
