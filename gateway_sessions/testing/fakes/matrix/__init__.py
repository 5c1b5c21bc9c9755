"""A homeserver that behaves like those of Matrix, with its people, rules and faults.

- ``custom_html``: The rules of `org.matrix.custom.html`, as the specification lists them for clients.
- ``device_keys``: Keys of devices on a fake homeserver, and the messages that devices send each other.
- ``endpoints``: Endpoints of the client-server API that a fake homeserver knows, with the rules for their
  parameters.
- ``refusals``: Refusals in the words of a Matrix homeserver.
- ``rooms``: Rooms, people and events of a fake homeserver, in the one order in which everything happened.
- ``server``: `FakeMatrix`: a homeserver on loopback, with people who write to its bot.
- ``sync``: The answer of a fake homeserver to a sync: what happened in one's rooms since a token.
"""

from gateway_sessions.testing.fakes.matrix.server import FakeMatrix

__all__ = ["FakeMatrix"]
