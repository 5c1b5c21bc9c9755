"""`FakeDiscord`: gateway and REST API on loopback, with people who write to a bot."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import anyio

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.discord.endpoint import InteractionsEndpoint
from gateway_sessions.testing.fakes.discord.gateway import MESSAGE_CONTENT, FakeGateway
from gateway_sessions.testing.fakes.discord.guilds import ANSWER, DiscordChannel, DiscordGuilds
from gateway_sessions.testing.fakes.discord.pace import DiscordLimits, DiscordPace
from gateway_sessions.testing.fakes.discord.refusals import (
    JSON,
    DiscordRefusalError,
    not_found,
    unauthorized,
)
from gateway_sessions.testing.fakes.discord.rest import (
    DiscordCall,
    DiscordRest,
    FakeInteraction,
    RestMethod,
    parameters_of,
)
from gateway_sessions.testing.fakes.faults import (
    CutConnection,
    Delay,
    Fault,
    RateLimit,
    RefusedCall,
    ServerFault,
)
from gateway_sessions.testing.fakes.http_server import (
    ConnectionCutError,
    FakeRequest,
    FakeResponse,
    UpgradedConnection,
)
from gateway_sessions.testing.fakes.platform_server import BotMessage, FakePlatformServer, PlatformCall
from gateway_sessions.testing.fakes.websocket import require_wsproto, wants_web_socket, web_socket

TOKEN: Final = "MTIz.fake.token-of-a-bot-that-nobody-knows"  # noqa: S105 -- it opens nothing
API: Final = "/api/v10"
_BINARY: Final = "application/octet-stream"
COUNTED: Final = ("create_message", "edit_message")
"""The methods whose pace Discord counts by channel."""


class FakeDiscord(FakePlatformServer):
    """A Discord for one bot and one guild, to be used as `async with FakeDiscord() as discord`.

    Point a client library at `discord.api_url` and `discord.gateway_url`. Messages stay in their channels,
    as people see them; the gateway brings them once, and forgets what nobody took.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        name: str = "helper",
        guild: str = "Workshop",
        allowed_intents: int = MESSAGE_CONTENT,
        shards: int = 1,
        limits: DiscordLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*allowed_intents* are the privileged ones that the owner of the bot has switched on for it.

        *shards* is the number that Discord recommends to a bot that asks.
        """
        super().__init__()
        require_wsproto()
        self.token: str = token
        self.files: dict[str, bytes] = {}
        """The files that people and the bot have sent, by the path of their address."""
        clock = clock or SystemClock()
        self.guilds: DiscordGuilds = DiscordGuilds(name, guild, clock)
        self.gateway: FakeGateway = FakeGateway(token, self.guilds, allowed_intents=allowed_intents)
        self.rest: DiscordRest = DiscordRest(self.guilds, files=self.files)
        self.endpoint: InteractionsEndpoint = InteractionsEndpoint(clock, self.rest.take_response)
        """Where interactions are posted, once it has an address."""
        self._shards = shards
        self.guilds.dispatch = self.gateway.dispatch
        self.gateway.tell_address(lambda: self.gateway_url)
        self.rest.file_url = lambda path: f"{self.url}{path}"
        self.rest.allowed_content = self._as_allowed
        self._pace = DiscordPace(limits, clock)

    @property
    def api_url(self) -> str:
        """The address of the REST API."""
        return f"{self.url}{API}"

    @property
    def gateway_url(self) -> str:
        """The address of the gateway."""
        return f"{self.url.replace('http', 'ws', 1)}/gateway"

    @property
    def mention(self) -> str:
        """The bot's name as a text holds it when people pick it from the list."""
        return f"<@{self.guilds.bot.id}>"

    # People

    def place(
        self, person: str = "", *, channel: str | None = None, thread: str | None = None
    ) -> DiscordChannel:
        """Return the private channel of a person, a channel of the guild, or a thread of one."""
        if channel is None:
            return self.guilds.private_channel(self.guilds.person(person))
        found = self.guilds.channel(channel)
        return found if thread is None else self.guilds.thread(found, thread)

    def says(
        self,
        person: str,
        text: str,
        *,
        channel: str | None = None,
        thread: str | None = None,
        reply_to: int | None = None,
        **more: Any,
    ) -> int:
        """Let a person write, in private or in a channel; return the id of the message."""
        place = self.place(person, channel=channel, thread=thread)
        if reply_to is not None:
            answered = place.messages[reply_to]
            reference = {"channel_id": str(place.id), "message_id": str(reply_to), "type": 0}
            more = {"type": ANSWER, "message_reference": reference, "referenced_message": answered, **more}
            more.setdefault("mentions", [answered["author"]])
        return int(self.guilds.add_message(place, self.guilds.person(person), text, **more)["id"])

    def sends(
        self,
        person: str,
        content: bytes,
        *,
        name: str = "file.bin",
        media_type: str = _BINARY,
        text: str = "",
        channel: str | None = None,
    ) -> int:
        """Let a person send a file; return the id of the message."""
        attachment = self.rest.keep_file(name, content, media_type)
        return self.says(person, text, channel=channel, attachments=[attachment])

    def edits(self, message_id: int, text: str) -> None:
        """Let a person change what they wrote."""
        self.guilds.edit_message(self.guilds.channel_of(message_id), message_id, content=text)

    def deletes(self, message_id: int) -> None:
        """Let a person delete what they wrote."""
        self.guilds.delete_message(self.guilds.channel_of(message_id), message_id)

    def starts_thread(self, message_id: int, name: str) -> None:
        """Let a person start a thread at a message."""
        self.guilds.thread(self.guilds.channel_of(message_id), name, thread_id=message_id)

    def blocks(self, person: str) -> None:
        """Let a person take no private messages of the bot any more."""
        self.rest.blocked.add(self.guilds.person(person).id)

    def presses(self, person: str, label: str, *, channel: str | None = None) -> FakeInteraction:
        """Let a person press the button of that label, on the last message that has one."""
        place = self.place(person, channel=channel)
        for message in reversed(list(place.messages.values())):
            for row in message["components"]:
                for button in row["components"]:
                    if button.get("label") == label and "custom_id" in button:
                        data = {"custom_id": button["custom_id"], "component_type": 2}
                        return self._interacts(person, place, 3, data, message=message)
        problem = f"{person} sees no button {label!r}"
        raise AssertionError(problem)

    def commands(
        self,
        person: str,
        name: str,
        *,
        channel: str | None = None,
        files: Mapping[str, bytes] = MappingProxyType({}),
        **options: str,
    ) -> FakeInteraction:
        """Let a person use a slash command that the bot has registered; *files* by names are given to it."""
        command = self.rest.commands.get(name)
        assert command is not None, f"the bot has no command /{name}"
        given = [{"name": option, "type": 3, "value": value} for option, value in options.items()]
        kept = [self.rest.keep_file(one, content, _BINARY) for one, content in files.items()]
        given += [{"name": "file", "type": 11, "value": one["id"]} for one in kept]
        resolved = {"attachments": {one["id"]: one for one in kept}} if kept else {}
        data = {"id": command["id"], "name": name, "type": 1, "options": given, "resolved": resolved}
        return self._interacts(person, self.place(person, channel=channel), 2, data)

    def make_interaction(
        self, person: str, place: DiscordChannel, kind: int, data: Mapping[str, Any], **more: Any
    ) -> tuple[FakeInteraction, dict[str, Any]]:
        """Return an interaction, and the event that tells the bot of it."""
        number = self.guilds.new_id()
        message = more.get("message")
        interaction = FakeInteraction(
            number, kind, f"token-of-{number}", place, message_id=int(message["id"]) if message else None
        )
        self.rest.interactions[interaction.token] = interaction
        user = self.guilds.person(person).as_json()
        event: dict[str, Any] = {
            "id": str(number),
            "application_id": str(self.guilds.bot.id),
            "type": kind,
            "token": interaction.token,
            "version": 1,
            "data": {**data},
            "channel_id": str(place.id),
            "channel": place.as_json(),
            "locale": "en-US",
            "attachment_size_limit": 10 << 20,
            "entitlements": [],
            **more,
        }
        if place.guild_id is None:
            event["user"] = user
        else:
            event |= {"guild_id": str(place.guild_id), "guild": {"id": str(place.guild_id)}}
            event["member"] = {**self.guilds.member(), "user": user, "permissions": "0"}
        return interaction, event

    def _interacts(
        self, person: str, place: DiscordChannel, kind: int, data: Mapping[str, Any], **more: Any
    ) -> FakeInteraction:
        interaction, event = self.make_interaction(person, place, kind, data, **more)
        if self.endpoint.url:
            self.endpoint.add(interaction, event)
        else:
            self.gateway.dispatch("INTERACTION_CREATE", event)
        return interaction

    def _duties(self) -> list[Callable[[], Awaitable[object]]]:
        return [self.endpoint.post_interactions]

    # What people see

    def shown(
        self, person: str = "", *, channel: str | None = None, thread: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the bot's messages in a place, as Discord keeps them."""
        place, bot = self.place(person, channel=channel, thread=thread), str(self.guilds.bot.id)
        return [one for one in list(place.messages.values()) if one["author"]["id"] == bot]

    def texts(self, person: str = "", *, channel: str | None = None, thread: str | None = None) -> list[str]:
        """Return what the bot has said in a place."""
        return [str(one["content"]) for one in self.shown(person, channel=channel, thread=thread)]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the bot that people see, wherever they stand."""
        bot = str(self.guilds.bot.id)
        for channel in list(self.guilds.channels.values()):
            for message in list(channel.messages.values()):
                if message["author"]["id"] == bot:
                    yield _as_seen(channel, message)
        for interaction in list(self.rest.interactions.values()):
            for message in interaction.ephemeral:
                yield _as_seen(interaction.channel, message)

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        return {"token": self.token, "api_url": self.api_url, "gateway_url": self.gateway_url}

    @property
    def pending(self) -> int:
        """The number of messages of people, while no bot is connected: the gateway brings them at once."""
        if self.gateway.connected:
            return 0
        bot, channels = str(self.guilds.bot.id), list(self.guilds.channels.values())
        return sum(one["author"]["id"] != bot for channel in channels for one in channel.messages.values())

    # What goes wrong

    async def on_gateway(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do something of `gateway` that waits, such as `gateway.cut`."""
        await self._in_thread(work)

    def _as_allowed(self, message: dict[str, Any]) -> dict[str, Any]:
        allowed = self.gateway.allowed_intents & MESSAGE_CONTENT
        return message if allowed else self.gateway.without_content(message)

    # The server

    async def _answer(self, request: FakeRequest) -> FakeResponse | UpgradedConnection:
        if wants_web_socket(request):
            return web_socket(request, self.gateway.talk)
        if request.path in self.files:
            return FakeResponse(200, self.files[request.path], {"content-type": "application/octet-stream"})
        if request.path == f"{API}/gateway/bot":
            return self._gateway_address()
        found = self.rest.find(request.method, request.path.removeprefix(API))
        if found is None or not request.path.startswith(API):
            return not_found().as_response()
        name, method, ids = found
        call = _call_of(request)._replace(ids=ids)
        fault = self.faults.next_for(name, call.given)
        try:
            response = await self._response(request, name, method, call, fault)
        except ConnectionCutError:
            self.calls.append(PlatformCall(name, {**call.ids, **call.given}, time.monotonic(), 0))
            raise
        self._log_call(name, {**call.ids, **call.given}, response)
        return response

    def _gateway_address(self) -> FakeResponse:
        starts = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
        facts = {"url": self.gateway_url, "shards": self._shards, "session_start_limit": starts}
        return FakeResponse.of_json(facts, headers=JSON)

    async def _response(
        self, request: FakeRequest, name: str, method: RestMethod, call: DiscordCall, fault: Fault | None
    ) -> FakeResponse:
        place = call.ids.get("channel_id", "") if name in COUNTED else ""
        match fault:
            case RefusedCall():
                code, _, problem = fault.problem.rpartition(":")
                number = int(code) if code.isdigit() else 0
                return DiscordRefusalError(fault.status, number, problem.strip()).as_response()
            case RateLimit():
                return self._pace.ask_to_wait(place, fault.retry_after)
            case Delay():
                await anyio.sleep(fault.seconds)
            case CutConnection() | ServerFault():
                if fault is CutConnection.AFTER or (isinstance(fault, ServerFault) and fault.done):
                    self._outcome(request, method, call)
                return _broken_answer(fault)
            case None:
                pass
        if (refusal := self._pace.refusal(place)) is not None:
            return refusal
        response = self._outcome(request, method, call)
        return FakeResponse(response.status, response.body, {**response.headers, **self._pace.headers(place)})

    def _outcome(self, request: FakeRequest, method: RestMethod, call: DiscordCall) -> FakeResponse:
        # Whoever has the token of an interaction needs no other.
        needs_token = "token" not in call.ids
        if needs_token and request.headers.get("authorization") != f"Bot {self.token}":
            return unauthorized().as_response()
        try:
            answer = method(call)
        except DiscordRefusalError as refusal:
            return refusal.as_response()
        return FakeResponse(204) if answer is None else FakeResponse.of_json(answer, headers=JSON)


def _as_seen(channel: DiscordChannel, message: Mapping[str, Any]) -> BotMessage:
    place = channel.name if channel.recipient is not None else f"#{channel.name}"
    parts = [str(message["content"])]
    parts += [str(one.get("description") or one.get("title") or "") for one in message["embeds"]]
    parts += [f"[{one['filename']}]" for one in message["attachments"]]
    for row in message["components"]:
        parts.append(" ".join(f"[{button['label']}]" for button in row["components"] if "label" in button))
    return BotMessage(place, str(message["id"]), "\n".join(filter(None, parts)))


def _broken_answer(fault: CutConnection | ServerFault) -> FakeResponse:
    if isinstance(fault, CutConnection):
        raise ConnectionCutError
    return FakeResponse(fault.status, fault.body.encode(), {"content-type": "text/html"})


def _call_of(request: FakeRequest) -> DiscordCall:
    if request.body.lstrip().startswith(b"["):  # the one method that gets a list
        body = b'{"commands": %b}' % request.body
        request = FakeRequest(method="PUT", path=request.path, headers=request.headers, body=body)
    return parameters_of(request.parameters())
