"""`DiscordAdapter`: puts a bot of discord.py behind a gateway, and leaves the rest of it alone.

Its own events, commands and views work as before: the adapter only listens as well.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import anyio
import discord
from discord import app_commands
from discord.ext import commands as bot_commands
from discord.gateway import KeepAliveHandler

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters.file_sizes import check_size
from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import AdapterUnavailableError
from gateway_sessions.integrations.discord.api import MOST_BYTES, UNKNOWN_BOT
from gateway_sessions.integrations.discord.menu import (
    menu_of,
    request_for_menu,
    request_that_changes_menu,
)
from gateway_sessions.integrations.discord.objects import DiscordMessage
from gateway_sessions.integrations.discord.sender import DiscordSender
from gateway_sessions.integrations.discord.sending import DISCORD_CAPABILITIES
from gateway_sessions.integrations.discord_py.client_api import DiscordPyApi
from gateway_sessions.integrations.discord_py.listening import (
    ClientListener,
    HandleMessage,
    ListeningOptions,
)
from gateway_sessions.ports import Clock

CONNECT_SECONDS: Final = 60.0
"""The limit for the first session: whoever starts a gateway wants to know."""
CLOSE_SECONDS: Final = 5.0
"""The limit for the end of a client, with what the bot does then."""


class DiscordAdapter:
    """An adapter for one bot of discord.py."""

    def __init__(
        self,
        client: discord.Client,
        token: str | None = None,
        *,
        name: str = "",
        groups: Groups[DiscordMessage] = GroupTalk.MENTION,
        bots: bool = False,
        handle: HandleMessage | None = None,
        tree: app_commands.CommandTree[Any] | None = None,
        catch_up: timedelta = timedelta(days=1),
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """With a *token*, the gateway logs the client in and out; without, the program runs the client.

        *groups* says which messages of guilds are for the bot, *bots* whether other bots are heard. *handle*
        may take messages before the gateway does; messages that call a command of a `commands.Bot` are left
        to the bot. *tree* holds the bot's own commands of Discord's menu, if it is no `commands.Bot`. What
        was written while the bot was away is fetched if it is no older than *catch_up*. What cannot be read
        is kept in the folder *unreadable*, or else only logged.
        """
        self.name = name
        self.platform: str = Platform.DISCORD
        self.capabilities: AdapterCapabilities = DISCORD_CAPABILITIES
        self._client = client
        self._token = token
        self._options = ListeningOptions(
            groups=as_group_rules(groups),
            bots=bots,
            handle=handle,
            catch_up=catch_up,
            unreadable=unreadable,
        )
        if tree is None and isinstance(client, bot_commands.Bot | bot_commands.AutoShardedBot):
            tree = client.tree
        self._tree = tree
        self._clock = clock or SystemClock()
        self._memory: AdapterMemory = ProcessMemory()
        self._api = DiscordPyApi(client)
        self._sender = DiscordSender(self._api, self._clock)

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
                await self._log_in(token)
                yield
            finally:
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):  # who leaves the block may be cancelled
                    await client.close()
                _stop_heartbeats(token)

    async def _log_in(self, token: str) -> None:
        try:
            await self._client.login(token)
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            raise self._unavailable(error) from error

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
        except AttributeError as error:
            # If the first connection fails, discord.py fails as well: it wants to resume what never began.
            began = getattr(self._client, "ws", None) is not None  # whatever its annotation says
            if began or not isinstance(error.__context__, Exception):
                raise
            return self._unavailable(error.__context__)
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

    async def show_commands(self, commands: Sequence[CommandHelp]) -> None:
        """Put commands into Discord's menu; commands that the bot has itself stay its own."""
        tree = self._tree
        own = {one.name for one in tree.get_commands()} - self._options.commands if tree else frozenset[str]()
        menu = menu_of(commands, own)
        self._options.commands.update(one["name"] for one in menu)
        for one in menu:
            if tree is not None and tree.get_command(one["name"]) is None:
                tree.add_command(_command_in_tree(one["name"], one["description"]))
        application_id = self._sender.application_id
        known = await self._sender.call(request_for_menu(application_id))
        change = request_that_changes_menu(application_id, known, menu)
        if change is not None:
            await self._sender.call(change)

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

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent; `InvalidInputError` if it is too large."""
        check_size(attachment, most)
        return await self._api.download(attachment.url)


def _stop_heartbeats(token: str) -> None:
    """End the threads of heartbeats that discord.py forgets if it is cancelled before a session has begun."""
    for thread in threading.enumerate():
        if isinstance(thread, KeepAliveHandler) and thread.ws.token == token:
            thread.stop()


async def _left_to_gateway(_interaction: discord.Interaction[Any], arguments: str = "") -> None:
    """Do nothing: the adapter hears of the command as well."""


def _command_in_tree(name: str, summary: str) -> app_commands.Command[Any, Any, Any]:
    """Return what tells the bot's tree of a command of the gateway, so that it does not miss it."""
    return app_commands.Command(name=name, description=summary, callback=_left_to_gateway)
