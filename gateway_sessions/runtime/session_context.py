"""The builder of the `SessionContext` that an agent is given for its session."""

from __future__ import annotations

from collections.abc import Collection

from gateway_sessions.config import Config
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript import system_prompt as prompts
from gateway_sessions.core.transcript.system_prompt import SessionContext


def build_session_context(
    source: SessionSource,
    config: Config,
    session_entry: SessionEntry | None = None,
    *,
    connected: Collection[str] | None = None,
) -> SessionContext:
    """Where a message came from, which platforms are connected, and where else the agent can deliver.

    Without *connected*, those count that are enabled in the configuration.
    """
    enabled = {name: platform for name, platform in config.platforms.items() if platform.enabled}
    homes = {name: one.home_channel for name, one in enabled.items() if one.home_channel is not None}
    return prompts.build_session_context(
        source,
        connected_platforms=enabled if connected is None else connected,
        home_channels=homes,
        group_sessions_per_user=config.group_sessions_per_user,
        thread_sessions_per_user=config.thread_sessions_per_user,
        entry=session_entry,
    )
