"""A fake of Microsoft Teams: the Bot Connector, the login service, and people who write to a bot.

- ``chats``: The people and chats of a fake Teams, and the activities by which it tells a bot of them.
- ``connector``: The calls of the Bot Connector that a fake Teams knows, with the rules for their activities.
- ``server``: `FakeTeams`: a Bot Connector on loopback, with people, Teams' rules, and faults on request.
"""

from gateway_sessions.testing.fakes.teams.server import FakeTeams

__all__ = ["FakeTeams"]
