"""The gateway of a fake Discord: sessions of a bot, the events that they are owed, and how they end."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import anyio

from gateway_sessions.testing.fakes.discord.guilds import DiscordGuilds
from gateway_sessions.testing.fakes.platform_server import LOOK_SECONDS
from gateway_sessions.testing.fakes.websocket import FakeWebSocket

HEARTBEAT_MS: Final = 41_250
GUILDS: Final = 1 << 0
GUILD_MESSAGES: Final = 1 << 9
DIRECT_MESSAGES: Final = 1 << 12
MESSAGE_CONTENT: Final = 1 << 15
PRIVILEGED: Final = 1 << 1 | 1 << 8 | MESSAGE_CONTENT
"""The intents that the owner of a bot must switch on for it."""


class GatewayOp(IntEnum):
    """What a message on the gateway is."""

    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    RESUME = 6
    RECONNECT = 7
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


@dataclass(slots=True)
class GatewaySession:
    """What the bot is told since it identified itself, also while its connection is broken."""

    id: str
    intents: int
    shard: tuple[int, int] = (0, 1)
    """The number of the shard, and of all shards: each is told of its part of the guilds."""
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, name: str, data: Any) -> None:
        """Add an event, with its number."""
        number = len(self.events) + 1
        self.events.append({"op": int(GatewayOp.DISPATCH), "t": name, "s": number, "d": data})


def shard_of(guild_id: str | None, count: int) -> int:
    """Return the shard that is told of a guild; private messages come to the first one."""
    return (int(guild_id) >> 22) % count if guild_id is not None else 0


class _GatewayLine:
    """One connection of the bot."""

    def __init__(self, socket: FakeWebSocket) -> None:
        self.socket = socket
        self.session: GatewaySession | None = None
        self.sent = 0
        """The number of the last event that went over this connection."""
        compresses = socket.request.query.get("compress") == "zlib-stream"
        self._compressor = zlib.compressobj() if compresses else None

    async def send(self, op: GatewayOp, data: object = None) -> None:
        await self.send_payload({"op": int(op), "d": data, "s": None, "t": None})

    async def send_payload(self, payload: dict[str, Any]) -> None:
        text = json.dumps(payload)
        if self._compressor is None:
            await self.socket.send(text)
        else:
            packed = self._compressor.compress(text.encode()) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
            await self.socket.send(packed)


class FakeGateway:
    """The gateway for one bot."""

    def __init__(self, token: str, guilds: DiscordGuilds, *, allowed_intents: int) -> None:
        self.sessions: dict[str, GatewaySession] = {}
        """The sessions that can be resumed."""
        self.identified: int = 0
        """How often the bot has begun a session."""
        self.resumed: int = 0
        self.heartbeats: int = 0
        self.allowed_intents: int = allowed_intents
        self._token = token
        self._guilds = guilds
        self._lines: list[_GatewayLine] = []
        # People write in the thread of a test, the bot in that of the fake.
        self._lock = threading.Lock()
        self._resume_url: Callable[[], str] = str

    def tell_address(self, address: Callable[[], str]) -> None:
        """Take the function that tells at which address sessions are resumed."""
        self._resume_url = address

    @property
    def connected(self) -> bool:
        """Whether the bot has a session and a connection."""
        return any(line.session is not None for line in self._lines)

    def dispatch(self, name: str, data: dict[str, Any]) -> None:
        """Owe an event to every session whose intents ask for it."""
        for session in list(self.sessions.values()):
            if (allowed := self._as_allowed(name, data, session)) is not None:
                with self._lock:
                    session.add(name, allowed)

    def _as_allowed(self, name: str, data: dict[str, Any], session: GatewaySession) -> dict[str, Any] | None:
        """Return an event as a session gets it; None if it is another shard's, or its intents do not ask."""
        intents = session.intents
        if session.shard[0] != shard_of(data.get("guild_id"), session.shard[1]):
            return None
        if not name.startswith("MESSAGE_"):
            return data
        kind = GUILD_MESSAGES if "guild_id" in data else DIRECT_MESSAGES
        if not intents & kind:
            return None
        return data if intents & MESSAGE_CONTENT else self.without_content(data)

    def without_content(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message as a bot without the intent for content gets it."""
        bot = str(self._guilds.bot.id)
        own = message.get("author", {}).get("id") == bot
        if own or "guild_id" not in message or any(one["id"] == bot for one in message.get("mentions", [])):
            return message
        return {**message, "content": "", "embeds": [], "attachments": [], "components": []}

    # What goes wrong

    async def cut(self) -> None:
        """Cut every connection; sessions can be resumed."""
        for line in list(self._lines):
            line.socket.cut()

    async def close(self, code: int, reason: str = "") -> None:
        """Close every connection with a code."""
        for line in list(self._lines):
            await line.socket.close(code, reason)

    async def ask_to_reconnect(self) -> None:
        """Ask the bot for another connection, as Discord does now and then."""
        for line in list(self._lines):
            await line.send(GatewayOp.RECONNECT)

    async def invalidate(self) -> None:
        """End every session so that it cannot be resumed; what it was owed is lost."""
        self.sessions.clear()
        for line in list(self._lines):
            line.session = None
            await line.send(GatewayOp.INVALID_SESSION, data=False)

    async def forget_sessions(self) -> None:
        """Cut every connection, and forget the sessions: the bot tries to resume, and is refused."""
        self.sessions.clear()
        await self.cut()

    # A connection

    async def talk(self, socket: FakeWebSocket) -> None:
        """Serve one connection to its end."""
        line = _GatewayLine(socket)
        self._lines.append(line)
        try:
            await line.send(GatewayOp.HELLO, {"heartbeat_interval": HEARTBEAT_MS})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_events, line)
                while socket.closed is None:
                    await self._take(line, await socket.receive_json())
                tasks.cancel_scope.cancel()
        finally:
            self._lines.remove(line)

    async def _send_events(self, line: _GatewayLine) -> None:
        while line.socket.closed is None:
            while line.session is not None and line.sent < len(line.session.events):
                line.sent += 1
                await line.send_payload(line.session.events[line.sent - 1])
            await anyio.sleep(LOOK_SECONDS)

    async def _take(self, line: _GatewayLine, payload: dict[str, Any]) -> None:
        data: Any = payload.get("d")
        match payload.get("op"):
            case GatewayOp.HEARTBEAT:
                self.heartbeats += 1
                await line.send(GatewayOp.HEARTBEAT_ACK)
            case GatewayOp.IDENTIFY if data["token"] != self._token:
                await line.socket.close(4004, "Authentication failed.")
            case GatewayOp.IDENTIFY if data["intents"] & PRIVILEGED & ~self.allowed_intents:
                await line.socket.close(4014, "Disallowed intent(s).")
            case GatewayOp.IDENTIFY:
                number, count = data.get("shard") or (0, 1)
                self._begin_session(line, int(data["intents"]), (int(number), int(count)))
            case GatewayOp.RESUME:
                await self._resume(line, str(data["session_id"]), int(data["seq"] or 0))
            case _:
                pass  # presences, members … nothing that a bot waits for

    def _begin_session(self, line: _GatewayLine, intents: int, shard: tuple[int, int]) -> None:
        self.identified += 1
        session = GatewaySession(f"session-{self.identified}", intents, shard)
        guild = self._guilds.guild_as_json()
        has_guild = shard[0] == shard_of(guild["id"], shard[1])
        session.add(
            "READY",
            {
                "v": 10,
                "user": self._guilds.bot.as_json(),
                "guilds": [{"id": guild["id"], "unavailable": True}] if has_guild else [],
                "private_channels": [],
                "session_id": session.id,
                "resume_gateway_url": self._resume_url(),
                "application": {"id": str(self._guilds.bot.id), "flags": 0},
                "shard": [*shard],
            },
        )
        if has_guild and intents & GUILDS:
            session.add("GUILD_CREATE", guild)
        self.sessions[session.id] = session
        line.session, line.sent = session, 0

    async def _resume(self, line: _GatewayLine, session_id: str, number: int) -> None:
        session = self.sessions.get(session_id)
        if session is None:
            await line.send(GatewayOp.INVALID_SESSION, data=False)
            return
        self.resumed += 1
        session.add("RESUMED", {})
        line.session, line.sent = session, number
