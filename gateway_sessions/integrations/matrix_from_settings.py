"""The adapter for Matrix that a configuration asks for, with a client of matrix-nio."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.matrix.events import RoomTalk
from gateway_sessions.integrations.matrix_nio import MatrixAdapter, logged_in_client


def matrix_from_settings(settings: AdapterSettings) -> MatrixAdapter:
    """Make the adapter of one account from `homeserver`, `user` and `access_token`, and maybe more."""
    homeserver = settings.required_text("homeserver")
    user = settings.required_text("user")
    token = settings.required_text("access_token")
    device = settings.text("device")
    groups = settings.choice("groups", RoomTalk, RoomTalk.MENTION)
    join_invites = settings.flag("join_invites")
    unreadable = settings.folder("unreadable")
    if homeserver and not homeserver.startswith(("https://", "http://")):
        settings.refuse("homeserver", "must be an address, such as https://matrix.org")
    if user and not (user.startswith("@") and ":" in user):
        settings.refuse("user", "must be a whole name, such as @bot:matrix.org")
    settings.check()
    client = logged_in_client(homeserver, user, token, device=device)
    settings.on_close(client.close)
    return MatrixAdapter(
        client, name=settings.name, groups=groups, join_invites=join_invites, unreadable=unreadable
    )
