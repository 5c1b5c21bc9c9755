"""The adapter for Matrix that a configuration asks for, with a client of matrix-nio."""

from __future__ import annotations

from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.matrix_nio import DeviceStore, MatrixAdapter, logged_in_client


def matrix_from_settings(settings: AdapterSettings) -> MatrixAdapter:
    """Make the adapter of one account from `homeserver`, `user` and `access_token`, and maybe more."""
    homeserver = settings.required_text("homeserver")
    user = settings.required_text("user")
    token = settings.required_text("access_token")
    device = settings.text("device")
    groups = settings.group_rules()
    join_invites = settings.flag("join_invites")
    unreadable = settings.folder("unreadable")
    keys, passphrase = settings.folder("encryption_store"), settings.text("encryption_key")
    if (keys is None) != (passphrase is None):
        settings.refuse("encryption_store", "needs encryption_key as well, and the other way round")
    if keys is not None and device is None:
        settings.refuse("device", "must be the device of the access token, if there is an encryption_store")
    if homeserver and not homeserver.startswith(("https://", "http://")):
        settings.refuse("homeserver", "must be an address, such as https://matrix.org")
    if user and not (user.startswith("@") and ":" in user):
        settings.refuse("user", "must be a whole name, such as @bot:matrix.org")
    settings.check()
    store = DeviceStore(keys, device, passphrase) if keys and device and passphrase else None
    client = logged_in_client(homeserver, user, token, device=device, store=store)
    settings.on_close(client.close)
    return MatrixAdapter(
        client,
        name=settings.name,
        groups=groups,
        join_invites=join_invites,
        unreadable=unreadable,
    )
