"""Many connections do the same thing at once, and it comes out as if one had done it after the other."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from gateway_sessions import Config, Scope
from gateway_sessions.core.identity.keys import Isolation, session_key
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import Duplicate, InboundMessage, encode_message
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.errors import FencedError, NodeSilentError, SessionEndedError, TitleTakenError
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.engines.server.driver import ServerConnection, ServerDriver
from gateway_sessions.storage.tables import meta, nodes
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.transactions.queue import admit, claim, running_turn
from gateway_sessions.storage.transactions.queue.admit import Admission, Admitted
from gateway_sessions.storage.transactions.queue.claim import ClaimedTurn, TurnStarter
from gateway_sessions.storage.transactions.queue.running_turn import TurnSettlement
from gateway_sessions.storage.transactions.sessions import find_or_create, session_rows, split, titles
from gateway_sessions.storage.transactions.sessions.session_rows import NewSession
from gateway_sessions.storage.transactions.sessions.split import Descent
from gateway_sessions.storage.transactions.transcripts import messages

T = TypeVar("T")

MANY = 24
ALICE = SessionSource(platform="telegram", chat_id="1", user_id="alice")
FLAGS = Isolation()
LANE = session_key(ALICE, FLAGS, {})
RULES = BusyRules(max_queued=MANY * 2)
BOOK = Config(timezone="UTC").policy_book("UTC")
names = itertools.count()
entry_ids = itertools.count(1)


def change_of(driver: ServerDriver) -> Change:
    return Change(
        now=EPOCH, ids=driver.ids, entry_ids=entry_ids, actor=Actor.PERSON, policies=BOOK, freshness=None
    )


def make_turn_starter() -> TurnStarter:
    return TurnStarter(epoch=1, new_session_id=f"n{next(names)}", flags=FLAGS)


def admit_message(text: str, driver: ServerDriver) -> Transaction[Any]:
    message = InboundMessage(source=ALICE, text=text, message_id=text)
    admission = Admission(message=message, payload=encode_message(message), rules=RULES, solo=True)
    request = find_or_create.SessionRequest(
        source=ALICE, key=LANE, flags=FLAGS, new_session_id=f"s{next(names)}"
    )
    return admit.admit(admission, request, change_of(driver))


def claim_lane(driver: ServerDriver) -> Transaction[ClaimedTurn | None]:
    return claim.claim(make_turn_starter(), LANE, change_of(driver))


def create_session(driver: ServerDriver, session_id: str) -> Transaction[str]:
    new = NewSession(session_id=session_id, source="cli", started_at=EPOCH)
    return session_rows.create_session(new, driver.ids)


async def run_at_once(
    drivers: Sequence[ServerDriver],
    transaction: Callable[[ServerDriver, int], Transaction[T]],
    many: int = MANY,
) -> list[T | BaseException]:
    """Each on another connection than the one before."""
    turns_of = itertools.cycle(drivers)
    asked = ((next(turns_of), number) for number in range(many))
    writes = [driver.write(partial(transaction, driver, number)) for driver, number in asked]
    return await asyncio.gather(*writes, return_exceptions=True)


async def join_as_node(driver: ServerDriver) -> int:
    """Let a driver be a node."""
    who = nodes.NodeToJoin(name="one", version="1", ttl=timedelta(seconds=60), replaces=True)
    driver.epoch = (await driver.write(lambda: nodes.join_node(b"secret", who))).opening.epoch
    return driver.epoch


def holding_lock(
    driver: ServerDriver, lock: str | None, epoch: int | None
) -> AbstractAsyncContextManager[ServerConnection]:
    """A transaction that goes on until the end of the block."""
    return driver._transaction(lambda link: link.begin_writing(lock, epoch))  # noqa: SLF001 -- to hold it up


class ConcurrentTransactions:
    """A test class of an engine inherits this; its `drivers` are of several processes, on one database."""

    async def test_a_new_lane_counts_without_gaps(self, drivers: list[ServerDriver]):
        admitted = await run_at_once(drivers, lambda driver, number: admit_message(str(number), driver))
        assert all(isinstance(one, Admitted) for one in admitted), admitted
        assert sorted(one.receipt.seq for one in admitted) == list(range(1, MANY + 1))
        assert len({one.receipt.session_id for one in admitted}) == 1
        assert max(one.receipt.depth for one in admitted) == MANY

    async def test_one_delivery_of_a_message_counts(self, drivers: list[ServerDriver]):
        admitted = await run_at_once(drivers, lambda driver, _: admit_message("the same", driver))
        assert sum(isinstance(one, Admitted) for one in admitted) == 1
        assert sum(one == Duplicate(seq=1, session_key=LANE) for one in admitted) == MANY - 1

    async def test_one_claim_of_a_lane_wins(self, drivers: list[ServerDriver]):
        await drivers[0].write(lambda: admit_message("hello", drivers[0]))
        claimed = await run_at_once(drivers, lambda driver, _: claim_lane(driver))
        assert [one.held.token for one in claimed if isinstance(one, ClaimedTurn)] == [1]
        assert sum(one is None for one in claimed) == MANY - 1

    async def test_turns_end_while_messages_come(self, drivers: list[ServerDriver]):
        """The two that meet on every lane: neither waits for ever, and nothing is counted wrong."""
        first, *others = drivers
        ended: list[int] = []

        async def answer_all() -> None:
            while len(ended) < MANY:
                claimed = await first.write(lambda: claim_lane(first))
                if claimed is None:
                    await asyncio.sleep(0.001)
                    continue
                said = [Message("assistant", "yes")]
                settlement = TurnSettlement(held=claimed.held, outcome=Outcome.TURNED, messages=said)
                await first.write(partial(running_turn.end_turn, settlement, change_of(first)))
                ended.append(claimed.items[0].seq)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(answer_all())
            admitted = await run_at_once(others, lambda driver, number: admit_message(str(number), driver))
        assert ended == list(range(1, MANY + 1))
        assert all(isinstance(one, Admitted) for one in admitted), admitted
        session_id = admitted[0].receipt.session_id
        said = await first.read(lambda: messages.load_page(session_id, messages.MessagePage(after_seq=0)))
        assert [one.seq for one in said] == list(range(1, 2 * MANY + 1))

    async def test_a_turn_that_was_ended_elsewhere_ends_once(self, drivers: list[ServerDriver]):
        await drivers[0].write(lambda: admit_message("hello", drivers[0]))
        claimed = await drivers[0].write(lambda: claim_lane(drivers[0]))
        assert claimed is not None
        settlement = TurnSettlement(
            held=claimed.held, outcome=Outcome.TURNED, messages=[Message("assistant", "yes")]
        )
        ended = await run_at_once(
            drivers, lambda driver, _: running_turn.end_turn(settlement, change_of(driver))
        )
        assert sum(isinstance(one, FencedError) for one in ended) == MANY - 1

    async def test_a_session_counts_without_gaps(self, drivers: list[ServerDriver]):
        await drivers[0].write(lambda: create_session(drivers[0], "s"))
        appended = await run_at_once(
            drivers,
            lambda driver, number: messages.append_messages(
                "s", [Message("user", str(number))], EPOCH, driver.ids
            ),
        )
        assert not [one for one in appended if isinstance(one, BaseException)]
        said = await drivers[0].read(lambda: messages.load_page("s", messages.MessagePage(after_seq=0)))
        assert [one.seq for one in said] == list(range(1, MANY + 1))
        assert sorted(one.text for one in said) == sorted(map(str, range(MANY)))

    async def test_a_session_has_one_continuation(self, drivers: list[ServerDriver]):
        await drivers[0].write(lambda: create_session(drivers[0], "s"))

        def splitting_it(driver: ServerDriver, number: int) -> Transaction[str]:
            descent = Descent(session_id="s", new_session_id=f"c{number}", now=EPOCH, ids=driver.ids)
            return split.continue_in_new_session(descent, [Message("system", "a summary")])

        children = await run_at_once(drivers, splitting_it)
        assert len(set(children)) == 1
        assert not isinstance(children[0], SessionEndedError)

    async def test_a_title_has_one_session(self, drivers: list[ServerDriver]):
        for number in range(MANY):
            await drivers[0].write(lambda number=number: create_session(drivers[0], f"s{number}"))
        scope = Scope.operator()
        claimed = await run_at_once(drivers, lambda _, number: titles.set_title(f"s{number}", "Trip", scope))
        assert sum(one is True for one in claimed) == 1
        assert sum(isinstance(one, TitleTakenError) for one in claimed) == MANY - 1

    async def test_what_names_no_lock_runs_alone(self, drivers: list[ServerDriver]):
        def count() -> Transaction[None]:
            before = yield from meta.get_number("counted")
            yield from meta.set_fact("counted", before + 1)

        await run_at_once(drivers, lambda _driver, _number: count())
        assert await drivers[0].read(lambda: meta.get_number("counted")) == MANY

    async def test_what_was_asked_for_first_is_done_first(self, drivers: list[ServerDriver]):
        driver = drivers[0]
        admitted = await asyncio.gather(
            *(driver.write(partial(admit_message, str(number), driver)) for number in range(MANY))
        )
        assert [one.receipt.seq for one in admitted] == list(range(1, MANY + 1))

    async def test_what_a_node_had_begun_is_waited_for_before_it_is_declared_dead(
        self, drivers: list[ServerDriver]
    ):
        one, other = drivers[:2]
        epoch = await join_as_node(one)
        async with holding_lock(one, "lane a", epoch) as link:
            burying = asyncio.create_task(other.write(lambda: nodes.remove_node(epoch)))
            await asyncio.sleep(0.3)
            assert not burying.done()
            await link.commit()
        await burying

    async def test_what_a_node_begins_while_it_is_declared_dead_is_refused(self, drivers: list[ServerDriver]):
        one, other = drivers[:2]
        epoch = await join_as_node(one)
        async with holding_lock(other, None, None) as link:
            await link.change(f"DELETE FROM nodes WHERE epoch = {epoch}", [()])  # noqa: S608 -- a number
            late = [
                asyncio.create_task(one.write(partial(admit_message, "late", one))),
                asyncio.create_task(one.write(lambda: meta.set_fact("late", 1))),
            ]
            await asyncio.sleep(0.3)
            assert not any(task.done() for task in late)
            await link.commit()
        for task in late:
            with pytest.raises(NodeSilentError, match="others have its turns"):
                await task
        assert await other.read(lambda: meta.get_fact("late")) is None
