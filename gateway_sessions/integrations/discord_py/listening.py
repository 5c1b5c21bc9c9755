"""`ClientListener`: hears what happens on a client of discord.py, beside whoever else listens there."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import discord
import msgspec
from anyio.abc import TaskGroup
from discord.ext import commands

from gateway_sessions.adapters.group_talk import GroupRules
from gateway_sessions.adapters.protocol import Adapter, AdapterMemory, Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.discord.interactions import (
    InteractionAnswer,
    InteractionType,
    read_interaction,
    request_that_answers,
)
from gateway_sessions.integrations.discord.objects import (
    DiscordInteraction,
    DiscordMessage,
    DiscordPlace,
    DiscordUser,
)
from gateway_sessions.integrations.discord.reading import DiscordRules, read_deletion, read_message
from gateway_sessions.integrations.discord.receiving import (
    DiscordReceiver,
    HistoryClosedError,
    ReceivedMessage,
)
from gateway_sessions.integrations.discord.sender import DiscordSender
from gateway_sessions.integrations.discord.sending import OWN_DIGEST, OWN_VALUE
from gateway_sessions.integrations.discord_py.conversion import interaction_of, message_of, place_of, user_of
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 2.0
"""The time after which a press is acknowledged although it is still being stored: Discord waits for three."""

HandleMessage: TypeAlias = Callable[[discord.Message], Awaitable[bool]]
"""This function is offered each message first, and returns whether it took it."""
EventListener: TypeAlias = Callable[..., Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningOptions:
    """The settings that say what an adapter hears, and for whom."""

    groups: GroupRules[DiscordMessage]
    bots: bool
    handle: HandleMessage | None
    catch_up: timedelta
    unreadable: str | Path | None
    commands: set[str] = field(default_factory=set[str])
    """The names of commands in Discord's menu that are for the gateway."""


class ClientListener:
    """Listens to a client for an adapter, and hands over what is for its gateway."""

    def __init__(
        self,
        adapter: Adapter,
        client: discord.Client,
        options: ListeningOptions,
        *,
        submit: Submit,
        sender: DiscordSender,
        memory: AdapterMemory,
        clock: Clock,
        tasks: TaskGroup,
        connected: anyio.Event,
    ) -> None:
        """*connected* is set once a session of Discord's gateway has begun."""
        self._connected = connected
        self._adapter = adapter
        self._client = client
        self._options = options
        self._submit_to_gateway = submit
        self._sender = sender
        self._memory = memory
        self._tasks = tasks
        self.receiver: DiscordReceiver = DiscordReceiver(
            self, memory, clock, tasks, catch_up=options.catch_up
        )

    @contextmanager
    def installed(self) -> Generator[None]:
        """Listen within the block."""
        listeners: dict[str, EventListener] = {
            "on_connect": self._on_connect,
            "on_ready": self._on_ready,
            "on_guild_available": self._on_guild_available,
            "on_message": self._on_message,
            "on_raw_message_edit": self._on_edit,
            "on_raw_message_delete": self._on_deletion,
            "on_raw_bulk_message_delete": self._on_deletions,
            "on_interaction": self._on_interaction,
        }
        if isinstance(self._client, commands.Bot | commands.AutoShardedBot):
            with _added(self._client, listeners):
                yield
        else:
            with _put_before(self._client, listeners):
                yield

    def rules(self) -> DiscordRules:
        """Return the rules by which messages are read; the client knows its bot by now."""
        user = self._client.user
        assert user is not None  # noqa: S101 -- no event comes before the first session
        roles = (guild.self_role for guild in self._client.guilds)
        return DiscordRules(
            bot_id=str(user.id),
            bot_name=user.display_name,
            username=user.name,
            account=self._adapter.name,
            groups=self._options.groups,
            bots=self._options.bots,
            own_roles=frozenset(str(role.id) for role in roles if role is not None),
        )

    @property
    def _account(self) -> dict[str, str]:
        return {"platform": self._adapter.platform, "account": self._adapter.name}

    # Sessions

    async def _on_connect(self) -> None:
        """Begin a session: what came between the last one and this one is in the history only."""
        self.begin_session()

    def begin_session(self) -> None:
        """Read what was missed; the client has a session."""
        self._sender.application_id = str(self._client.application_id or "")
        self.receiver.catch_up()
        self._connected.set()

    async def _on_ready(self) -> None:
        """Read what was missed in channels of guilds in which nobody has spoken to the bot before."""
        self._check_intents()
        for guild in self._client.guilds:
            self._catch_up_in(guild)

    async def _on_guild_available(self, guild: discord.Guild) -> None:
        """Read what was missed in a guild that Discord told of late, also after the client was ready."""
        self._catch_up_in(guild)

    def _catch_up_in(self, guild: discord.Guild) -> None:
        channels: list[Any] = [*guild.text_channels, *guild.voice_channels, *guild.threads]
        self.receiver.catch_up_with(
            (place_of(channel, guild.id), int(channel.last_message_id))
            for channel in channels
            if channel.last_message_id is not None and _is_readable(channel, guild)
        )

    def _check_intents(self) -> None:
        if self._options.groups.hear_all and not self._client.intents.message_content:
            logger.warning(
                "the bot reads only messages that mention it: switch Message Content Intent on at "
                "https://discord.com/developers, and set intents.message_content = True",
                extra={"action": "intent_missing", **self._account},
            )

    # Messages

    async def _on_message(self, message: discord.Message) -> None:
        place = place_of(message.channel, message.guild.id if message.guild is not None else None)
        self.receiver.take(place, ReceivedMessage(message_of(message), message))

    async def _on_edit(self, edit: discord.RawMessageUpdateEvent) -> None:
        message = message_of(edit.message)

        async def take(place: DiscordPlace) -> None:
            try:
                await self._hand_over(read_message(message, place, self.rules(), edited=True))
            except InvalidInputError as error:
                await self.set_aside(message, error)

        self.receiver.take_in_order(place_of(edit.message.channel, edit.guild_id), take)

    async def _on_deletion(self, deletion: discord.RawMessageDeleteEvent) -> None:
        cached = deletion.cached_message
        author = user_of(cached.author) if cached is not None else None
        self._take_deletion(deletion.message_id, deletion.channel_id, deletion.guild_id, author)

    async def _on_deletions(self, deletions: discord.RawBulkMessageDeleteEvent) -> None:
        authors = {one.id: user_of(one.author) for one in deletions.cached_messages}
        for number in sorted(deletions.message_ids):
            self._take_deletion(number, deletions.channel_id, deletions.guild_id, authors.get(number))

    def _take_deletion(
        self, message_id: int, channel_id: int, guild_id: int | None, author: DiscordUser | None
    ) -> None:
        if self._client.user is not None and author is not None and author.id == str(self._client.user.id):
            return

        async def take(place: DiscordPlace) -> None:
            await self._hand_over(read_deletion(str(message_id), place, self.rules(), author))

        channel: Any = self._client.get_channel(channel_id)
        if channel is None:
            channel = self._client.get_partial_messageable(channel_id, guild_id=guild_id)
        self.receiver.take_in_order(place_of(channel, guild_id), take)

    async def submit(self, place: DiscordPlace, received: ReceivedMessage) -> bool:
        """Hand over what a message brings; return False if it is for somebody else."""
        message = read_message(received.message, place, self.rules())
        if message is None:
            return False
        if isinstance(received.native, discord.Message) and await self._is_handled(received.native):
            return True
        await self._hand_over(message)
        return True

    async def _hand_over(self, message: InboundMessage | None) -> None:
        if message is not None:
            await self._submit_to_gateway(message)

    async def _is_handled(self, message: discord.Message) -> bool:
        """Return whether a command or a handler of the program's own takes a message, well or badly."""
        try:
            if isinstance(self._client, commands.Bot | commands.AutoShardedBot):
                context: Any = await self._client.get_context(message)
                if context.valid:
                    return True
            return self._options.handle is not None and await self._options.handle(message)
        except Exception:  # a broken handler must not stop everybody
            logger.exception(
                "a handler of a message failed", extra={"action": "handler_failed", **self._account}
            )
            return True

    async def set_aside(self, what: object, error: InvalidInputError) -> None:
        """Keep what nobody can read."""
        if self._options.unreadable is not None:
            update = msgspec.to_builtins(what)
            await put_aside(self._options.unreadable, update, error, adapter=self._adapter)
            return
        facts = {"action": "update_unreadable", **self._account}
        logger.error("a message could not be read and is passed over", exc_info=error, extra=facts)

    # Channels

    async def history(self, place: DiscordPlace, after: int, limit: int) -> Sequence[ReceivedMessage]:
        """Return the messages of a channel behind an id, the oldest first."""
        number = int(place.channel_id)
        channel: Any = self._client.get_channel(number)
        if not isinstance(channel, discord.abc.Messageable):
            guild = int(place.guild_id) if place.guild_id is not None else None
            channel = self._client.get_partial_messageable(number, guild_id=guild)
        try:
            found = channel.history(limit=limit, after=discord.Object(after), oldest_first=True)
            return [ReceivedMessage(message_of(one), one) async for one in found]
        except (discord.Forbidden, discord.NotFound) as error:
            raise HistoryClosedError(place.channel_id) from error

    async def look_up(self, place: DiscordPlace) -> DiscordPlace:
        """Return a channel of which only the id is known, with all that there is to know."""
        with suppress(discord.Forbidden, discord.NotFound):
            channel = await self._client.fetch_channel(int(place.channel_id))
            return place_of(channel, int(place.guild_id) if place.guild_id is not None else None)
        return msgspec.structs.replace(place, known=True)

    # Presses and commands

    async def _on_interaction(self, native: discord.Interaction[Any]) -> None:
        interaction = interaction_of(native)
        if native.channel is None or not self._is_ours(interaction):
            return
        try:
            values = await self._values_of(interaction)
            place = place_of(native.channel, native.guild_id)
            message = read_interaction(interaction, place, self.rules(), values)
        except InvalidInputError as error:
            await self.set_aside(interaction, error)
            return
        if message is not None:
            self._tasks.start_soon(self._take_interaction, interaction, message)

    def _is_ours(self, interaction: DiscordInteraction) -> bool:
        match interaction.type:
            case InteractionType.COMMAND:
                return interaction.data.name in self._options.commands
            case InteractionType.COMPONENT:
                return interaction.data.custom_id.startswith((OWN_VALUE, OWN_DIGEST))
            case _:
                return False

    async def _values_of(self, interaction: DiscordInteraction) -> dict[str, str]:
        """Return the value of a pressed button, if it was too long for the button's name."""
        custom_id = interaction.data.custom_id
        value = await self._memory.get(custom_id) if custom_id.startswith(OWN_DIGEST) else None
        return {} if value is None else {custom_id: value}

    async def _take_interaction(self, interaction: DiscordInteraction, message: InboundMessage) -> None:
        """Hand a press over, and acknowledge it: what failed is not acknowledged, and people see that."""
        ended, failed = anyio.Event(), False

        async def hand_over() -> None:
            nonlocal failed
            try:
                await self._submit_to_gateway(message)
            except Exception:  # whatever failed: Discord tells the person
                failed = True
                told = "a press or a command could not be stored"
                logger.exception(told, extra={"action": "interaction_lost", **self._account})
            ended.set()

        self._tasks.start_soon(hand_over)
        with anyio.move_on_after(ANSWER_SECONDS):
            await ended.wait()
        if failed:
            return
        is_command = interaction.type == InteractionType.COMMAND
        answer = InteractionAnswer.LATER_AS_MESSAGE if is_command else InteractionAnswer.LATER
        try:
            await self._sender.call(request_that_answers(interaction, answer))
        except Exception as error:  # noqa: BLE001 -- it is taken all the same; people see a failure
            told = "a press or a command could not be acknowledged"
            logger.warning(
                "%s: %s", told, error, extra={"action": "interaction_not_acknowledged", **self._account}
            )


def _is_readable(channel: Any, guild: discord.Guild) -> bool:
    permissions = channel.permissions_for(guild.me)
    return bool(permissions.read_messages and permissions.read_message_history)


@contextmanager
def _added(
    bot: commands.Bot | commands.AutoShardedBot, listeners: dict[str, EventListener]
) -> Generator[None]:
    """Let a bot call listeners besides its own."""
    for name, listener in listeners.items():
        bot.add_listener(listener, name)
    try:
        yield
    finally:
        for name, listener in listeners.items():
            bot.remove_listener(listener, name)


@contextmanager
def _put_before(client: discord.Client, listeners: dict[str, EventListener]) -> Generator[None]:
    """Let a client call listeners before its own, of which it has one for each event."""
    before = {name: vars(client).get(name) for name in listeners}
    for name, listener in listeners.items():
        setattr(client, name, _both(listener, getattr(client, name, None)))
    try:
        yield
    finally:
        for name, own in before.items():
            if own is None:
                delattr(client, name)
            else:
                setattr(client, name, own)


def _both(first: EventListener, second: EventListener | None) -> EventListener:
    async def listen(*facts: Any) -> None:
        await first(*facts)
        if second is not None:
            await second(*facts)

    return listen
