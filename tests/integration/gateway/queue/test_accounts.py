"""Two accounts of one platform: whoever writes to both has two conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from gateway_sessions import InvalidInputError, SessionStore
from gateway_sessions.core.queue.inbound import Accepted, InboundMessage
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import Gate
from gateway_sessions.testing.contract.queue.accounts import as_before, exchange
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, open_harness, wait_until

pytestmark = pytest.mark.asyncio


class Bots:
    """A gateway with two named accounts of one platform, and one without a name."""

    def __init__(self, harness: GatewayHarness, support: FakePlatform, sales: FakePlatform) -> None:
        self.harness = harness
        self.support = support
        self.sales = sales
        self.plain = harness.platform

    @property
    def gateway(self) -> Gateway:
        return self.harness.gateway

    @property
    def store(self) -> SessionStore:
        return self.harness.store

    def key(self, account: FakePlatform, person: str = "ann", chat: str | None = None) -> str:
        return self.store.key_for(account.source(person, chat=chat))

    async def settle(self) -> None:
        await self.gateway.settled()

    def said_at(self, account: FakePlatform) -> list[str]:
        return [one.text for one in account.sent]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest_asyncio.fixture
async def bots(tmp_path: Path, gate: Gate) -> AsyncGenerator[Bots]:
    clock = FakeClock()
    plain, support, sales = (FakePlatform("telegram", name, clock=clock) for name in ("", "support", "sales"))

    async def agent(turn: TurnContext) -> str:
        if turn.text == "wait":
            await gate.passage()
        said = [row["content"] for row in await turn.history() if row["role"] == "user"]
        return " | ".join(said)

    options = {"platform": plain, "clock": clock, "others": [support, sales], "agent": agent}
    async with open_harness(tmp_path, replace(QUICK, group_sessions_per_user=False), **options) as harness:
        yield Bots(harness, support, sales)


async def test_each_account_has_a_history_of_its_own(bots):
    for account in (bots.plain, bots.support, bots.sales):
        await account.says("ann", f"hello {account.name}".strip())
        await bots.settle()
    for account in (bots.plain, bots.support, bots.sales):
        assert bots.said_at(account) == [f"hello {account.name}".strip()]
    keys = {bots.key(one) for one in (bots.plain, bots.support, bots.sales)}
    assert len({await bots.store.peek_session_id(key) for key in keys}) == 3


async def test_a_room_with_two_accounts_in_it_has_a_session_with_each(bots):
    for account, person in ((bots.support, "ann"), (bots.sales, "bob")):
        await account.says(person, f"{person} here", chat="team")
        await bots.settle()
    assert bots.said_at(bots.support) == ["[Ann] ann here"]
    assert bots.said_at(bots.sales) == ["[Bob] bob here"]


async def test_stop_at_one_account_leaves_the_turn_of_the_other_alone(bots, gate):
    await bots.support.says("ann", "wait")
    await wait_until(lambda: bots.gateway.running_turn(bots.key(bots.support)))
    await bots.sales.says("ann", "/stop")
    await wait_until(lambda: bots.sales.sent)
    assert bots.gateway.running_turn(bots.key(bots.support)) is not None
    assert "nothing to stop" in bots.said_at(bots.sales)[0].lower()
    gate.open()
    await bots.settle()
    assert bots.said_at(bots.support) == ["wait"]


async def test_one_id_of_a_message_at_two_accounts_is_two_messages(bots):
    receipts = [await one.says("ann", "hi", message_id="7") for one in (bots.support, bots.sales)]
    again = await bots.sales.redelivers("7")
    assert all(isinstance(one, Accepted) for one in receipts)
    assert again.seq == 1
    await bots.settle()
    assert (bots.said_at(bots.support), bots.said_at(bots.sales)) == (["hi"], ["hi"])


async def test_titles_and_what_a_person_sees_are_the_account_s(bots):
    for account in (bots.support, bots.sales):
        await account.says("ann", "plans")
        await bots.settle()
        await account.says("ann", "/title Trip")
        await bots.settle()
    here = await bots.store.scope_of(bots.support.source("ann"))
    (mine,) = await bots.store.db.list_sessions_rich(scope=here)
    assert (mine.session_id, mine.title) == (await bots.store.peek_session_id(bots.key(bots.support)), "Trip")
    found = await bots.store.db.search_messages("plans", scope=here)
    assert {one.session_id for one in found.hits} == {mine.session_id}
    there = await bots.store.peek_session_id(bots.key(bots.sales))
    await bots.support.says("ann", f"/resume {there}")
    await bots.settle()
    assert await bots.store.peek_session_id(bots.key(bots.support)) == mine.session_id


async def test_a_program_asks_at_the_account_that_its_source_names(bots):
    await bots.support.says("ann", "hello")
    await bots.settle()
    before = await bots.store.peek_session_id(bots.key(bots.support))
    await bots.gateway.command(bots.support.source("ann"), "/new")
    assert await bots.store.peek_session_id(bots.key(bots.support)) != before
    with pytest.raises(InvalidInputError, match="account"):
        await bots.gateway.submit(
            InboundMessage(source=bots.support.source("ann"), text="x", account="sales")
        )


async def test_the_lanes_of_an_account_go_on_after_a_restart(tmp_path):
    seen: list[int] = []

    async def agent(turn: TurnContext) -> str:
        seen.append(len(await turn.history()))
        return "well"

    for _ in range(2):
        platform = FakePlatform("telegram", "support", clock=(clock := FakeClock()))
        async with open_harness(tmp_path, platform=platform, clock=clock, agent=agent) as harness:
            await platform.says("ann", "hello", message_id=f"m{len(seen)}")
            await harness.wait_until_idle()
    assert seen == [1, 3]


async def test_a_gateway_of_several_profiles_keeps_them_apart(tmp_path):
    async with SessionStore.open(tmp_path, replace(QUICK, multiplex_profiles=True)) as store:
        plain = FakePlatform("telegram").source("ann")
        work = replace(plain, profile="work")
        entries = [await store.get_or_create_session(one) for one in (plain, work, plain)]
        assert [one.session_key for one in entries[:2]] == [
            "agent:main:telegram:dm:ann",
            "agent:work:telegram:dm:ann",
        ]
        assert entries[0].session_id == entries[2].session_id != entries[1].session_id
        assert [one.owner for one in entries[:2]] == ["main:telegram:user:ann", "work:telegram:user:ann"]


async def test_a_store_of_before_goes_on_with_the_accounts_that_used_it(tmp_path):
    """Two bots shared the session of whoever wrote to both; the one that was told something last keeps it."""
    clock = FakeClock()
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store:
        ann = FakePlatform("telegram").source("ann")
        for account in ("sales", "support"):
            await exchange(store, as_before(f"to {account}", account, source=ann))
            await clock.advance(seconds=1)
        await exchange(store, as_before("only sales", "sales", source=FakePlatform("telegram").source("bob")))
    support, sales = (FakePlatform("telegram", name, clock=clock) for name in ("support", "sales"))

    async def agent(turn: TurnContext) -> str:
        return " | ".join(row["content"] for row in await turn.history() if row["role"] == "user")

    async with open_harness(tmp_path, platform=support, clock=clock, others=[sales], agent=agent) as harness:
        for platform, person in ((support, "ann"), (sales, "ann"), (sales, "bob")):
            await platform.says(person, "and now?")
            await harness.gateway.settled()
        assert [one.action for one in harness.store.incidents] == ["shared_lane_split"]
    assert support.sent[-1].text == "to sales | to support | and now?"
    told = [one.text for one in sales.sent]
    assert "goes on somewhere else" in told[-3]
    assert told[-2:] == ["and now?", "only sales | and now?"]
