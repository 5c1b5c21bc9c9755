"""Sessions that a gateway answers get a title after their first exchange, whoever has run the turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.sessions import FirstExchange
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.agents import ScriptedAgent, answers, fails
from tests.integration.gateway.gateway_harness import QUICK, wait_until

pytestmark = pytest.mark.asyncio

LISBON = "plan a long weekend in Lisbon"


class Asked:
    """A titler that notes what it is asked."""

    def __init__(self) -> None:
        self.exchanges: list[FirstExchange] = []

    async def __call__(self, exchange: FirstExchange) -> str:
        self.exchanges.append(exchange)
        return f"Title {len(self.exchanges)}"


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
async def store(tmp_path: Path, asked: Asked) -> AsyncGenerator[SessionStore]:
    async with SessionStore.open(tmp_path, QUICK, clock=FakeClock(), titler=asked) as opened:
        yield opened


async def title_of(store: SessionStore, session_id: str) -> str | None:
    return await store.db.get_session_title(session_id)


@pytest.mark.parametrize("warm", [False, True], ids=["a shared function", "an agent of each session"])
async def test_a_gateway_s_first_exchange_gives_the_session_a_title_once(store, asked, warm):
    agent = {"agent_factory": lambda _entry, _history: ScriptedAgent()} if warm else {"agent": plan}
    platform = FakePlatform(clock=store.clock)
    async with Gateway(store, adapters=[platform], **agent):
        for text in (LISBON, "and with two kids", "thanks"):
            await platform.says("ann", text)
            await platform.wait_until_idle()
        session_id = await store.peek_session_id(store.key_for(platform.source("ann")))
        await wait_until(lambda: asked.exchanges)
    assert await title_of(store, session_id) == "Title 1"
    assert [(one.session_id, one.messages) for one in asked.exchanges] == [(session_id, (LISBON,))]


async def test_a_title_that_a_person_gave_before_stays(store, asked):
    platform = FakePlatform(clock=store.clock)
    entry = await store.get_or_create_session(platform.source("ann"))
    async with Gateway(store, adapters=[platform], agent=plan):
        for text in ("/title Mine", LISBON, "thanks"):
            await platform.says("ann", text)
            await platform.wait_until_idle()
    assert await title_of(store, entry.session_id) == "Mine"
    assert asked.exchanges == []


async def test_a_turn_that_failed_has_no_exchange_and_a_later_one_gives_the_title(store, asked):
    platform = FakePlatform(clock=store.clock)
    agent = ScriptedAgent([fails(ValueError("a bug"))], [answers("Gladly.")])
    async with Gateway(store, adapters=[platform], agent=agent):
        await platform.says("ann", LISBON)
        await platform.wait_until_idle()
        assert asked.exchanges == []
        await platform.says("ann", LISBON)
        await platform.wait_until_idle()
        await wait_until(lambda: asked.exchanges)


async def test_a_program_that_claims_turns_itself_need_not_ask_for_a_title(store, asked):
    source = FakePlatform().source("ann")
    await store.enqueue(InboundMessage(source=source, text=LISBON))
    turn = await store.claim()
    assert turn is not None
    await turn.commit([{"role": "assistant", "content": "Gladly."}])
    await wait_until(lambda: asked.exchanges)
    (exchange,) = asked.exchanges
    assert (exchange.session_id, exchange.answer) == (turn.entry.session_id, "Gladly.")


async def plan(_: object) -> str:
    return "Gladly."
