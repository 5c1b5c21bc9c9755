"""Mattermost, by its REST API: no library of it is needed.

- ``adapter``: `MattermostAdapter`: one bot on a server, which fetches posts and moves on when they are safe.
- ``channel_reader``: `ChannelReader`: finds the channels with news, and hands over what is new in each, in
  its order.
- ``from_settings``: The adapter for Mattermost that a configuration asks for.
- ``objects``: The objects of Mattermost's API, as far as they are read; the rest is passed over.
- ``posts``: Reading of Mattermost's posts: which message one brings, for whom it is, and what came with it.
- ``sending``: The posts that show a message to people, and the markup of Mattermost.
- ``server_api``: `MattermostApi`: the calls of a server's REST API with a bot's token, and what their
  failures mean.
"""

from gateway_sessions.integrations.mattermost.adapter import MattermostAdapter

__all__ = ["MattermostAdapter"]
