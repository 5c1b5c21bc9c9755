"""Several nodes on one database, in one process: each has a directory, a platform and an agent of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import anyio

from gateway_sessions import Config, SessionDB, SessionStore
from gateway_sessions.config import GatewayConfig, Provider, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.runtime.store.open_store import parts_of
from gateway_sessions.storage.engines.membership import Membership
from gateway_sessions.storage.engines.registry import server_at
from gateway_sessions.testing.fake_platform import FakePlatform

BRISK = ClusterRules(
    heartbeat=timedelta(seconds=0.5),
    ttl=timedelta(seconds=5),
    sticky=timedelta(seconds=0.1),
    poll=timedelta(seconds=0.2),
)


def provider_at(address: str) -> Provider:
    server = server_at(address)
    assert server is not None
    return Provider(server.name)


def config_on(
    address: str, rules: ClusterRules = BRISK, mode: BusyMode = BusyMode.QUEUE, **more: Any
) -> Config:
    return Config(
        timezone="UTC",
        sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
        sessiondb=SessionDBConfig(provider=provider_at(address), url=address),
        busy=BusyRules(mode=mode, debounce=timedelta(0)),
        cluster=rules,
        gateway=GatewayConfig(drain_timeout=timedelta(seconds=2)),
        **more,
    )


class RunningNode:
    """One node: what it hears, and what it does."""

    def __init__(self, store: SessionStore, gateway: Gateway, platform: FakePlatform) -> None:
        self.store = store
        self.gateway = gateway
        self.platform = platform

    @property
    def membership(self) -> Membership:
        found = self.store.db.ownership.membership
        assert found is not None
        return found

    def key(self, person: str) -> str:
        return self.store.key_for(source_of(person))

    async def receive_message(self, person: str, text: str, message_id: str | None = None) -> Any:
        message = InboundMessage(source=source_of(person), text=text, message_id=message_id or text)
        return await self.gateway.submit(message)

    async def said(self, person: str) -> list[object]:
        session_id = await self.store.peek_session_id(self.key(person))
        if session_id is None:
            return []
        return [row["content"] for row in await self.store.load_transcript(session_id)]

    def person_of_its_own(self) -> str:
        """Somebody whose lane this node is to serve."""
        return self.persons_of_its_own(1)[0]

    def persons_of_its_own(self, count: int) -> list[str]:
        """Several of them."""
        cluster = parts_of(self.store).cluster
        assert cluster is not None
        names = (f"p{number}" for number in range(1000))
        return list(islice((one for one in names if cluster.is_mine(self.key(one))), count))


def source_of(person: str) -> SessionSource:
    return SessionSource(platform="fake", chat_id=person, user_id=person)


@asynccontextmanager
async def running_node(
    home: Path,
    config: Config,
    name: str,
    agent: Any,
    *,
    hooks: Any = (),
    pool: object | None = None,
    **options: Any,
) -> AsyncGenerator[RunningNode]:
    named = replace(config, cluster=replace(config.cluster, name=name))
    platform = FakePlatform()
    async with (
        SessionStore.open(home / name, named, hooks=hooks, pool=pool) as store,
        Gateway(store, agent=agent, adapters=[platform], **options) as gateway,
    ):
        yield RunningNode(store, gateway, platform)


async def wait_until_nodes_meet(*nodes: RunningNode) -> None:
    await wait_until(lambda: all(len(one.membership.nodes) == len(nodes) for one in nodes))


async def wait_until(true: Callable[[], object], *, seconds: float = 40) -> None:
    with anyio.fail_after(seconds):
        while not true():  # noqa: ASYNC110 -- nobody tells a test
            await anyio.sleep(0.01)


async def wait_until_memberships_meet(*databases: SessionDB) -> None:
    members = [one.ownership.membership for one in databases if one.ownership.membership is not None]
    await wait_until(lambda: all(len(one.nodes) == len(databases) for one in members))
