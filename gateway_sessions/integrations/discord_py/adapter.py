"""`DiscordAdapter`: puts a bot of discord.py behind a gateway, and leaves the rest of it alone.

Its own events, commands and views work as before: the adapter only listens as well.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import aiohttp
import anyio
import discord
from discord import app_commands
from discord.ext import commands

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import AdapterUnavailableError
from gateway_sessions.integrations.discord.api import UNKNOWN_BOT, DiscordRequest
from gateway_sessions.integrations.discord.objects import DiscordMessage
from gateway_sessions.integrations.discord.sender import DiscordSender
from gateway_sessions.integrations.discord.sending import DISCORD_CAPABILITIES
from gateway_sessions.integrations.discord_py.client_api import DiscordPyApi
from gateway_sessions.integrations.discord_py.listening import (
    ClientListener,
    HandleMessage,
    ListeningOptions,
)
from gateway_sessions.integrations.telegram.updates import GroupTalk
from gateway_sessions.ports import Clock

CONNECT_SECONDS: Final = 60.0
"""The limit for the first session: whoever starts a gateway wants to know."""
LONGEST_SUMMARY: Final = 100
"""The longest description of a command in Discord's menu."""


class NamedCommand(Protocol):
    """A command as `gateway.commands` lists it."""

    @property
    def name(self) -> str:
        """The name, without a slash."""
        ...

    @property
    def summary(self) -> str:
        """What the command does, in a sentence."""
        ...


class DiscordAdapter:
    """An adapter for one bot of discord.py."""

    def __init__(
        self,
        client: discord.Client,
        token: str | None = None,
        *,
        name: str = "",
        groups: GroupTalk | Callable[[DiscordMessage], bool] = GroupTalk.ADDRESSED,
        bots: bool = False,
        handle: HandleMessage | None = None,
        catch_up: timedelta = timedelta(days=1),
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """With a *token*, the gateway logs the client in and out; without, the program runs the client.

        *groups* says which messages of guilds are for the bot, *bots* whether other bots are heard. *handle*
        may take messages before the gateway does; messages that call a command of a `commands.Bot` are left
        to the bot. What was written while the bot was away is fetched if it is no older than *catch_up*. What
        cannot be read is kept in the folder *unreadable*, or else only logged.
        """
        self.name = name
        self.platform: str = Platform.DISCORD
        self.capabilities: AdapterCapabilities = DISCORD_CAPABILITIES
        self._client = client
        self._token = token
        self._options = ListeningOptions(
            groups=groups, bots=bots, handle=handle, catch_up=catch_up, unreadable=unreadable
        )
        self._clock = clock or SystemClock()
        self._memory: AdapterMemory = ProcessMemory()
        self._sender = DiscordSender(DiscordPyApi(client), self._clock)

    def remember_in(self, memory: AdapterMemory) -> None:
        """Keep in this memory how far each channel is taken."""
        self._memory = memory

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Listen within the block; `AdapterUnavailableError` if Discord does not take the bot."""
        ready = anyio.Event()
        async with AsyncExitStack() as stack:
            if self._token is not None:
                await stack.enter_async_context(self._logged_in(self._token))
            await stack.enter_async_context(in_background(partial(self._listen, submit, ready)))
            with anyio.move_on_after(CONNECT_SECONDS) as limit:
                await ready.wait()
            if limit.cancelled_caught:
                raise AdapterUnavailableError(self.platform, "does not begin a session with the bot")
            yield

    @asynccontextmanager
    async def _logged_in(self, token: str) -> AsyncGenerator[None]:
        client = self._client
        if client.is_closed():
            client.clear()
            client.http.connector = discord.utils.MISSING  # the one there is was closed with the client
        async with client:
            try:
                await client.login(token)
            except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
                raise self._unavailable(error) from error
            yield

    async def _listen(self, submit: Submit, ready: anyio.Event) -> None:
        """Take events in, and keep the client connected if that is the adapter's task."""
        ended: AdapterUnavailableError | None = None
        async with anyio.create_task_group() as tasks:
            listener = ClientListener(
                self,
                self._client,
                self._options,
                submit=submit,
                sender=self._sender,
                memory=self._memory,
                clock=self._clock,
                tasks=tasks,
                connected=ready,
            )
            await listener.receiver.start()
            with listener.installed():
                if self._token is not None:
                    ended = await self._end_of_connection()
                else:
                    if self._client.is_ready():
                        listener.begin_session()
                    ready.set()
                    await anyio.sleep_forever()
            tasks.cancel_scope.cancel()
        if ended is not None:
            raise ended

    async def _end_of_connection(self) -> AdapterUnavailableError:
        """Stay connected, and return why that ended."""
        try:
            await self._client.connect()
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            return self._unavailable(error)
        return AdapterUnavailableError(self.platform, "has ended the connection")

    def _unavailable(self, error: Exception) -> AdapterUnavailableError:
        match error:
            case discord.LoginFailure() | discord.ConnectionClosed(code=4004):
                problem = UNKNOWN_BOT
            case discord.PrivilegedIntentsRequired():
                problem = (
                    "does not give this bot the intents that it asks for: switch Message Content Intent on, "
                    "on the page of the bot at https://discord.com/developers"
                )
            case _:
                problem = f"cannot be reached ({error})"
        return AdapterUnavailableError(self.platform, problem)

    async def register(
        self, known: Iterable[NamedCommand], tree: app_commands.CommandTree[Any] | None = None
    ) -> None:
        """Put commands such as `gateway.commands` in Discord's menu, once the adapter is connected.

        If the bot has a tree of commands, they are added to it and the tree is synchronised; commands that
        the bot has itself stay its own.
        """
        if tree is None and isinstance(self._client, commands.Bot | commands.AutoShardedBot):
            tree = self._client.tree
        for command in known:
            if tree is not None and tree.get_command(command.name) is not None:
                continue
            self._options.commands.add(command.name)
            summary = command.summary[:LONGEST_SUMMARY] or command.name
            if tree is not None:
                tree.add_command(_command_in_tree(command.name, summary))
            else:
                await self._sender.call(_registration(self._sender.application_id, command.name, summary))
        if tree is not None:
            await tree.sync()

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Send a message and return its id: that of its text, if it takes several."""
        return await self._sender.send(target, message, idempotency_key=idempotency_key, memory=self._memory)

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a message say something else."""
        await self._sender.edit(target, message_id, message)

    async def typing(self, target: ReplyTarget) -> None:
        """Show for ten seconds that an answer is being made."""
        await self._sender.typing(target)


async def _left_to_gateway(_interaction: discord.Interaction[Any], arguments: str = "") -> None:
    """Do nothing: the adapter hears of the command as well."""


def _command_in_tree(name: str, summary: str) -> app_commands.Command[Any, Any, Any]:
    return app_commands.Command(name=name, description=summary, callback=_left_to_gateway)


def _registration(application_id: str, name: str, summary: str) -> DiscordRequest:
    """Return the request that puts one command in the menu, and leaves all others there."""
    option = {"type": 3, "name": "arguments", "description": "What the command needs", "required": False}
    return DiscordRequest(
        method="POST",
        path="/applications/{application_id}/commands",
        ids={"application_id": application_id},
        json={"name": name, "description": summary, "type": 1, "options": [option]},
    )
