"""What a turn reads does not grow with what waits behind it on its lane."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

import pytest
from msgspec.structs import replace

from gateway_sessions import Config
from gateway_sessions.core.identity.keys import Isolation, session_key
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import EPOCH, to_micros
from gateway_sessions.core.queue.busy_modes import BusyRules, DropPolicy
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, encode_message
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.tables.lanes import LaneRow, load_lane, place_of_seq, put_lane
from gateway_sessions.storage.transactions.queue import admit, claim, edits, running_turn
from gateway_sessions.storage.transactions.queue.admit import Admission, Admitted
from gateway_sessions.storage.transactions.queue.claim import ClaimedTurn, TurnStarter
from gateway_sessions.storage.transactions.queue.running_turn import KnownBeforeEnd, TurnSettlement
from gateway_sessions.storage.transactions.sessions import find_or_create
from gateway_sessions.storage.transactions.upkeep import consistency

T = TypeVar("T")

FEW: Final = 12
MANY: Final = 1500
MERGED: Final = 3
"""Every so many messages one is part of the turn before it."""
NOW: Final = EPOCH + timedelta(days=1)
BOOK: Final = Config(timezone="UTC").policy_book("UTC")
FLAGS: Final = Isolation()
NOTHING_MERGED: Final = timedelta(0)
SAID: Final = (Message("assistant", "yes"),)


class Bench(ABC):
    """A connection to a database of an engine, and how much is read over it."""

    def __init__(self) -> None:
        self.ids = itertools.count(1)
        self.names = itertools.count(1)

    @abstractmethod
    async def run(self, transaction: Transaction[T]) -> T:
        """Run a transaction to its end."""

    @abstractmethod
    async def read_so_far(self) -> int:
        """How much has been read of the inbox until now, in rows or in steps."""

    @abstractmethod
    async def analyze_tables(self) -> None:
        """Let the planner know what is in the inbox."""

    async def measure_reads(self, transaction: Transaction[T]) -> tuple[T, int]:
        """Run a transaction; what came of it, and how much of the inbox it has read."""
        before = await self.read_so_far()
        result = await self.run(transaction)
        return result, await self.read_so_far() - before

    @property
    def change(self) -> Change:
        """What every change brings along."""
        return Change(
            now=NOW, ids=self.ids, entry_ids=self.ids, actor=Actor.PERSON, policies=BOOK, freshness=None
        )

    @property
    def starter(self) -> TurnStarter:
        """Who begins turns."""
        return TurnStarter(epoch=1, new_session_id=f"n{next(self.names)}", flags=FLAGS)


class Lane:
    """A lane on which so much waits, in turns of one message and of two."""

    def __init__(self, bench: Bench, name: str, waiting: int) -> None:
        self._bench = bench
        self._waiting = waiting
        self.source = SessionSource(platform="telegram", chat_id=name, user_id="alice")
        self.key = session_key(self.source, FLAGS, {})

    async def fill(self) -> None:
        """Let it come to that."""
        await self._bench.run(self.admitting("first", solo=True))
        await self._bench.run(self._filling())

    def message(self, text: str) -> InboundMessage:
        """Something that is said on it."""
        return InboundMessage(source=self.source, text=text, message_id=f"{self.key} {text}")

    def admitting(self, text: str, **how: Any) -> Transaction[Any]:
        """One more message comes."""
        message = self.message(text)
        rules = how.pop("rules", BusyRules(max_queued=10 * MANY, debounce=NOTHING_MERGED))
        admission = Admission(message=message, payload=encode_message(message), rules=rules, **how)
        request = find_or_create.SessionRequest(
            source=self.source, key=self.key, flags=FLAGS, new_session_id=f"s{next(self._bench.names)}"
        )
        return admit.admit(admission, request, self._bench.change)

    def claiming(self) -> Transaction[ClaimedTurn | None]:
        """Its next turn begins."""
        return claim.claim(self._bench.starter, self.key, self._bench.change)

    def _filling(self) -> Transaction[None]:
        lane = yield from load_lane(self.key)
        rows: list[Sequence[object]] = []
        for seq in range(lane.next_seq, self._waiting + 1):
            into, parts = (seq - 1, 1) if seq % MERGED == 0 else (None, 1 + ((seq + 1) % MERGED == 0))
            rows.append(self.row(seq, into, parts))
            lane.waiting += into is None
        yield Statement("add_item", many=rows)
        lane.next_seq = self._waiting + 1
        yield from put_lane(lane)

    def row(
        self, seq: int, into: int | None = None, parts: int = 1, outcome: str | None = None
    ) -> Sequence[object]:
        """A message on it as it is stored."""
        message, now, owner = self.message(str(seq)), to_micros(NOW), "main:telegram:person:alice"
        what = (next(self._bench.ids), self.key, seq, place_of_seq(seq), message.idempotency_key, owner)
        how = (message.sender, "message", 0, 0, into, parts, len(message.text), now, now, now, None)
        if outcome is None:
            return (*what, *how, encode_message(message), None, None, None)
        return (*what, *how, None, outcome, now, "turn")


Deed: TypeAlias = Callable[[Bench, Lane], Awaitable[int]]
"""Does something on a lane; how much that has read."""


async def a_turn(bench: Bench, lane: Lane) -> int:
    """A message comes, the next turn begins and writes, and the one behind it begins as it ends."""
    _, admitted = await bench.measure_reads(lane.admitting("one more"))
    claimed, began = await bench.measure_reads(lane.claiming())
    assert claimed is not None
    appended = (await bench.measure_reads(running_turn.append_messages(claimed.held, SAID, bench.change)))[1]
    settlement = TurnSettlement(held=claimed.held, outcome=Outcome.TURNED, messages=SAID)
    known = KnownBeforeEnd(starter=bench.starter)
    settled, ended = await bench.measure_reads(running_turn.end_turn(settlement, bench.change, known))
    assert settled.next is not None
    settlement = TurnSettlement(held=settled.next.held, outcome=Outcome.TURNED, messages=SAID)
    settled, paused = await bench.measure_reads(running_turn.end_turn(settlement, bench.change))
    assert settled.next is None
    return admitted + began + appended + ended + paused


async def a_turn_of_two(bench: Bench, lane: Lane) -> int:
    """A turn that is about two messages."""
    first = await _claimed(bench, lane)
    settlement = TurnSettlement(held=first.held, outcome=Outcome.TURNED, messages=SAID, begun=first)
    settled, one = await bench.measure_reads(
        running_turn.end_turn(settlement, bench.change, KnownBeforeEnd(starter=bench.starter))
    )
    assert settled.next is not None
    assert [item.seq for item in settled.next.items] == [2, 3]
    settlement = TurnSettlement(
        held=settled.next.held, outcome=Outcome.TURNED, messages=SAID, begun=settled.next
    )
    _, two = await bench.measure_reads(running_turn.end_turn(settlement, bench.change))
    return one + two


async def a_turn_that_is_tried_again(bench: Bench, lane: Lane) -> int:
    """It waits again in its place, and is the next one."""
    claimed = await _claimed(bench, lane)
    _, cost = await bench.measure_reads(
        running_turn.give_back_turn(claimed.held, None, bench.change, counted=True)
    )
    again = await _claimed(bench, lane)
    assert again.attempt == 2
    assert again.items == claimed.items
    return cost


async def a_turn_that_is_given_up(bench: Bench, lane: Lane) -> int:
    """It failed for good, and what was said into it waits."""
    claimed = await _claimed(bench, lane)
    await _steer(bench, lane, claimed)
    settlement = TurnSettlement(held=claimed.held, outcome=Outcome.DEAD, problem="no luck")
    settled, cost = await bench.measure_reads(running_turn.end_turn(settlement, bench.change))
    assert settled.waiting == claimed.waiting + 1
    return cost


async def a_message_for_the_running_turn(bench: Bench, lane: Lane) -> int:
    """It joins the turn that runs."""
    return await _steer(bench, lane, await _claimed(bench, lane))


async def a_message_that_takes_the_place_of_another(bench: Bench, lane: Lane) -> int:
    """There is no room: the turn that waits longest goes."""
    rules = BusyRules(max_queued=1, debounce=NOTHING_MERGED, drop=DropPolicy.DROP_OLDEST)
    admitted, cost = await bench.measure_reads(lane.admitting("no room", rules=rules))
    assert admitted.receipt.dropped == (2, 3)  # the first was asked for explicitly
    return cost


async def a_turn_that_cannot_be_read(bench: Bench, lane: Lane) -> int:
    """It is put aside, and the next one begins."""
    await bench.run(_damaged_head(lane))
    claimed, cost = await bench.measure_reads(lane.claiming())
    assert claimed is not None
    assert [item.seq for item in claimed.items] == [2, 3]
    return cost


async def a_reworded_message(bench: Bench, lane: Lane) -> int:
    """Whoever said it last says it otherwise."""
    admitted = await bench.run(lane.admitting("one more"))
    said = replace(lane.message("one more"), text="one other", kind=MessageKind.EDIT)
    found, cost = await bench.measure_reads(edits.reapply_edit(said, lane.key, "person", bench.change))
    assert found is not None
    assert found.seq == admitted.receipt.seq
    return cost


DEEDS: Final[Sequence[Deed]] = (
    a_turn,
    a_turn_of_two,
    a_turn_that_is_tried_again,
    a_turn_that_is_given_up,
    a_message_for_the_running_turn,
    a_message_that_takes_the_place_of_another,
    a_turn_that_cannot_be_read,
    a_reworded_message,
)


def _damaged_head(lane: Lane) -> Transaction[None]:
    (item,) = yield Statement("kept_event", (lane.message("first").idempotency_key,))
    yield Statement("set_payload", ("{", item[0]))


async def _claimed(bench: Bench, lane: Lane) -> ClaimedTurn:
    claimed = await bench.run(lane.claiming())
    assert claimed is not None
    return claimed


async def _steer(bench: Bench, lane: Lane, claimed: ClaimedTurn) -> int:
    """Let the running turn have a message that has just come; what that reads."""
    admitted = await bench.run(lane.admitting("mind this"))
    assert isinstance(admitted, Admitted)
    steered, cost = await bench.measure_reads(
        running_turn.steer_message(claimed.held, admitted.receipt.seq, bench.change)
    )
    assert steered is not None
    return cost


class LongQueues:
    """A test class of an engine inherits this; its `bench` has a database with nothing in it."""

    @pytest.mark.parametrize("studied", [False, True])
    @pytest.mark.parametrize("deed", DEEDS)
    async def test_no_turn_reads_more_the_more_waits_behind_it(self, bench: Bench, deed: Deed, studied: bool):
        lanes = [Lane(bench, "first", FEW), Lane(bench, "short", FEW), Lane(bench, "long", MANY)]
        for lane in lanes:
            await lane.fill()
        await bench.run(_settled(Lane(bench, "of old", 0)))
        if studied:
            await bench.analyze_tables()
        # The first one is there for what a server has to read once only.
        _, few, many = [await deed(bench, lane) for lane in lanes]
        # Servers keep versions of rows that nobody needs any more, and pass by some of them.
        assert 0 < many <= 2 * few
        assert await bench.run(consistency.find_all()) == []


def _settled(lane: Lane) -> Transaction[None]:
    yield Statement("add_item", many=[lane.row(seq, outcome="turned") for seq in range(1, MANY)])
    yield from put_lane(LaneRow(session_key=lane.key, next_seq=MANY))
