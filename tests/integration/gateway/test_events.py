"""What happens is told once, after the fact, in the order of the commits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionEntry, SessionStore
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.committed_changes import Transition
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.busy_modes import DropPolicy
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.runtime.observability.event_stream import EventKind, GatewayEvent
from gateway_sessions.storage.transactions.queue import running_turn
from gateway_sessions.storage.transactions.sessions.session_transitions import log_statement
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import Gate, ScriptedAgent, ScriptedAgents, answers, fails, waits_at
from gateway_sessions.testing.fake_platform import FakePlatform
from gateway_sessions.testing.inside import queue_of
from tests.integration.gateway.documented_events import kinds_of, take_events
from tests.integration.gateway.gateway_harness import QUICK, busy_config, echo, open_harness, wait_until

IDLE = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
DESK = SessionSource(platform="telegram", chat_id="desk")


def log_of(session_key: str) -> Transaction[list[tuple[object, ...]]]:
    """The rows of the transition log of a lane, as they are told."""
    rows = yield Statement("transitions_of_lane", (session_key, 1000))
    return [tuple(row[1:]) for row in reversed(rows)]


def told(event: GatewayEvent) -> tuple[object, ...]:
    facts = event.facts
    what = (facts["event"], facts["from_state"], facts["to_state"], facts["reason"], facts["actor"])
    return (event.session_id, *what)


async def test_a_turn_is_told_from_its_message_to_its_reply(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness, harness.store.events.listen() as listener:
        await harness.platform.says("ann", "hello", message_id="m1")
        await harness.wait_until_idle()
        await harness.platform.redelivers("m1")
        events = take_events(listener)
        assert kinds_of(events) == [
            "transition",
            "session.started",
            "message.accepted",
            "turn.started",
            "turn.ended",
            "reply.sent",
            "message.duplicate",
        ]
        where = {(event.session_key, event.session_id) for event in events[:-1]}
        assert where == {(harness.key("ann"), await harness.store.peek_session_id(harness.key("ann")))}
        ended = events[4]
        assert ended.facts == {"seq": 1, "outcome": "turned", "seconds": 0}


async def test_what_becomes_of_messages_on_a_busy_lane_is_told(tmp_path: Path):
    gate = Gate()
    config = busy_config(BusyMode.QUEUE, max_queued=1, drop=DropPolicy.DROP_OLDEST)
    agent = ScriptedAgent([waits_at(gate), answers("first")])
    async with (
        open_harness(tmp_path, config, agent=agent) as harness,
        harness.store.events.listen() as listener,
    ):
        for text, seconds in (("one", 2), ("two", 0), ("three", 2), ("four", 2)):
            await harness.platform.says("ann", text)
            await harness.clock.advance(seconds=seconds)
        messages = [event for event in take_events(listener) if event.kind.startswith("message.")]
        gate.open()
        await harness.wait_until_idle()
    assert [(str(event.kind), event.facts["seq"]) for event in messages] == [
        ("message.accepted", 1),
        ("message.accepted", 2),
        ("message.merged", 3),
        ("message.accepted", 4),
        ("message.dropped", 2),
        ("message.dropped", 3),
    ]
    assert [event.facts.get("disposition") for event in messages[:3]] == ["starts", "queued", "merged"]


async def test_a_message_whose_turn_fails_for_good_is_told_as_a_dead_letter(tmp_path: Path):
    async with (
        open_harness(tmp_path, agent=ScriptedAgent([fails(ValueError("no"))])) as harness,
        harness.gateway.events.listen(kinds=[EventKind.MESSAGE_DEAD, EventKind.TURN_ENDED]) as listener,
    ):
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        dead, ended = take_events(listener)
        assert (dead.kind, dead.facts) == (EventKind.MESSAGE_DEAD, {"seq": 1})
        assert ended.facts["outcome"] == "dead"


async def test_a_refused_message_is_told_with_its_reason(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness, harness.gateway.events.listen() as listener:
        await harness.platform.says("ann", "   ")
        (refused,) = take_events(listener)
        assert (refused.kind, refused.facts) == (EventKind.MESSAGE_REJECTED, {"reason": "empty"})


async def test_a_turn_that_lost_its_lane_says_so(tmp_path: Path):
    gate = Gate()
    async with (
        open_harness(tmp_path, agent=ScriptedAgent([waits_at(gate), answers("late")])) as harness,
        harness.gateway.events.listen() as listener,
    ):
        await harness.platform.says("ann", "hello")
        await gate.reached()
        await harness.store.reset_session(harness.key("ann"))
        await wait_until(lambda: harness.gateway.running_turn(harness.key("ann")) is None)
        (ended,) = take_events(listener, EventKind.TURN_ENDED)
        assert ended.facts["outcome"] == "overtaken"


async def test_a_turn_whose_lane_was_given_away_behind_its_back_is_told_as_fenced(tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        running = harness.gateway.running_turn(turn.session_key)
        assert running is not None
        give_back = partial(running_turn.give_back_turn, running.turn.lease, None, counted=False)
        await queue_of(harness.store).apply(lambda change: give_back(change=change))
        return "late"

    async with open_harness(tmp_path, agent=agent) as harness, harness.gateway.events.listen() as listener:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        fenced, ended = take_events(listener, EventKind.TURN_FENCED, EventKind.TURN_ENDED)
        assert fenced.facts == {"seq": 1}
        assert ended.facts["outcome"] == "overtaken"
        assert harness.platform.shown("ann") == []


async def test_a_turn_that_was_answered_is_told_so_although_something_failed_after_it(tmp_path: Path):
    asked: list[SessionEntry] = []

    def settings(entry: SessionEntry) -> dict[str, str]:
        asked.append(entry)
        if len(asked) == 2:
            raise ValueError("no settings any more")
        return {}

    async with (
        open_harness(tmp_path, agent_factory=ScriptedAgents("one"), agent_settings=settings) as harness,
        harness.gateway.events.listen(kinds=[EventKind.TURN_ENDED, EventKind.MESSAGE_DEAD]) as listener,
    ):
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        (ended,) = take_events(listener)
        assert ended.facts["outcome"] == "turned"
        assert harness.platform.shown("ann") == ["one"]


async def test_a_turn_that_could_not_be_begun_is_told_as_a_dead_letter(tmp_path: Path):
    def settings(entry: SessionEntry) -> dict[str, str]:
        raise ValueError("no settings")

    async with (
        open_harness(tmp_path, agent_factory=ScriptedAgents("one"), agent_settings=settings) as harness,
        harness.gateway.events.listen(kinds=[EventKind.TURN_ENDED, EventKind.MESSAGE_DEAD]) as listener,
    ):
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        assert kinds_of(take_events(listener)) == ["message.dead", "turn.ended"]
        assert len(await harness.store.dead_letters()) == 1


async def test_a_reply_that_is_given_up_is_told(tmp_path: Path):
    async with open_harness(tmp_path, agent=echo) as harness, harness.gateway.events.listen() as listener:
        harness.platform.refuses()
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        (given_up,) = take_events(listener, EventKind.REPLY_GIVEN_UP)
        assert given_up.session_key == harness.key("ann")


async def test_an_automatic_reset_is_told_once_with_reason_and_way_back(tmp_path: Path):
    config = replace(QUICK, session_reset=IDLE)
    async with (
        open_harness(tmp_path, config, agent=echo) as harness,
        harness.gateway.events.listen() as listener,
    ):
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        old = await harness.store.peek_session_id(harness.key("ann"))
        take_events(listener)
        await harness.clock.advance(hours=2)
        assert kinds_of(take_events(listener)) == [
            "session.ended",
            "transition",
            "session.finalised",
        ]
        await harness.platform.says("ann", "again")
        await harness.wait_until_idle()
        events = take_events(listener)
        (reset,) = [event for event in events if event.kind is EventKind.SESSION_RESET]
        assert reset.facts == {"reason": "idle", "previous_session_id": old, "automatic": True}
        assert reset.session_id != old
        assert [event.facts["reason"] for event in events if event.kind is EventKind.SESSION_ENDED] == []


async def test_every_row_of_the_transition_log_is_told_once_and_in_its_order(tmp_path: Path):
    clock = FakeClock()
    config = replace(QUICK, session_reset=IDLE)
    async with SessionStore.open(tmp_path, config, clock=clock) as store:
        async with store.events.listen() as listener:
            key = (await store.get_or_create_session(DESK)).session_key
            await store.reset_session(key)
            await store.undo_reset(key)
            await store.mark_resume_pending(key)
            await store.clear_resume_pending(key)
            entry = await store.get_session(key)
            assert entry is not None
            await store.db.append_message(entry.session_id, "user", "hello")
            await store.split_session(key, entry.session_id, [{"role": "user", "content": "a summary"}])
            await store.branch_session(key)
            await store.suspend_session(key)
            await store.get_or_create_session(DESK)
            clock.step(hours=2)
            await store.watcher.sweep()
            clock.step(hours=2)
            await store.prune_old_entries(0.01)
            events = take_events(listener)
        rows = await store.db.read(lambda: log_of(key))
    transitions = [event for event in events if event.kind is EventKind.TRANSITION]
    assert [told(event) for event in transitions] == rows
    assert {event.facts["event"] for event in transitions} == {
        "created",
        "reset",
        "undone",
        "interrupted",
        "recovered",
        "compressed",
        "switched",
        "suspended",
        "finalised",
        "pruned",
    }
    assert kinds_of([event for event in events if event.kind is not EventKind.TRANSITION]) == [
        "session.started",
        "session.ended",
        "session.started",
        "session.reset",
        "session.ended",
        "session.resumed",
        "session.ended",
        "session.started",
        "session.ended",
        "session.resumed",
        "session.ended",
        "session.started",
        "session.reset",
        "session.ended",
        "session.finalised",
    ]


async def test_a_lane_that_loses_its_session_tells_of_no_other_one(tmp_path: Path):
    async with SessionStore.open(tmp_path, QUICK, clock=FakeClock()) as store:
        old = await store.get_or_create_session(DESK)
        other = await store.get_or_create_session(SessionSource(platform="telegram", chat_id="bench"))
        async with store.events.listen() as listener:
            await store.switch_session(other.session_key, old.session_id, scope=Scope.operator(), move=True)
            events = take_events(listener)
            assert [(str(one.kind), one.session_key) for one in events] == [
                ("transition", old.session_key),
                ("session.ended", other.session_key),
                ("transition", other.session_key),
                ("session.resumed", other.session_key),
            ]
            await store.get_or_create_session(DESK)
            started = [one for one in take_events(listener) if one.kind is EventKind.SESSION_STARTED]
            assert [one.facts for one in started] == [
                {"reason": "moved", "previous_session_id": old.session_id}
            ]


class TestCommits:
    """What listeners hear, they hear because it was committed."""

    @staticmethod
    def row(reason: str) -> Transition:
        return Transition(
            at=FakeClock().now(),
            session_key="lane",
            session_id="s",
            event="created",
            from_state=None,
            to_state="active",
            reason=reason,
            actor="person",
        )

    async def test_nobody_hears_of_what_was_undone(self, tmp_path: Path):
        async with SessionStore.open(tmp_path, QUICK, clock=FakeClock()) as store:

            def transaction(change_id: int) -> Transaction[None]:
                yield log_statement(change_id, self.row("undone"))
                raise ValueError(change_id)

            async with store.events.listen() as listener:
                with pytest.raises(ValueError, match="7"):
                    await store.db.write(lambda: transaction(7))
                assert take_events(listener) == []

    async def test_nobody_hears_of_what_changed_nothing(self, tmp_path: Path):
        async with SessionStore.open(tmp_path, QUICK, clock=FakeClock()) as store:

            def transaction() -> Transaction[None]:
                yield Statement("delete_hook_call", ("none",), news=self.row("nothing"))

            async with store.events.listen() as listener:
                await store.db.write(transaction)
                assert take_events(listener) == []

    async def test_everybody_hears_of_it_although_the_one_who_asked_has_gone(self, tmp_path: Path):
        begun, go_on = threading.Event(), threading.Event()

        def transaction() -> Transaction[None]:
            yield log_statement(1, self.row("asked for"))
            begun.set()
            go_on.wait()

        async with (
            SessionStore.open(tmp_path, QUICK, clock=FakeClock()) as store,
            store.events.listen(kinds=[EventKind.TRANSITION]) as listener,
        ):
            asking = asyncio.ensure_future(store.db.write(transaction))
            await asyncio.to_thread(begun.wait)
            asking.cancel()
            go_on.set()
            event = await asyncio.wait_for(anext(listener), 5)
            assert event.facts["reason"] == "asked for"
            assert asking.cancelled()

    async def test_it_is_told_before_the_one_who_asked_has_the_answer(self, tmp_path: Path):
        async with SessionStore.open(tmp_path, QUICK, clock=FakeClock()) as store:
            async with store.events.listen() as listener:
                entry = await store.get_or_create_session(DESK)
                events = take_events(listener)
            assert [event.session_id for event in events] == [entry.session_id] * 2
            assert all(event.at == entry.created_at for event in events)


async def test_the_stream_ends_with_the_store(tmp_path: Path):
    async with SessionStore.open(tmp_path, QUICK, clock=FakeClock()) as store:
        listener = store.events.listen()
        async with listener:
            await store.get_or_create_session(DESK)
    async with listener:
        assert [str(event.kind) async for event in listener] == ["transition", "session.started"]


class Flaky(FakePlatform):
    """Cannot be reached at first."""

    tries = 0

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        self.tries += 1
        if self.tries == 1:
            raise ConnectionRefusedError
        async with super().connect(submit):
            yield


async def test_adapters_that_fail_and_connect_are_told(tmp_path: Path):
    clock = FakeClock()
    async with (
        SessionStore.open(tmp_path, QUICK, clock=clock) as store,
        store.events.listen() as listener,
        Gateway(store, agent=echo, adapters=[Flaky("chat", "main", clock=clock)]),
    ):
        await clock.advance(seconds=2)
        events = take_events(listener)
        assert kinds_of(events) == ["adapter.lost", "adapter.connected"]
        assert events[0].facts == {"platform": "chat", "account": "main"}
