"""Contract tests of named accounts and of lanes from before they had their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from msgspec.structs import force_setattr

from gateway_sessions import (
    Accepted,
    Duplicate,
    EndReason,
    InboundMessage,
    Scope,
    SessionSource,
    SessionStore,
)
from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.operator import LanesReport
from gateway_sessions.queue import Owed, ScheduleKind, TurnTask
from gateway_sessions.sessions import Isolation
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    ALICE,
    APART,
    BOB,
    LANE,
    OTHER_LANE,
    OpenStore,
    StoreContract,
    accept,
    begin,
    fates,
    reply,
    said,
    talk_of,
)
from gateway_sessions.testing.contract.queue.schedules import named, save, schedule
from gateway_sessions.testing.inside import (
    LaneChoice,
    give_lanes,
    key_at_account,
    outbox,
    queue_of,
    schedules,
    session_owner,
)

SUPPORT: Final = replace(ALICE, account="support")
SALES: Final = replace(ALICE, account="sales")
AT_SUPPORT, AT_SALES = key_at_account(LANE, "support"), key_at_account(LANE, "sales")
BOTH: Final = (("telegram", "support"), ("telegram", "sales"))


def as_before(text: str, account: str, *, source: SessionSource = ALICE) -> InboundMessage:
    """Accept a message as version 0.1 did: without its account in the source, and so in the session key."""
    message = said(text, source=source, message_id=f"{text} {account}")
    force_setattr(message, "account", account)
    return message


async def exchange(store: SessionStore, message: InboundMessage, *, answered: bool = True) -> None:
    """Accept a message and answer it."""
    receipt = await store.enqueue(message, rules=APART)
    assert isinstance(receipt, Accepted), receipt
    if answered:
        async with await begin(store, receipt.session_key) as turn:
            target = ReplyTarget.answering(turn.messages[0])
            owed = Owed(target=target, message=OutboundMessage(text="well"), owner=turn.entry.owner)
            await turn.commit([reply("well")], replies=[owed])


async def adopt(store: SessionStore, serving: Iterable[tuple[str, str]] = BOTH) -> None:
    """Do what a gateway with these accounts does at its start."""
    await store.adopt_lanes(list(serving))


async def session_at(store: SessionStore, source: SessionSource) -> str:
    """Return the session that a message from there goes on with, or begins."""
    return (await store.get_or_create_session(source)).session_id


class AccountsContract(StoreContract):
    """Tests which lanes a named account has."""

    async def test_each_account_has_lanes_and_owners_of_its_own(self, store: SessionStore) -> None:
        receipts = [await accept(store, "one", source=source) for source in (ALICE, SUPPORT, SALES)]
        assert [one.session_key for one in receipts] == [LANE, AT_SUPPORT, AT_SALES]
        assert len({one.session_id for one in receipts}) == 3
        scopes = [await store.scope_of(source) for source in (ALICE, SUPPORT, SALES)]
        for scope, receipt in zip(scopes, receipts, strict=True):
            (mine,) = await store.list_sessions(scope=scope)
            assert mine.session_id == receipt.session_id
            assert mine.owner == session_owner(mine.origin or ALICE, Isolation())

    async def test_a_lane_that_one_account_used_goes_on_with_it(self, store: SessionStore) -> None:
        await exchange(store, as_before("hello", "support"))
        session_id = await store.peek_session_id(LANE)
        assert session_id is not None
        await store.db.set_session_title(session_id, "Trip")
        await adopt(store)
        assert await store.get_session(LANE) is None
        assert await session_at(store, SUPPORT) == session_id
        assert await talk_of(store, session_id) == [("user", "hello"), ("assistant", "well")]
        scope = await store.scope_of(SUPPORT)
        (mine,) = await store.db.list_sessions_rich(scope=scope)
        assert (mine.session_id, mine.title) == (session_id, "Trip")
        await store.db.catch_up_search_index()
        assert [one.session_id for one in (await store.db.search_messages("hello", scope=scope)).hits] == [
            session_id
        ]
        assert not (await store.db.search_messages("hello", scope=await store.scope_of(ALICE))).hits
        theirs = [one async for one in store.export_person(SUPPORT)]
        assert "hello" in str(theirs)
        assert "hello" not in str([one async for one in store.export_person(ALICE)])

    async def test_what_waits_and_what_is_owed_goes_along(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await exchange(store, as_before("one", "support"))
        await exchange(store, as_before("two", "support"), answered=False)
        await adopt(store)
        again = as_before("two", "support")
        force_setattr(again, "source", SUPPORT)
        assert await store.enqueue(again) == Duplicate(seq=2, session_key=AT_SUPPORT)
        due = await store.db.read(partial(outbox.due_replies, "telegram", "support", clock.now(), 10))
        assert due.replies[0].session_key == AT_SUPPORT
        assert queue_of(store).total_waiting == 1
        async with await begin(store, AT_SUPPORT) as turn:
            assert [one.text for one in turn.messages] == ["two"]
            await turn.commit([reply("well")])
        assert await fates(store, AT_SUPPORT) == {"turned": 2}
        assert (await accept(store, "three", source=SUPPORT)).seq == 3

    async def test_its_schedules_go_along_and_those_of_other_lanes_stay(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await exchange(store, as_before("one", "support"))
        prompt = TurnTask(message=said("What is new?", internal=True))
        owner = session_owner(ALICE, Isolation())
        mine = schedule(clock, owner=owner)
        before = [mine, schedule(clock, "news", owner=owner, kind=ScheduleKind.TURN, task=prompt)]
        others = [
            schedule(clock, "bob's", session_key=OTHER_LANE, owner=session_owner(BOB, Isolation())),
            schedule(clock, "of sales", session_key=AT_SALES, owner="sales", account="sales"),
        ]
        for one in (*before, *others):
            await save(store, one)
        assert [one.now for one in (await store.assign_lanes()).moved] == [AT_SUPPORT]
        mine_now = session_owner(SUPPORT, Isolation())
        for one in before:
            expected = replace(one, session_key=AT_SUPPORT, owner=mine_now, account="support", version=2)
            assert await named(store, one.name) == expected
        for one in others:
            assert await named(store, one.name) == one
        moved = await named(store)
        problem = "it was seen before it was given away"
        await queue_of(store).apply(lambda change: schedules.end_schedule(mine, problem, change.now))
        assert await named(store) == moved, "whoever has seen the schedule before must look again"
        await store.erase(SUPPORT)
        assert await store.db.read(partial(schedules.load_schedule, "morning")) is None

    async def test_of_a_shared_lane_the_last_account_keeps_the_session(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        for text, account in (("one", "sales"), ("two", "support"), ("three", "sales"), ("four", "support")):
            await exchange(store, as_before(text, account))
            await clock.advance(seconds=1)
        session_id = await store.peek_session_id(LANE)
        await adopt(store)
        assert await session_at(store, SUPPORT) == session_id
        linked = await store.get_or_create_session(SALES)
        assert linked.session_id != session_id
        assert (linked.previous_session_id, linked.opened_by) == (session_id, EndReason.MOVED)

    async def test_an_account_without_a_name_keeps_what_it_used_last(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await exchange(store, as_before("one", "support"))
        await clock.advance(seconds=1)
        await exchange(store, as_before("two", ""))
        session_id = await store.peek_session_id(LANE)
        await adopt(store, [*BOTH, ("telegram", "")])
        assert await session_at(store, ALICE) == session_id
        assert (await store.get_or_create_session(SUPPORT)).previous_session_id == session_id

    async def test_lanes_of_which_nothing_is_known_go_to_the_only_account(self, store: SessionStore) -> None:
        mine, others = await session_at(store, ALICE), await session_at(store, BOB)
        await adopt(store, [("telegram", "support"), ("telegram", "")])
        assert (await session_at(store, ALICE), await session_at(store, BOB)) == (mine, others)

    async def test_what_is_known_of_nobody_goes_to_the_first_account(self, store: SessionStore) -> None:
        mine = await session_at(store, ALICE)
        await adopt(store)
        assert await session_at(store, SUPPORT) == mine
        assert await store.get_session(LANE) is None

    async def test_all_of_it_is_done_once_and_not_to_lanes_that_come_later(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await adopt(store)
            later = await session_at(store, ALICE)
        async with open_store() as store:
            await adopt(store)
            assert await session_at(store, ALICE) == later
            await exchange(store, as_before("one", "support"))
            report = await store.assign_lanes(dry_run=True)
            assert [one.now for one in report.moved] == [AT_SUPPORT]
            assert await store.peek_session_id(LANE) == later
            assert replace(await store.assign_lanes(), dry_run=True) == report
            assert await session_at(store, SUPPORT) == later

    async def test_a_rehearsal_names_every_lane_and_changes_none(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        for text, account in (("one", "sales"), ("two", "support")):
            await exchange(store, as_before(text, account))
            await clock.advance(seconds=1)
        await exchange(store, as_before("three", "", source=BOB))
        report = await store.assign_lanes({"telegram": "support"}, unnamed_too=True, dry_run=True)
        assert [(one.session_key, one.now) for one in report.moved] == [
            (LANE, AT_SUPPORT),
            (OTHER_LANE, key_at_account(OTHER_LANE, "support")),
        ]
        assert [(one.session_key, one.kept_by) for one in report.linked] == [(AT_SALES, AT_SUPPORT)]
        assert await store.get_session(AT_SUPPORT) is None
        done = await store.assign_lanes({"telegram": "support"}, unnamed_too=True)
        assert replace(done, dry_run=True) == report
        assert await store.assign_lanes({"telegram": "support"}, unnamed_too=True) == LanesReport()

    async def test_a_lane_that_an_account_has_begun_meanwhile_is_left(self, store: SessionStore) -> None:
        await exchange(store, as_before("one", "support"))
        await accept(store, "two", source=SUPPORT)
        (left,) = (await store.assign_lanes()).left
        assert (left.session_key, left.account, left.busy) == (LANE, "support", False)
        assert await store.get_session(LANE) is not None

    async def test_two_that_do_it_at_once_do_it_once(self, store: SessionStore) -> None:
        await exchange(store, as_before("one", "support"))
        choices = [LaneChoice(LANE, "support")]
        first, second = [await queue_of(store).apply(partial(give_lanes, choices=choices)) for _ in range(2)]
        assert [one.now for one in first.moved] == [AT_SUPPORT]
        assert second == LanesReport()

    async def test_to_forget_a_person_at_one_account_is_not_to_forget_them_at_another(
        self, store: SessionStore
    ) -> None:
        for source in (SUPPORT, SALES):
            await accept(store, f"to {source.account}", source=source)
            async with await begin(store, store.key_for(source)) as turn:
                await turn.commit([reply("well")])
        kept = await store.peek_session_id(AT_SALES)
        receipt = await store.erase(SUPPORT)
        assert receipt.owner == session_owner(SUPPORT, Isolation())
        assert await store.peek_session_id(AT_SUPPORT) is None
        assert await store.peek_session_id(AT_SALES) == kept
        found = await store.db.search_messages("to", scope=Scope.operator())
        assert {one.session_id for one in found.hits} == {kept}
        assert await fates(store, AT_SUPPORT) == {}

    async def test_a_lane_with_a_running_turn_is_left_for_later(self, store: SessionStore) -> None:
        await exchange(store, as_before("one", "support"), answered=False)
        async with await begin(store) as turn:
            await adopt(store)
            assert await store.get_session(LANE) is not None
            await turn.commit([reply("well")])
        await adopt(store)
        assert await store.get_session(LANE) is None

    async def test_ended_sessions_of_the_lane_go_along_and_can_come_back(self, store: SessionStore) -> None:
        await exchange(store, as_before("one", "support"))
        first = await store.peek_session_id(LANE)
        await store.reset_session(LANE)
        await exchange(store, as_before("two", "support"))
        await adopt(store)
        back = await store.undo_reset(AT_SUPPORT)
        assert back is not None
        assert back.session_id == first
        assert await session_at(store, SUPPORT) == first
        listed = await store.db.list_sessions_rich(scope=Scope.operator(), include_children=True)
        assert {one.owner for one in listed} == {session_owner(SUPPORT, Isolation())}

    async def test_a_room_goes_along_with_what_everybody_said(self, open_store: OpenStore) -> None:
        team = SessionSource(platform="telegram", chat_type="group", chat_id="team", user_id="alice")
        async with open_store(group_sessions_per_user=False) as store:
            for person in ("alice", "bob"):
                message = as_before(f"by {person}", "support", source=replace(team, user_id=person))
                await exchange(store, message)
            session_id = await store.peek_session_id(store.key_for(team))
            await adopt(store)
            there = replace(team, account="support", user_id="carol")
            assert await session_at(store, there) == session_id
            scope = await store.scope_of(there)
            assert [one.session_id for one in await store.list_sessions(scope=scope)] == [session_id]

    async def test_whoever_was_erased_before_is_not_brought_back_by_a_late_delivery(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await exchange(store, as_before("one", "support"))
        sent_at = clock.now()
        await clock.advance(seconds=1)
        await store.erase(ALICE)
        await clock.advance(seconds=1)
        await adopt(store)
        late = await store.enqueue(said("late", source=SUPPORT, sent_at=sent_at))
        assert getattr(late, "reason", None) == "erased"
        assert isinstance(await store.enqueue(said("new", source=SUPPORT, sent_at=clock.now())), Accepted)
