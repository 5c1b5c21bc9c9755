"""Matrix, through a library that a bot is made with.

- ``adapter``: `HomeserverAdapter`: one account on a homeserver, whose place in the sync moves when messages
  are safe.
- ``client_api``: The port to a homeserver: what a client library has to do for the adapter, and how calls
  fail.
- ``directory``: `RoomDirectory`: the rooms of an account, and which conversations they are.
- ``encryption``: The port to encryption: what a client library does where only devices with keys can read
  what is said.
- ``events``: Reading of Matrix events: which message one brings, for whom it is, and what came with it.
- ``objects``: The objects of the client-server API, as far as they are read; the rest is passed over.
- ``receiving``: `SyncReceiver`: takes in what a sync brings, and fetches what it leaves out.
- ``rooms``: What the adapter knows of a room: its members and its name, and what was said there last.
- ``sending``: The events that show a message to people, and those that change one.
- ``writing``: `RoomWriter`: writes events and files into rooms, encrypted where people encrypt.
"""

from gateway_sessions.integrations.matrix.adapter import HomeserverAdapter
from gateway_sessions.integrations.matrix.client_api import (
    HomeserverNotReachedError,
    MatrixApi,
    MatrixApiError,
)
from gateway_sessions.integrations.matrix.rooms import RoomInvite

__all__ = [
    "HomeserverAdapter",
    "HomeserverNotReachedError",
    "MatrixApi",
    "MatrixApiError",
    "RoomInvite",
]
