"""`DiscordSender`: shows messages, in channels or where a command waits for its answer."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from gateway_sessions.adapters.protocol import AdapterMemory
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import AdapterUnavailableError, DeliveryRefusedError
from gateway_sessions.integrations.discord.api import (
    DiscordApi,
    DiscordApiError,
    DiscordRequest,
    failure_of,
)
from gateway_sessions.integrations.discord.interactions import (
    ANSWERS,
    INTERACTION,
    is_alive,
    request_in_place,
)
from gateway_sessions.integrations.discord.sending import (
    nonce_of,
    request_for_private_channel,
    request_for_typing,
    request_that_edits,
    requests_that_show,
    values_to_remember,
)
from gateway_sessions.ports import Clock

PLACES: Final = "commands"
"""The name under which is remembered which message has taken the place of which command's answer."""
MOST_PLACES: Final = 200
"""So many commands are remembered: within a quarter of an hour each of them is over."""
GONE: Final = frozenset({10008, 10015, 10062, 50027})
"""The codes that say that nobody waits for the answer of a command any more."""


class DiscordSender:
    """Sends for one bot."""

    def __init__(self, api: DiscordApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._private: dict[str, str] = {}
        """The private channels, by person."""
        self.application_id: str = ""
        """The bot's application, once Discord has told it."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str, memory: AdapterMemory
    ) -> str | None:
        """Show a message and return its id: the first one, if it takes several."""
        for name, value in values_to_remember(message.buttons).items():
            await memory.put(name, value)
        channel_id = await self._channel_of(target)
        requests = requests_that_show(
            channel_id, message, idempotency_key=idempotency_key, reply_to=_answered(target)
        )
        if await self._takes_place(target, idempotency_key, memory):
            shown = await self._show_in_place(target, requests[0])
        else:
            shown = await self.call(requests[0])
        for request in requests[1:]:
            await self.call(request)
        return str(shown["id"])

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a message say something else."""
        await self.call(request_that_edits(await self._channel_of(target), message_id, message))

    async def typing(self, target: ReplyTarget) -> None:
        """Show for ten seconds that an answer is being made."""
        await self.call(request_for_typing(await self._channel_of(target)))

    async def call(self, request: DiscordRequest) -> Any:
        """Make a request, and raise what its failure means."""
        try:
            return await self._api.request(request)
        except Exception as error:
            failure = failure_of(error)
            if failure is error:
                raise
            raise failure from error

    async def _channel_of(self, target: ReplyTarget) -> str:
        if place := target.thread_id or target.chat_id:
            return place
        if target.user_id is None:
            problem = "a message needs a channel or a person"
            raise DeliveryRefusedError(Platform.DISCORD, problem)
        if target.user_id not in self._private:
            opened = await self.call(request_for_private_channel(target.user_id))
            self._private[target.user_id] = str(opened["id"])
        return self._private[target.user_id]

    # The place of a command's answer

    async def _takes_place(self, target: ReplyTarget, key: str, memory: AdapterMemory) -> bool:
        """Return whether a message stands where a command waits: the first one does, in all its attempts."""
        number = target.reply_to
        if INTERACTION not in target.metadata or number is None or not is_alive(number, self._clock.now()):
            return False
        taken = msgspec.json.decode(await memory.get(PLACES) or "{}", type=dict[str, str])
        if number not in taken:
            taken = dict([*taken.items(), (number, nonce_of(key))][-MOST_PLACES:])
            await memory.put(PLACES, msgspec.json.encode(taken).decode())
        return taken[number] == nonce_of(key)

    async def _show_in_place(self, target: ReplyTarget, request: DiscordRequest) -> Any:
        token = str(target.metadata[INTERACTION])
        in_place = request_in_place(self.application_id, token, request)
        try:
            return await self.call(in_place)
        except (DeliveryRefusedError, AdapterUnavailableError) as refused:
            cause = refused.__cause__
            if not isinstance(cause, DiscordApiError) or cause.code not in GONE:
                raise
            return await self.call(request)


def _answered(target: ReplyTarget) -> str | None:
    """Return the message that is answered; a press is answered at the message with the button."""
    return (target.metadata.get(ANSWERS) if ANSWERS in target.metadata else target.reply_to) or None
