"""The adapter for Matrix that a configuration asks for, with a client of matrix-nio."""

from __future__ import annotations

from typing import Any

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.matrix.events import RoomTalk


def matrix_from_settings(settings: AdapterSettings) -> Adapter:
    """Make the adapter of one user from `homeserver`, `user`, `device` and `access_token`."""
    homeserver, user = settings.required_text("homeserver"), settings.required_text("user")
    device, token = settings.required_text("device"), settings.required_text("access_token")
    groups = settings.choice("groups", RoomTalk, RoomTalk.MENTION)
    join_invites, unreadable = settings.flag("join_invites"), settings.folder("unreadable")
    settings.check()
    # As late as this, and in this order: the door says in one sentence what to install, if nio is missing.
    from gateway_sessions.integrations.matrix_nio import MatrixAdapter  # noqa: PLC0415, I001
    from nio import AsyncClient  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]  # noqa: PLC0415

    client: Any = AsyncClient(homeserver)
    client.restore_login(user, device, token)
    settings.on_close(client.close)
    return MatrixAdapter(
        client, name=settings.name, groups=groups, join_invites=join_invites, unreadable=unreadable
    )
