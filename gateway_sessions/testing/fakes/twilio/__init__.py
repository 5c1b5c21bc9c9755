"""A fake of Twilio: its REST API, and people who write to a number.

- ``server``: `FakeTwilio`: a REST API on loopback, with people, Twilio's rules, and faults on request.
"""

from gateway_sessions.testing.fakes.twilio.server import FakeTwilio

__all__ = ["FakeTwilio"]
