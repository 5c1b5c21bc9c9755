"""`SlackAdapter`: an app of Slack without Bolt, whose events come to a webhook."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters._http import Request
from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.adapters.webhooks.api_calls import ApiCall
from gateway_sessions.adapters.webhooks.server import WebhookPort
from gateway_sessions.core.delivery.adapter_capabilities import ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import AdapterUnavailableError, DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.slack.backfill import CATCH_UP, RETRY, SlackBackfill
from gateway_sessions.integrations.slack.conversations import MOST_BYTES, SlackConversations
from gateway_sessions.integrations.slack.platform import SlackPlatform, payload_of
from gateway_sessions.integrations.slack.reading import (
    Payload,
    SlackIdentity,
    SlackRules,
    ThreadSessions,
)
from gateway_sessions.integrations.slack.sending import API_URL, SlackCalls
from gateway_sessions.ports import Clock


class SlackAdapter(WebhookAdapter):
    """An adapter for one app in one workspace."""

    def __init__(  # noqa: PLR0913 -- a program names the few options that it needs
        self,
        token: str,
        signing_secret: str | Sequence[str],
        *,
        name: str = "",
        groups: Groups[Payload] = GroupTalk.MENTION,
        threads: ThreadSessions = ThreadSessions.CHANNELS,
        command: str = "",
        unfurl: bool = False,
        catch_up: timedelta = CATCH_UP,
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        api_url: str = API_URL,
        clock: Clock | None = None,
    ) -> None:
        """The token is that of the bot (xoxb-…), the signing secret stands in the app's basic information.

        Several secrets are for the time in which one takes the place of another.
        The address of the webhook goes into three places of the app: events, interactivity and commands.
        *unfurl* lets Slack show what the links of an answer lead to. What Slack does not deliver any more is
        read from the channels if it is no older than *catch_up*.
        """
        rules = SlackRules(account=name, groups=as_group_rules(groups), threads=threads, command=command)
        calls = SlackCalls(api_url, unfurl=unfurl)
        secrets = [signing_secret] if isinstance(signing_secret, str) else signing_secret
        receives = ReceiveClass.BACKFILLED if catch_up else ReceiveClass.ACKNOWLEDGED
        self._slack = SlackPlatform(token, secrets, rules=rules, calls=calls, receives=receives)
        clock = clock or SystemClock()
        super().__init__(self._slack, name=name, path=path, port=port, unreadable=unreadable, clock=clock)
        self._conversations = SlackConversations(self._slack, self._sender.call, self._download, clock)
        self._backfill = SlackBackfill(
            self._slack,
            self._conversations,
            ask=self._sender.call,
            deliver_again=self._deliver_again,
            clock=clock,
            catch_up=catch_up,
        )

    @property
    def bot(self) -> SlackIdentity:
        """The app's bot, once Slack has told who it is."""
        return self._slack.bot

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Take events within the block; `AdapterUnavailableError` if the token opens nothing."""
        async with (
            self._backfill.remembering(),
            super().connect(partial(self._backfill.submit, submit)),
            in_background(self._backfill.run),
        ):
            yield

    def remember_in(self, memory: AdapterMemory) -> None:
        """Keep in this memory how far each channel is taken, and what was sent."""
        super().remember_in(memory)
        self._backfill.memory = memory

    async def _hear(self, request: Request) -> bool:
        try:
            return await self._backfill.hear(payload_of(request), retry=request.headers.get(RETRY, ""))
        except InvalidInputError:  # what cannot be read is set aside in a moment
            return False

    async def _deliver_again(self, payload: Payload) -> bool:
        response = await self.answer(self._slack.signed(payload, self._clock.now()))
        return response.status == HTTPStatus.OK

    async def _check_account(self) -> None:
        try:
            self._slack.introduce(await self._sender.call(self._slack.check_call()))
        except (OSError, DeliveryRefusedError) as error:
            raise AdapterUnavailableError(self.platform, f"cannot be reached ({error})") from error

    async def typing(self, target: ReplyTarget) -> None:
        """Show the bot's status in a thread, where Slack can."""
        await self._conversations.typing(target)

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        """Return the id of the message that was sent with that key; None: it certainly was not sent."""
        return await self._conversations.find(target, idempotency_key)

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent; `InvalidInputError` if it is too large."""
        return await self._conversations.fetch(attachment, most=most)

    async def _download(self, call: ApiCall, most: int) -> bytes:
        return await self.download(call, most=most)
