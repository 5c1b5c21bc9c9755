"""A Slack that behaves like the real one, with its people, rules and faults, and one app.

- ``blocks``: Slack's rules for blocks and mrkdwn, and what people see of a message.
- ``delivery``: Delivery of events to an app, by HTTP or through Socket Mode, until they are taken or given
  up.
- ``methods``: The methods of Slack's Web API that a fake knows, with the rules for their parameters.
- ``people``: People of a fake Slack: they write, change, delete, press buttons and use commands.
- ``refusals``: Refusals in the words of Slack's Web API.
- ``server``: `FakeSlack`: a Slack on loopback with one workspace, its people, and one app.
- ``workspace``: People, channels, messages and files of a fake Slack.
"""

from gateway_sessions.testing.fakes.slack.delivery import SlackTiming
from gateway_sessions.testing.fakes.slack.server import FakeSlack, SlackLimits

__all__ = ["FakeSlack", "SlackLimits", "SlackTiming"]
