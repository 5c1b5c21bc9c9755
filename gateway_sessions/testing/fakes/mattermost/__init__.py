"""A server that behaves like Mattermost, with its people, rules and faults.

- ``formatted_text``: What people read of a post: Markdown with tables, in which each line break is one, and
  mentions.
- ``server``: `FakeMattermost`: a Mattermost server on loopback, with people who write to its bot.
- ``workspace``: People, channels, posts and files of a fake Mattermost.
"""

from gateway_sessions.testing.fakes.mattermost.server import FakeMattermost

__all__ = ["FakeMattermost"]
