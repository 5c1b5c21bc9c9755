"""One node: when it trusts itself, and how it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gateway_sessions.core.cluster import ClusterRules, Node
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.storage.engines.membership import Membership, ServerClock
from gateway_sessions.storage.tables.meta import StoreOpening
from gateway_sessions.storage.tables.nodes import HeartbeatAnswer, JoinedNode

RULES = ClusterRules(heartbeat=timedelta(seconds=1), ttl=timedelta(seconds=4))


class Others:
    """A database that says what a test wants."""

    def __init__(self) -> None:
        self.trusted: Callable[[], bool] = lambda: True
        self.on_call: Any = None
        self.silent = asyncio.Event()
        """Set when the node was told to stop all its work."""
        self.epoch = 0
        self.alive = True
        self.away = False
        self.was: list[int | None] = []
        self.on_entering: Callable[[], object] = lambda: None
        """Called while a node waits to come in."""
        self.more: list[int] = []
        """Other nodes that live."""

    def _there(self) -> None:
        if self.away:
            raise StorageUnavailableError("the database", "is away")

    async def run_before_joining(self, transaction: Any) -> JoinedNode:
        self._there()
        self.on_entering()
        self.was.append(transaction.args[2])
        self.epoch += 1
        self.alive = True
        opening = StoreOpening(self.epoch, last_change_id=0, install_secret=b"", generation=0, settled=False)
        return JoinedNode(opening=opening, slot=0, first_id=1, now=1, nodes=self.nodes())

    async def run_heartbeat(self, transaction: Any) -> HeartbeatAnswer:
        del transaction
        self._there()
        return HeartbeatAnswer(self.alive, 1, self.nodes())

    async def notify_nodes(self, epochs: frozenset[int]) -> None: ...

    def act_as_node(self, epoch: int, first_id: int, **more: Any) -> None: ...

    def nodes(self) -> tuple[Node, ...]:
        return tuple(
            Node(epoch=one, slot=0, name="a", version="", first_id=1, silent=False)
            for one in (self.epoch, *self.more)
        )


class At:
    """The loop's time, as a test likes it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("gateway_sessions.storage.engines.membership._now", lambda: self.now)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    return At(monkeypatch)


@pytest.fixture
def others() -> Others:
    return Others()


@pytest.fixture
async def node(others: Others, at: At) -> Membership:
    del at
    made = Membership(others, RULES, name="a", on_joined=print, on_silent=others.silent.set)  # type: ignore[arg-type] -- as much of it as is needed
    await made.join(b"")
    return made


async def test_a_node_trusts_itself_for_three_quarters_of_its_time(node: Membership, at: At, others: Others):
    assert node.trusted
    assert others.trusted()
    at.now += 2.9
    assert node.trusted
    at.now += 0.2
    assert not node.trusted
    assert not node.leads
    assert not others.trusted()


async def test_who_waited_long_to_come_in_is_trusted_all_the_same(others: Others, at: At):
    def wait() -> None:
        at.now += RULES.ttl.total_seconds()

    others.on_entering = wait
    node = Membership(others, RULES, name="a", on_joined=print, on_silent=print)  # type: ignore[arg-type] -- as much of it as is needed
    await node.join(b"")
    assert (node.trusted, node.epoch) == (True, 1)


async def test_each_time_it_is_heard_counts_from_when_it_spoke(node: Membership, at: At):
    at.now += 2
    assert await node.send_heartbeat_or_rejoin(b"")
    at.now += 2.9
    assert node.trusted
    at.now += 0.2
    assert not node.trusted


async def test_while_the_database_is_away_nothing_is_gained(node: Membership, at: At, others: Others):
    others.away = True
    at.now += 2
    assert not await node.send_heartbeat_or_rejoin(b"")
    at.now += 1.1
    assert not node.trusted
    assert node.epoch == 1


async def test_who_was_declared_dead_comes_back_as_another_one(node: Membership, others: Others):
    others.alive = False
    assert await node.send_heartbeat_or_rejoin(b"")
    assert others.silent.is_set()
    assert (node.epoch, node.trusted) == (2, True)
    assert others.was == [None, 1]
    assert node.lost == {1}


async def test_who_was_silent_too_long_comes_back_as_another_one_even_if_nobody_noticed(
    node: Membership, at: At, others: Others
):
    watching = asyncio.create_task(node._watch_trust())  # noqa: SLF001 -- without the heartbeats
    at.now += 3.5
    await asyncio.wait_for(others.silent.wait(), 5)
    watching.cancel()
    assert await node.send_heartbeat_or_rejoin(b"")
    assert (node.epoch, node.trusted) == (2, True)


def test_the_clock_of_the_server_is_at_least_what_the_best_reading_says():
    clock = ServerClock()
    assert clock.least_micros(5.0) == 0
    clock.add_reading(1_000_000, at=1.3)  # it took 0.3 s to be heard
    clock.add_reading(2_000_000, at=2.1)
    clock.add_reading(3_000_000, at=3.2)
    assert clock.least_micros(4.1) == pytest.approx(4_000_000, abs=2)


async def test_nobody_is_missed_who_came_and_went(node: Membership, others: Others):
    others.more = [7]
    await node.send_heartbeat_or_rejoin(b"")
    others.more = [8]
    await node.send_heartbeat_or_rejoin(b"")
    others.more = []
    await node.send_heartbeat_or_rejoin(b"")
    assert node.lost == {7, 8}
