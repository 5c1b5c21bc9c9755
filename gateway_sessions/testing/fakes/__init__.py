"""Servers on loopback that behave like platforms, also at their worst, for any client library.

- ``discord``: A Discord on loopback: a gateway and the REST API, with people, rules and faults.
- ``faults``: Faults that a test plans: what a platform answers instead of doing what it was asked, and how
  often.
- ``google_chat``: A fake of Google Chat: its REST API, its tokens, and people who write to an app.
- ``http_server``: An HTTP server on loopback for fakes of platforms: it keeps connections open, and can cut
  them.
- ``line``: A fake of LINE: its Messaging API, and people who write to an official account.
- ``matrix``: A homeserver that behaves like those of Matrix, with its people, rules and faults.
- ``mattermost``: A server that behaves like Mattermost, with its people, rules and faults.
- ``platform_server``: What all fakes of platforms share: a thread, a port, planned faults, a log of calls,
  and what people see.
- ``slack``: A Slack that behaves like the real one, with its people, rules and faults, and one app.
- ``teams``: A fake of Microsoft Teams: the Bot Connector, the login service, and people who write to a bot.
- ``telegram``: A Bot API server that behaves like Telegram, with its people, rules and faults.
- ``token_issuer``: `FakeIssuer`: an issuer of signed tokens, with keys that a test can change, withdraw or
  misuse.
- ``twilio``: A fake of Twilio: its REST API, and people who write to a number.
- ``webhook_platform``: `FakeWebhookPlatform`: what fakes of platforms share that call a webhook and have an
  API over HTTP.
- ``websocket``: The server's side of a WebSocket, for fakes of platforms that speak through one.
- ``whatsapp``: A WhatsApp Business Platform on loopback: it calls a webhook, and has the Graph API of one
  number.
"""
