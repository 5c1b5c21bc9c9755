"""`SlackPlatform`: Slack's Events API and Web API as functions of values, with Bolt and without it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.adapters.group_talk import GroupRules
from gateway_sessions.adapters.webhooks.api_calls import (
    ApiCall,
    CallLimited,
    CallOutcome,
    CallRefused,
    CallSucceeded,
    CallUnavailable,
    CallUnknown,
    PlatformAnswer,
    outcome_of_status,
)
from gateway_sessions.adapters.webhooks.events import PassedOver, WebhookEvent
from gateway_sessions.adapters.webhooks.platform import Verdict, WebhookPlatform
from gateway_sessions.adapters.webhooks.signatures import (
    SIGNED_AT_ANOTHER_TIME,
    check_secret,
    hmac_hex,
    is_any_secret,
    is_recent,
)
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import SLACK
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.integrations.slack.objects import SlackAnswer
from gateway_sessions.integrations.slack.reading import (
    Payload,
    SlackIdentity,
    SlackRules,
    UnreadableSlackError,
    read_payload,
)
from gateway_sessions.integrations.slack.refusals import outcome_of_error
from gateway_sessions.integrations.slack.sending import LONGEST_TEXT, SHOWN_ATTACHMENTS, UPLOAD, SlackCalls

MOST_BYTES: Final = 512 << 10
"""The largest event: a text of 40,000 characters comes up to four times in the event of a change."""
EDIT_INTERVAL: Final = timedelta(seconds=1.2)
"""An app may change messages fifty times a minute."""
CAPABILITIES: Final = AdapterCapabilities(
    receives=ReceiveClass.ACKNOWLEDGED,
    edit=True,
    typing=True,
    finds=True,
    dialect=SLACK,
    max_length=LONGEST_TEXT,
    length_unit=LengthUnit.UTF16,
    min_edit_interval=EDIT_INTERVAL,
    attachments=SHOWN_ATTACHMENTS,
    buttons=True,
)

_FORM: Final = "application/x-www-form-urlencoded"


class SlackPlatform(WebhookPlatform):
    """One app in one workspace of Slack."""

    name: ClassVar[str] = Platform.SLACK
    max_body: ClassVar[int] = MOST_BYTES
    signed_with: ClassVar[str] = "the signing secret"
    answer_seconds: ClassVar[float] = 2.5
    """Slack waits for three seconds, the way of the answer included."""

    def __init__(
        self,
        token: str,
        signing_secrets: Sequence[str] = (),
        *,
        rules: SlackRules | None = None,
        calls: SlackCalls | None = None,
        receives: ReceiveClass = ReceiveClass.ACKNOWLEDGED,
    ) -> None:
        """Requests are signed with one of the secrets; without any, all are taken for forged."""
        self._capabilities = replace(CAPABILITIES, receives=receives)
        self._token = check_secret(token, "the token of the bot")
        self._secrets = [check_secret(one, "the signing secret") for one in signing_secrets]
        self._rules = rules or SlackRules()
        self.calls: SlackCalls = calls or SlackCalls()
        self.bot: SlackIdentity = SlackIdentity("")
        """The app's bot, once Slack has told who it is."""

    @property
    def groups(self) -> GroupRules[Payload]:
        """Which messages of channels are for the bot."""
        return self._rules.groups

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The abilities of Slack."""
        return self._capabilities

    # In

    def verify(self, request: Request, now: datetime) -> Verdict:
        """Return whether Slack has signed a request just now."""
        timestamp = request.headers.get("x-slack-request-timestamp", "")
        given = request.headers.get("x-slack-signature", "")
        if not is_recent(timestamp, now):
            return Verdict.FORGED
        signed = b"v0:" + timestamp.encode() + b":" + request.body
        expected = [f"v0={hmac_hex(secret, signed)}" for secret in self._secrets]
        return Verdict.GENUINE if is_any_secret(expected, given) else Verdict.FORGED

    def why_forged(self, request: Request, now: datetime) -> str:
        """Return whether the time or the signature of a request is wrong."""
        timestamp = request.headers.get("x-slack-request-timestamp", "")
        if timestamp and not is_recent(timestamp, now):
            return SIGNED_AT_ANOTHER_TIME
        return super().why_forged(request, now)

    def answer_challenge(self, request: Request) -> Response | None:
        """Return the word that proves that we are there, if Slack asks for it."""
        payload = payload_of(request)
        if payload.get("type") != "url_verification" or not isinstance(payload.get("challenge"), str):
            return None
        word = str(payload["challenge"]).encode("utf-8", "replace")
        return Response(HTTPStatus.OK, word, {"content-type": "text/plain; charset=utf-8"})

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return the message that a request brings."""
        payload = payload_of(request)
        message = self.read(payload)
        if message is not None:
            return [message]
        event = payload.get("event")
        kind = event.get("type") if isinstance(event, dict) else payload.get("type")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return [PassedOver(str(kind)[:100])]  # pyright: ignore[reportUnknownArgumentType]

    def read(self, payload: Payload) -> InboundMessage | None:
        """Return the message that an event, a pressed button or a command brings; None if it is nobody's."""
        return read_payload(payload, self._rules, self.bot)

    def signed(self, payload: Payload, now: datetime) -> Request:
        """Return the request by which Slack would deliver an event."""
        body, timestamp = json.dumps(payload).encode(), str(int(now.timestamp()))
        signature = f"v0={hmac_hex(self._secrets[0], b'v0:' + timestamp.encode() + b':' + body)}"
        headers = {"x-slack-request-timestamp": timestamp, "x-slack-signature": signature}
        return Request("POST", "/", {"content-type": "application/json", **headers}, body)

    # Out

    def authorize(self, call: ApiCall, now: datetime) -> ApiCall:
        """Return a call with the token; an address outside of Slack never gets it."""
        if not self._is_of_slack(call.url):
            return call
        return replace(call, headers={**call.headers, "authorization": f"Bearer {self._token}"})

    def _is_of_slack(self, url: str) -> bool:
        if url.startswith(self.calls.api_url):
            return True
        asked, api = urlsplit(url), urlsplit(self.calls.api_url)
        if (asked.scheme, asked.netloc) == (api.scheme, api.netloc):
            return True
        host = asked.hostname or ""
        return asked.scheme == "https" and (host == "slack.com" or host.endswith(".slack.com"))

    def check_call(self) -> ApiCall:
        """Return the call by which Slack tells who the bot is."""
        return self.calls.method("auth.test", {})

    def introduce(self, answer: PlatformAnswer) -> SlackIdentity:
        """Keep who the bot is."""
        told = {name: str(answer.member(name) or "") for name in ("user_id", "bot_id", "team_id")}
        self.bot = SlackIdentity(**told, name=str(answer.member("user") or ""))
        return self.bot

    def render(
        self, message: OutboundMessage, target: ReplyTarget, *, idempotency_key: str
    ) -> Sequence[ApiCall]:
        """Return the calls that show a message."""
        return self.calls.show(target, message, idempotency_key)

    def render_edit(self, message: OutboundMessage, target: ReplyTarget, message_id: str) -> ApiCall:
        """Return the call that lets a message say something else."""
        return self.calls.edit(target, message_id, message)

    def render_typing(self, target: ReplyTarget) -> ApiCall | None:
        """Return the call that shows the status of the bot in a thread; elsewhere Slack shows none."""
        return self.calls.status(target)

    def outcome(self, call: ApiCall, answer: PlatformAnswer, now: datetime) -> CallOutcome:
        """Return what became of a call: Slack answers with 200 also when it refuses."""
        by_status = outcome_of_status(answer, now)
        if call.name == UPLOAD or isinstance(by_status, CallLimited):
            return by_status
        try:
            told = msgspec.json.decode(answer.body, type=SlackAnswer)
        except (msgspec.DecodeError, RecursionError):  # a machine in front of Slack has answered
            return CallUnknown(answer.problem) if isinstance(by_status, CallSucceeded) else by_status
        if told.ok:
            return CallSucceeded(told.ts)
        if told.error == "ratelimited":
            return CallLimited(answer.retry_after(now))
        outcome = outcome_of_error(told)
        if isinstance(outcome, CallUnavailable) and told.error == "missing_scope" and not call.shows:
            return CallRefused(outcome.problem)  # a message waits for the scope; a question need not
        return outcome


def payload_of(request: Request) -> dict[str, Any]:
    """Return what a request carries: JSON, or a form with JSON in it, or the form of a command."""
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            return msgspec.convert(json.loads(request.body), dict[str, Any])
        form = dict(parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=100))
        payload = form.get("payload")
        return form if payload is None else msgspec.convert(json.loads(payload), dict[str, Any])
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        problem = f"a request of Slack cannot be read ({type(error).__name__}: {error})"
        raise UnreadableSlackError(problem) from error
