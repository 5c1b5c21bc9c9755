"""A fake of LINE: its Messaging API, and people who write to an official account.

- ``messages``: The rules of LINE for the messages that an account sends.
- ``server``: `FakeLine`: a Messaging API on loopback, with people, LINE's rules, and faults on request.
"""

from gateway_sessions.testing.fakes.line.server import FakeLine

__all__ = ["FakeLine"]
