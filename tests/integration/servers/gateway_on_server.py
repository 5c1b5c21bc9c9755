"""A whole gateway on a server: people are answered in order, and who is killed loses nothing."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from gateway_sessions import Config, Gateway, Scope, TurnContext
from gateway_sessions.config import Provider, SessionDBConfig
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.runtime.gateway.gateway import TO_STOP
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.testing import FakePlatform
from gateway_sessions.testing.agents import ScriptedAgent
from tests.cluster.databases import address_through_port, database_at
from tests.cluster.proxy import Proxy
from tests.integration.gateway.gateway_harness import QUICK, open_harness
from tests.integration.servers.nodes import BRISK, wait_until

CHILD = """
import asyncio, sys
from gateway_sessions import Config, InboundMessage, SessionSource, SessionStore
from gateway_sessions.config import Provider, SessionDBConfig

async def main():
    config = Config(sessiondb=SessionDBConfig(provider=Provider(sys.argv[1]), url=sys.argv[2]))
    async with SessionStore.open(sys.argv[3], config) as store:
        alice = SessionSource(platform="telegram", chat_id="1", user_id="alice")
        for text in ("one", "two"):
            await store.enqueue(InboundMessage(source=alice, text=text, message_id=text), solo=True)
        async with await store.claim() as turn:
            await turn.append({"role": "assistant", "content": "as far as it came"})
            print("claimed", flush=True)
            await asyncio.sleep(60)

asyncio.run(main())
"""


class Address(NamedTuple):
    """Where a database is."""

    provider: Provider
    url: str


LONGEST_CLOSE = 20.0
"""Seconds that a store may take to find out that it can say goodbye to nobody."""


async def read_and_write_agent(turn: TurnContext) -> str:
    """Reads, and writes down what it does, before it answers."""
    await turn.history()
    await turn.append({"role": "assistant", "content": "a step"})
    return f"done: {turn.text}"


async def words_in_transcript(store: SessionStore, platform: FakePlatform, person: str) -> list[str]:
    """What a person has said, as the transcript has it; a burst is one row of several lines."""
    session_id = await store.peek_session_id(store.key_for(platform.source(person)))
    assert session_id is not None
    rows = await store.load_transcript(session_id)
    return [line for row in rows if row["role"] == "user" for line in str(row["content"]).splitlines()]


class GatewayOnServer:
    """For a fixture `server`, and a way to cut connections."""

    async def cut_others(self, url: str) -> None:
        """End all connections to the database but the one that says so."""
        raise NotImplementedError

    @pytest.fixture
    def config(self, server: Address) -> Config:
        return replace(
            QUICK,
            sessiondb=SessionDBConfig(provider=server.provider, url=server.url),
            busy=BusyRules(mode=BusyMode.QUEUE),
        )

    async def test_people_are_answered_in_order_and_found_again(self, tmp_path: Path, config: Config):
        people = [f"person{number}" for number in range(8)]
        texts = ["one", "two", "three"]
        async with open_harness(tmp_path, config, agent=ScriptedAgent()) as harness:
            for text in texts:
                await asyncio.gather(*(harness.platform.says(name, text) for name in people))
                await harness.wait_until_idle()
            for name in people:
                said = [content for role, content in await harness.transcript(name) if role == "user"]
                assert said == texts
                assert await harness.outcomes(name) == {"turned": len(texts)}
            found = await harness.store.db.search_messages("three", scope=Scope.operator())
            assert {hit.role for hit in found.hits} == {
                "user",
                "assistant",
            }  # the agent repeats what it is told
            assert (found.matches, found.degraded) == (2 * len(people), False)
        same = {"platform": harness.platform, "clock": harness.clock}
        async with open_harness(
            tmp_path / "another machine", config, agent=ScriptedAgent(), **same
        ) as harness:
            await harness.platform.says("person0", "four")
            await harness.wait_until_idle()
            said = [content for role, content in await harness.transcript("person0") if role == "user"]
            assert said == [*texts, "four"]

    async def test_what_a_killed_process_had_begun_is_taken_up(
        self, tmp_path: Path, config: Config, server: Address
    ):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, server.provider, server.url, tmp_path, stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        assert await asyncio.wait_for(child.stdout.readline(), 15) == b"claimed\n"
        child.send_signal(signal.SIGKILL)
        await child.wait()
        async with SessionStore.open(tmp_path, config, wait=10) as store:
            assert not store.started.clean
            assert len(store.started.resumed) == 1
            for text, attempt in (("one", 2), ("two", 1)):
                async with await store.claim() as turn:
                    assert [message.text for message in turn.messages] == [text]
                    assert turn.attempt == attempt
                    await turn.commit([{"role": "assistant", "content": "done"}])
            entry = (await store.list_sessions(scope=Scope.operator()))[0]
            rows = await store.db.get_messages(entry.session_id)
            assert [one.text for one in rows if one.role == "user"] == ["one", "two"]

    async def test_a_node_whose_connections_are_cut_stays_who_it_is(
        self, tmp_path: Path, config: Config, server: Address
    ):
        brisk = ClusterRules(heartbeat=timedelta(seconds=0.2), ttl=timedelta(seconds=6))
        async with SessionStore.open(tmp_path, replace(config, cluster=brisk)) as store:
            membership = store.db.ownership.membership
            assert membership is not None
            for _ in range(3):
                await self.cut_others(server.url)
                trusted_until = membership._trust_ends  # noqa: SLF001 -- what each time that it is heard moves
                async with asyncio.timeout(15):
                    while membership._trust_ends <= trusted_until:  # noqa: ASYNC110, SLF001 -- the same
                        await asyncio.sleep(0.05)
            assert membership.trusted
            assert membership.epoch == store.started.epoch

    async def test_no_turn_dies_because_connections_are_cut_all_the_time(
        self, tmp_path: Path, config: Config, server: Address
    ):
        people = [f"person{number}" for number in range(6)]
        platform, said = FakePlatform(), dict.fromkeys(people, 0)
        until = asyncio.get_running_loop().time() + 3

        async def cut() -> None:
            while asyncio.get_running_loop().time() < until:
                await self.cut_others(server.url)
                await asyncio.sleep(0.15)

        async def talk(person: str) -> None:
            # On a slow machine nothing of a person may get through before the cutting ends.
            while not said[person] or asyncio.get_running_loop().time() < until:
                with suppress(StorageUnavailableError):  # whatever else comes out is a failure
                    await platform.says(person, f"{said[person]}", message_id=f"{person} {said[person]}")
                    said[person] += 1

        async with (
            SessionStore.open(tmp_path, config) as store,
            Gateway(store, agent=read_and_write_agent, adapters=[platform]) as gateway,
        ):
            await asyncio.gather(cut(), *map(talk, people))
            async with asyncio.timeout(30):
                await gateway.settled()
            assert await store.dead_letters(limit=10) == []
            heard = [await words_in_transcript(store, platform, person) for person in people]
        assert all(said.values())
        assert heard == [[str(number) for number in range(said[person])] for person in people]

    async def test_a_node_that_nobody_hears_ends_when_its_drain_is_over(
        self, tmp_path: Path, config: Config, server: Address
    ):
        loop, drain = asyncio.get_running_loop(), timedelta(seconds=2)
        place, database = urlsplit(server.url), database_at(server.url)
        way = Proxy(str(place.hostname), place.port or database.port, database.commit)
        working, platform = asyncio.Event(), FakePlatform()

        async def slow(turn: TurnContext) -> str:
            await turn.history()
            working.set()
            await asyncio.sleep(60)
            return "too late"

        async with way.running(), AsyncExitStack() as opened:
            there = SessionDBConfig(provider=server.provider, url=address_through_port(server.url, way.port))
            known = replace(config, sessiondb=there, cluster=BRISK)
            store = await opened.enter_async_context(SessionStore.open(tmp_path, known))
            gateway = await opened.enter_async_context(Gateway(store, agent=slow, adapters=[platform]))
            for person in ("ann", "bob"):
                await platform.says(person, "hello")
            await working.wait()
            way.flows.clear()
            membership = store.db.ownership.membership
            assert membership is not None
            await wait_until(lambda: not membership.trusted, seconds=30)
            began = loop.time()
            await gateway.drain(drain)
            await opened.aclose()
            assert loop.time() - began < drain.total_seconds() + TO_STOP.total_seconds() + LONGEST_CLOSE

    async def test_connections_that_were_cut_are_replaced_before_anybody_notices(
        self, tmp_path: Path, config: Config, server: Address
    ):
        """As when a server was started anew, or a firewall forgets who has said nothing for long."""
        async with SessionStore.open(tmp_path, config) as store:
            await store.db.create_session("s", "cli")
            for number in range(6):
                texts = [f"{number} {one}" for one in "abcdefgh"]
                await asyncio.gather(*(store.db.append_message("s", "user", text) for text in texts))
                await self.cut_others(server.url)
            rows = await store.db.get_messages("s")
        assert [one.seq for one in rows] == list(range(1, 49))
