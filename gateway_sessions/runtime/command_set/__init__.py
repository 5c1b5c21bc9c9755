"""The commands that every gateway has."""

from __future__ import annotations

from gateway_sessions.runtime.command import Command
from gateway_sessions.runtime.command_set import conversations, helping, queueing, sessions, turns
from gateway_sessions.runtime.command_set.compressing import Compressor, compress_with


def built_in(compressor: Compressor | None = None) -> tuple[Command, ...]:
    """All of them, in the order in which /help shows them. A *compressor* is what /compress needs."""
    return (
        *conversations.COMMANDS,
        *turns.COMMANDS,
        compress_with(compressor),
        *queueing.COMMANDS,
        *sessions.COMMANDS,
        *helping.COMMANDS,
    )
