"""The built-in slash commands, grouped by what they change.

- ``command_limits``: Limits on slash commands that run at the same time, by owner and in all.
- ``compression``: `/compress`: a conversation goes on with a summary that a compressor writes.
- ``conversations``: `/new`, `/undo-reset`, `/stop`, `/branch`, `/resume`: they change a lane's session or
  stop its work.
- ``executor``: Execution of slash commands: noted in the queue, run at once, and settled together with the
  answer.
- ``help``: `/help` and `/start`, and the answer to an unknown command.
- ``protocol``: `Command` and `CommandCall`: how a slash command is declared and what its handler gets.
- ``queue``: `/queue` and `/status`: the turns that run or wait on a lane.
- ``session_settings``: `/title` and `/model`: settings of the current session.
- ``session_switching``: Steps that several commands share: the current session, and the switch of a lane
  to another one.
- ``turns``: `/undo` and `/retry`: they take back or repeat the last turns of a lane.
"""

from __future__ import annotations

from gateway_sessions.runtime.gateway.commands import conversations, queue, session_settings, turns
from gateway_sessions.runtime.gateway.commands import help as help_commands
from gateway_sessions.runtime.gateway.commands.compression import Compressor, compress_command
from gateway_sessions.runtime.gateway.commands.protocol import Command


def built_in_commands(compressor: Compressor | None = None) -> tuple[Command, ...]:
    """All of them, in the order in which /help shows them. A *compressor* is what /compress needs."""
    return (
        *conversations.COMMANDS,
        *turns.COMMANDS,
        compress_command(compressor),
        *queue.COMMANDS,
        *session_settings.COMMANDS,
        *help_commands.COMMANDS,
    )
