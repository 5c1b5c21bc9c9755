"""A gateway process of the cluster run: it takes what its standard input says, and notes whatever it does.

Each line in is `{"lane", "id", "text"}`; each line out is `{"id", "result"}`. What agents and the adapter do
is appended to a file that all processes share, as a platform and the world would see it.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from gateway_sessions import Config, InboundMessage, SessionSource, SessionStore
from gateway_sessions.config import (
    AgentConfig,
    GatewayConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import Rejected
from gateway_sessions.core.sessions.reset_policy import PRESETS
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.runtime.observability.event_stream import EventKind
from tests.cluster.databases import database_at

PLATFORM = "cluster"


class Effects:
    """A file to which every process adds lines: what is in it has happened, whatever becomes of them."""

    def __init__(self, path: Path, node: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._node = node

    def note(self, kind: str, **facts: object) -> None:
        line = {"kind": kind, "node": self._node, "at": time.monotonic(), **facts}
        os.write(self._file, msgspec.json.encode(line) + b"\n")


class Messenger:
    """A platform that shows everything to everybody, in the file."""

    platform, name, capabilities = PLATFORM, "", AdapterCapabilities()

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    @asynccontextmanager
    async def connect(self, submit: object) -> AsyncIterator[None]:
        del submit
        yield

    async def send(self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str) -> None:
        if not message.is_notice:
            self._effects.note("sent", lane=target.chat_id, text=message.text, key=idempotency_key)

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None: ...

    async def typing(self, target: ReplyTarget) -> None: ...


class Worker:
    """An agent that takes its time."""

    def __init__(self, effects: Effects, seconds: float) -> None:
        self._effects = effects
        self._seconds = seconds

    async def run_turn(self, turn: TurnContext) -> str:
        facts = {"lane": turn.source.chat_id, "text": turn.text, "token": turn.token}
        self._effects.note("begin", **facts)
        await asyncio.sleep(random.expovariate(1 / self._seconds))
        self._effects.note("end", **facts)
        return f"re {turn.text}"


def config_of(address: str, name: str, rules: ClusterRules) -> Config:
    return Config(
        timezone="UTC",
        session_reset=PRESETS["never"],
        busy=BusyRules(debounce=timedelta(0), max_queued=1000, acknowledge=False),
        agent=AgentConfig(max_restart_attempts=1000),
        gateway=GatewayConfig(drain_timeout=timedelta(seconds=5)),
        sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
        sessiondb=SessionDBConfig(provider=database_at(address).provider, url=address),
        cluster=replace(rules, name=name),
    )


async def serve(address: str, home: Path, effects: Effects, config: Config, seconds: float) -> None:
    async with (
        SessionStore.open(home, config) as store,
        Gateway(store, agent=Worker(effects, seconds), adapters=[Messenger(effects)]) as gateway,
    ):
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
        )
        print("ready", flush=True)  # noqa: T201 -- to whoever has started this
        async with asyncio.TaskGroup() as tasks:
            fenced = tasks.create_task(note_fenced(store, effects))
            while line := await lines.readline():
                tasks.create_task(answer(gateway, effects, msgspec.json.decode(line)))
            fenced.cancel()


async def answer(gateway: Gateway, effects: Effects, asked: dict[str, Any]) -> None:
    source = SessionSource(platform=PLATFORM, chat_id=asked["lane"], user_id=asked["lane"])
    message = InboundMessage(source=source, text=asked["text"], message_id=asked["text"])
    try:
        receipt = await gateway.submit(message)
        result = f"rejected {receipt.reason}" if isinstance(receipt, Rejected) else type(receipt).__name__
    except GatewaySessionsError as error:
        result = f"error {type(error).__name__}"
        effects.note("refused", error=type(error).__name__, problem=str(error))
    print(msgspec.json.encode({"id": asked["id"], "result": result}).decode(), flush=True)  # noqa: T201


async def note_fenced(store: SessionStore, effects: Effects) -> None:
    kinds = (EventKind.TURN_FENCED, EventKind.TURN_ENDED)
    async with store.events.listen(kinds=kinds) as events:
        async for event in events:
            if event.kind is EventKind.TURN_FENCED or event.facts.get("outcome") == "overtaken":
                effects.note("fenced")


def main() -> None:
    address, home, name, effects, rules, seconds = sys.argv[1:]
    told = msgspec.json.decode(rules, type=dict[str, float])
    cluster = ClusterRules(**{key: timedelta(seconds=value) for key, value in told.items()})
    config = config_of(address, name, cluster)
    asyncio.run(serve(address, Path(home), Effects(Path(effects), name), config, float(seconds)))


if __name__ == "__main__":
    main()
