"""Webhooks of platforms: one engine, and for each platform a part of pure functions.

- ``adapter``: `WebhookAdapter`: the adapter for one account of a platform that calls us.
- ``api_calls``: `ApiCall`: a call of a platform's API as a value, and what may have become of it.
- ``asgi``: `WebhookApp`: an ASGI application for webhooks, to be mounted in what you have, or served by
  itself.
- ``data_urls``: The content of attachments whose address holds it: `data:image/png;base64,…`.
- ``endpoints``: `WebhookEndpoint`: a path and what answers there, for an ASGI application and for a port of
  our own.
- ``engine``: `WebhookEngine`: receives for one account: no platform hears success before its messages are
  stored.
- ``events``: `WebhookEvent`: what a platform tells by a webhook: messages, the fate of replies, and all the
  rest.
- ``http_client``: `ApiClient`: makes calls over HTTP, and tells calls that were never sent from those nobody
  knows of.
- ``limiter``: `SendingLimiter`: holds back calls while a platform wants to be left alone, in one chat or
  everywhere.
- ``platform``: `WebhookPlatform`: a platform that calls us, as functions of values, without any I/O.
- ``sender``: `ApiSender`: makes the calls of one account: in pace, with a token, each failure with one
  meaning.
- ``sent_evidence``: `SentEvidence`: tells after a send without an answer whether the platform has the
  message.
- ``server``: `WebhookServer`: a port of our own, at which one webhook or several listen.
- ``signatures``: Signatures of platforms: each is compared over the raw bytes, in a time that tells nothing.
"""

from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.adapters.webhooks.api_calls import (
    ApiCall,
    CallLimited,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    CallSuperseded,
    CallUnauthorized,
    CallUnavailable,
    CallUnknown,
    FileToSend,
    PlatformAnswer,
    outcome_of_status,
)
from gateway_sessions.adapters.webhooks.asgi import WebhookApp
from gateway_sessions.adapters.webhooks.events import (
    DeliveryState,
    DeliveryStatus,
    PassedOver,
    UnreadableEvent,
    WebhookEvent,
)
from gateway_sessions.adapters.webhooks.platform import (
    CallNeeded,
    ReceivingPlatform,
    SendingPace,
    Verdict,
    Verification,
    WebhookPlatform,
)
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer

__all__ = [
    "ApiCall",
    "CallLimited",
    "CallNeeded",
    "CallOutcome",
    "CallRefused",
    "CallSucceeded",
    "CallSuperseded",
    "CallUnauthorized",
    "CallUnavailable",
    "CallUnknown",
    "DeliveryState",
    "DeliveryStatus",
    "FileToSend",
    "PassedOver",
    "PlatformAnswer",
    "ReceivingPlatform",
    "Request",
    "Response",
    "SendingPace",
    "UnreadableEvent",
    "Verdict",
    "Verification",
    "WebhookApp",
    "WebhookEvent",
    "WebhookPlatform",
    "WebhookPort",
    "WebhookServer",
    "outcome_of_status",
]
