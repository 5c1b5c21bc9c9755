"""Names of targets: the words by which agents and programs say where an unprompted message goes.

A session's prompt names them: `origin`, the platforms with a home channel, and `platform:chat_id`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from gateway_sessions.core.identity.keys import decode_part
from gateway_sessions.core.identity.source import Platform

ORIGIN: Final = "origin"
"""The chat in which the running turn was asked for."""


class TargetName(NamedTuple):
    """The parts of a target's name."""

    platform: str
    chat_id: str | None
    """None: the home channel of the platform."""
    thread_id: str | None = None


def parse_target(name: str) -> TargetName:
    """Return the parts of `platform`, `platform:chat_id` or `platform:chat_id:thread_id`.

    A `:` inside an id is written `%3A`, except in the ids of Matrix, which all have one.
    """
    platform, _, place = name.strip().partition(":")
    platform = platform.strip().lower()
    if not place:
        return TargetName(platform, None)
    if platform == Platform.MATRIX:
        room, mark, thread = place.partition(":$")  # the id of a thread is that of its first event: `$…`
        return TargetName(platform, room, f"${thread}" if mark else None)
    chat, _, thread = place.partition(":")
    return TargetName(platform, decode_part(chat), decode_part(thread) or None)


def addressable(
    platforms: Iterable[str], homes: Iterable[str], *, in_turn: bool, ambiguous: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names that can be addressed, in the words of a prompt.

    Chats of *ambiguous* platforms cannot be named: several accounts may mean them.
    """
    connected = sorted(set(platforms))
    named = [home for home in sorted(set(homes)) if home in connected]
    without_chats = {Platform.LOCAL, *ambiguous}
    chats = [f"{platform}:<chat_id>" for platform in connected if platform not in without_chats]
    local = [str(Platform.LOCAL)] if Platform.LOCAL in connected and Platform.LOCAL not in named else []
    return (*([ORIGIN] if in_turn else []), *named, *local, *chats)
