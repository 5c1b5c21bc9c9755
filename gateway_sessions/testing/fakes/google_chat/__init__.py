"""A fake of Google Chat: its REST API, its tokens, and people who write to an app.

- ``formatted_text``: What people read of a text in Google Chat: its marks, links and mentions, as Google
  describes them.
- ``server``: `FakeGoogleChat`: a REST API on loopback, with people, Google's rules, and faults on request.
"""

from gateway_sessions.testing.fakes.google_chat.server import FakeGoogleChat

__all__ = ["FakeGoogleChat"]
