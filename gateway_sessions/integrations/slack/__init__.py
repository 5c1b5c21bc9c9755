"""Slack, through Bolt or by a webhook of ours: what both share, and the adapter without Bolt.

- ``adapter``: `SlackAdapter`: an app of Slack without Bolt, whose events come to a webhook.
- ``backfill``: `SlackBackfill`: reads from channels what Slack does not deliver any more, and hands it over
  in its order.
- ``conversations``: What an app of Slack asks and does: who people are, what was sent, files, and the status
  of the bot.
- ``objects``: The objects of Slack's events, as far as they are read; what else Slack sends is passed over.
- ``platform``: `SlackPlatform`: Slack's Events API and Web API as functions of values, with Bolt and
  without it.
- ``reading``: Reading of what Slack tells: which message an event, a pressed button or a command brings, and
  for whom.
- ``refusals``: What each error of Slack's Web API means for a message, and what to do about it.
- ``sending``: The calls of Slack's Web API that show a message to people, look for one, and tell who people
  are.
"""

from gateway_sessions.integrations.slack.reading import ThreadSessions

__all__ = ["ThreadSessions"]
