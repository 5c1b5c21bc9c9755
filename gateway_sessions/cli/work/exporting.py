"""`sessions export`: sessions as a file that is whole or not there."""

from __future__ import annotations

import sys

from gateway_sessions.cli.commands.sessions import ExportSessions
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.output.json_lines import check_target
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.telling import counted
from gateway_sessions.errors import InvalidInputError


async def export_sessions(context: CommandContext, asked: ExportSessions) -> None:
    """Write sessions to a file, all as of one moment."""
    target, to_pipe = asked.target, asked.target == "-"
    if to_pipe and context.as_json:
        problem = "--json would mix with the sessions on the standard output; name a file"
        raise InvalidInputError(problem)
    check_target(target, force=asked.force)
    async with context.open_client() as client:
        scope = Scope.operator()
        session_id = await client.db.resolve_session(asked.session, scope=scope) if asked.session else None
        with context.progress("Exporting", beside=target) as tell:
            report = await client.db.write_export(
                sys.stdout.buffer if to_pipe else target,
                scope=scope,
                format=asked.form,
                source=asked.source,
                session_id=session_id,
                lineage=asked.lineage,  # type: ignore[arg-type]  # checked there
                progress=lambda one: tell(one.sessions, one.total_sessions),
            )
    text = f"Exported {counted(report.sessions, 'session')} with {counted(report.messages, 'message')}"
    if to_pipe:
        context.note(f"{text}.")
    else:
        context.answer_text(f"{text} to {target}.", report)
