"""No sequence of messages, turns, crashes and times makes the queue of a store differ from plain rules."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway_sessions import (
    Accepted,
    BusyMode,
    BusyRules,
    Config,
    Duplicate,
    FencedError,
    InboundMessage,
    Rejected,
    SessionSource,
    SessionStore,
    Turn,
    build_session_key,
)
from gateway_sessions.config import AgentConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.config.gateway_sections import GatewayConfig
from gateway_sessions.core.queue.busy_modes import Merge, Refuse
from gateway_sessions.core.queue.inbound import Disposition, MessageKind
from gateway_sessions.queue import DropPolicy
from gateway_sessions.storage.transactions.queue import clock_set_back
from gateway_sessions.storage.transactions.queue import waiting as queue
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.inside import queue_of
from tests.property.database.ledger_model import Item, Lane, Model
from tests.property.machines import StepRunner, machine_test
from tests.unit.runtime.store_fixtures import open_store, quick_config
from tests.watched_moves import EVERYTHING, read_places, watching_moves

LIMIT = 3
MOST = 3
DM = SessionSource(platform="telegram", chat_id="1", user_id="alice")
ROOM = [
    # With names: the one that the store gives to whoever has none hangs on its secret.
    SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id=one, user_name=one)
    for one in ("alice", "bob")
]
WHO = {"alice alone": DM, "alice in the room": ROOM[0], "bob in the room": ROOM[1]}
KEYS = [build_session_key(one, group_sessions_per_user=False) for one in (DM, ROOM[0])]
CONFIG = quick_config(
    group_sessions_per_user=False,
    agent=AgentConfig(max_restart_attempts=LIMIT, gateway_auto_continue_freshness=None),
    gateway=GatewayConfig(crash_loop_starts=1000),
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
)
APART = BusyRules(debounce=timedelta(0), max_queued=MOST)
COLLECTING = BusyRules(mode=BusyMode.COLLECT, max_queued=MOST)
RUNNING = {
    "takes none": NO_TURN,
    "takes messages": RunningTurnFacts(can_steer=True),
    "has sub-work": RunningTurnFacts(sub_work=True),
}
people = st.sampled_from(list(WHO))
STEPS = st.sampled_from([-1.0, 0.1, 0.3, 2.0, 3600.0])
WRITES: dict[str, Callable[[Turn], Coroutine[Any, Any, object]]] = {
    "append": lambda turn: turn.append(said("late")),
    "commit": lambda turn: turn.commit([said("late")]),
    "go on": lambda turn: turn.commit(go_on=True),
    "fail": lambda turn: turn.fail("late"),
    "take back": lambda turn: turn.roll_back("somebody"),
    "release": lambda turn: turn.release(),
    "steer": lambda turn: turn.steer(1),
}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


class LedgerMachine(RuleBasedStateMachine):
    """Two people in a room, and one of them alone."""

    store: SessionStore
    made: ClassVar[Path | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.watching = ExitStack()
        self.watching.enter_context(watching_moves(EVERYTHING))
        self.runner = StepRunner()
        self.clock = FakeClock()
        self.model = Model(self.clock.now())
        self.model.lanes = {key: Lane(self.model) for key in KEYS}
        self.turns: dict[str, Turn] = {}
        self.stale: list[Turn] = []
        self.names: dict[str, str] = {}
        """What the store calls the sessions of the model."""
        self.touched = set(KEYS)

    @initialize()
    def settle_in(self) -> None:
        self.open()

    def open(self) -> None:
        self.store = open_store(self.home, self.kept_in(CONFIG), self.clock, titler=None)
        self.run(self.store.__aenter__())

    def kept_in(self, config: Config) -> Config:
        """The configuration, with the database that the engine under test is."""
        return config

    def close(self) -> None:
        self.run(self.store.__aexit__(None, None, None))

    def teardown(self) -> None:
        try:
            if hasattr(self, "store"):
                self.close()
        finally:
            self.watching.close()
            self.runner.close()
            shutil.rmtree(self.home)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def on(self, key: str) -> Lane:
        self.touched.add(key)
        return self.model.lanes[key]

    # Coming in

    @rule(
        who=people,
        mode=st.sampled_from([str(one) for one in BusyMode]),
        debounce=st.sampled_from([0.0, 0.35]),
        drop=st.sampled_from([str(one) for one in DropPolicy]),
        merge_limit=st.sampled_from([2, 20]),
        running=st.sampled_from(list(RUNNING)),
        solo=st.booleans(),
        internal=st.sampled_from([False, False, False, True]),
    )
    def writes(
        self, who: str, running: str, debounce: float, *, solo: bool, internal: bool, **rules: Any
    ) -> None:
        pause = timedelta(seconds=debounce)
        found = BusyRules(debounce=pause, max_queued=MOST, **rules)
        self.write(WHO[who], found, RUNNING[running], solo=solo, internal=internal)

    def write(
        self,
        source: SessionSource,
        rules: BusyRules,
        running: RunningTurnFacts,
        *,
        solo: bool,
        internal: bool,
    ) -> None:
        key = build_session_key(source, group_sessions_per_user=False)
        lane = self.on(key)
        number = sum(len(one.items) for one in self.model.lanes.values())
        message = InboundMessage(
            source=source, text=f"m{number}", message_id=f"{key} {len(lane.items) + 1}", internal=internal
        )
        before = len(lane.items)
        plan = lane.admit_message(message, source.user_id or "", rules, running, solo=solo)
        receipt = self.run(self.store.enqueue(message, rules=rules, running=running, solo=solo))
        if isinstance(plan, Refuse):
            assert isinstance(receipt, Rejected)
            assert (receipt.reason, receipt.retry_after) == (plan.reason, plan.retry_after)
            return
        assert isinstance(receipt, Accepted)
        assert (receipt.seq, receipt.disposition) == (before + 1, plan.then)
        assert receipt.merged_into == (plan.into if isinstance(plan, Merge) else None)
        assert receipt.dropped == tuple(one.seq for one in lane.dropped)
        assert receipt.depth == len(lane.heads)

    @rule(who=people, count=st.integers(2, 4), waits=st.booleans())
    def write_a_burst(self, who: str, count: int, waits: bool) -> None:
        for _ in range(count):
            self.write(WHO[who], COLLECTING, NO_TURN, solo=False, internal=False)
        if waits:
            self.time_passes(2.0)

    @rule(who=people)
    def writes_and_begins(self, who: str) -> None:
        self.write_and_begin(WHO[who])

    def write_and_begin(self, source: SessionSource) -> None:
        self.write(source, APART, NO_TURN, solo=False, internal=False)
        self.claim(build_session_key(source, group_sessions_per_user=False))

    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        lane, item = self.any_item(data, lambda _: True)
        if item is not None and lane is not None:
            message = item.message
            if message.kind is MessageKind.NEW:  # as its platform knows it, whatever it says by now
                message = msgspec.structs.replace(message, revision=0)
            again = self.run(self.store.enqueue(message))
            assert again == Duplicate(seq=item.seq, session_key=self.key_of(lane))

    # Turns

    @rule(key=st.sampled_from(KEYS))
    def claims(self, key: str) -> None:
        self.claim(key)

    def claim(self, key: str) -> None:
        lane = self.on(key)
        turn = self.run(self.store.claim(key))
        assert (turn is not None) == lane.ready()
        if turn is not None:
            self.begun(key, turn)

    @rule()
    def claim_any(self) -> None:
        ready = [key for key in KEYS if self.model.lanes[key].ready()]
        turn = self.run(self.store.claim())
        assert (turn is not None) == bool(ready)
        if turn is not None:
            waits = {key: self.model.lanes[key].heads[0].ready_at for key in ready}
            assert turn.session_key == min(ready, key=lambda key: (waits[key], key))
            self.begun(turn.session_key, turn)

    def begun(self, key: str, turn: Turn) -> None:
        model = self.on(key).claim()
        assert turn.seqs == tuple(one.seq for one in model.items)
        assert turn.messages == tuple(one.message for one in model.items)
        assert turn.attempt == model.attempt
        assert turn.waiting == len(model.lane.heads)
        self.turns[key] = turn

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        key, turn = self.any_turn(data)
        self.run(turn.append(said("let me see")))
        self.on(key).record("let me see")

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def steer(self, data: st.DataObject) -> None:
        key, turn = self.any_turn(data)
        lane = self.on(key)
        waiting = [one.seq for one in lane.heads]
        seq = data.draw(st.sampled_from([*waiting, *waiting, len(lane.items), len(lane.items) + 1]))
        assert self.run(turn.steer(seq)) == lane.steer(seq)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), ends=st.sampled_from(["release", "fail", "restart"]))
    def steer_a_turn_that_dies(self, data: st.DataObject, ends: str) -> None:
        key, turn = self.any_turn(data)
        lane = self.on(key)
        if lane.heads:
            seq = lane.heads[0].seq
            assert self.run(turn.steer(seq)) == lane.steer(seq)
        if ends == "release":
            self.run(turn.release(counted=True))
            lane.release(self.clock.now(), counted=True)
            del self.turns[key]
        elif ends == "fail":
            lane.record()
            self.end(key, "dead", turn.fail("no power"), go_on=False)
        else:
            self.restart(clean=False)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), go_on=st.booleans())
    def commit(self, data: st.DataObject, go_on: bool) -> None:
        key, turn = self.any_turn(data)
        self.on(key).record("an answer")
        self.end(key, "turned", turn.commit([said("an answer")], go_on=go_on), go_on=go_on)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), go_on=st.booleans())
    def interrupt(self, data: st.DataObject, go_on: bool) -> None:
        key, turn = self.any_turn(data)
        self.on(key).record()
        self.end(key, "interrupted", turn.interrupt("somebody", go_on=go_on), go_on=go_on)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), go_on=st.booleans())
    def fail(self, data: st.DataObject, go_on: bool) -> None:
        key, turn = self.any_turn(data)
        self.on(key).record()
        self.end(key, "dead", turn.fail("no power", go_on=go_on), go_on=go_on)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), go_on=st.booleans())
    def roll_back(self, data: st.DataObject, go_on: bool) -> None:
        key, turn = self.any_turn(data)
        self.end(key, "rolled_back", turn.roll_back("somebody", go_on=go_on), go_on=go_on)

    def end(self, key: str, outcome: str, ending: Coroutine[Any, Any, Any], *, go_on: bool) -> None:
        lane = self.on(key)
        ended = self.run(ending)
        lane.end(outcome)
        del self.turns[key]
        assert (ended.next is not None) == (go_on and lane.ready())
        if ended.next is not None:
            self.begun(key, ended.next)
        else:
            assert ended.waiting == len(lane.heads)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), counted=st.booleans(), later=st.sampled_from([0.0, 1.0]))
    def release(self, data: st.DataObject, counted: bool, later: float) -> None:
        key, turn = self.any_turn(data)
        at = self.clock.now() + timedelta(seconds=later)
        self.run(turn.release(retry_at=at, counted=counted))
        self.on(key).release(at, counted=counted)
        del self.turns[key]

    # What others do

    @rule(key=st.sampled_from(KEYS), how=st.sampled_from(["stop", "reset"]))
    def overtakes(self, key: str, how: str) -> None:
        self.overtake(key, how)

    def overtake(self, key: str, how: str) -> None:
        lane = self.on(key)
        if how == "stop":
            lane.overtake()
            self.run(self.store.stop_turn(key))
        else:
            lane.reset()
            assert (self.run(self.store.reset_session(key)) is None) == (not lane.session)
        if key in self.turns:
            self.stale.append(self.turns.pop(key))

    @rule(key=st.sampled_from(KEYS))
    def suspend(self, key: str) -> None:
        lane = self.on(key)
        if lane.turn is None:
            assert self.run(self.store.suspend_session(key)) == bool(lane.session)
            lane.suspended = bool(lane.session)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), how=st.sampled_from(["stop", "reset"]), write=st.sampled_from(sorted(WRITES)))
    def overtake_and_begin_anew(self, data: st.DataObject, how: str, write: str) -> None:
        key, turn = self.any_turn(data)
        self.overtake(key, how)
        self.write_and_begin(DM if key == KEYS[0] else ROOM[0])
        with pytest.raises(FencedError):
            self.run(WRITES[write](turn))

    @precondition(lambda self: self.stale)
    @rule(data=st.data(), write=st.sampled_from(sorted(WRITES)))
    def an_overtaken_turn_writes(self, data: st.DataObject, write: str) -> None:
        turn = data.draw(st.sampled_from(self.stale))
        self.touched.add(turn.session_key)
        with pytest.raises(FencedError):
            self.run(WRITES[write](turn))

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        lane, item = self.any_item(data, lambda _: True)
        if lane is not None and item is not None:
            gone = self.run(self.store.cancel_queued(self.key_of(lane), item.seq))
            assert gone == lane.cancel(item.seq)

    @rule(key=st.sampled_from(KEYS))
    def clear(self, key: str) -> None:
        assert self.run(self.store.clear_queue(key)) == self.on(key).clear()

    @rule(key=st.sampled_from(KEYS), data=st.data())
    def move(self, key: str, data: st.DataObject) -> None:
        lane = self.on(key)
        heads = lane.heads
        if heads:
            seq, to = data.draw(st.sampled_from(heads)).seq, data.draw(st.integers(0, MOST + 1))
            assert self.run(self.store.move_queued(key, seq, to)) == lane.move(seq, to)

    @rule(data=st.data(), text=st.sampled_from([None, "better"]))
    def change(self, data: st.DataObject, text: str | None) -> None:
        lane, item = self.any_item(data, Item.can_be_changed)
        if lane is not None and item is not None:
            self.reword(lane, item, text)

    @rule(who=people, data=st.data(), text=st.sampled_from([None, "better", "better"]), ends=st.booleans())
    def change_what_is_worked_on(self, who: str, data: st.DataObject, text: str | None, ends: bool) -> None:
        source = WHO[who]
        key = build_session_key(source, group_sessions_per_user=False)
        lane = self.on(key)
        if lane.turn is None:
            self.write_and_begin(source)
        if lane.turn is None:
            return
        turn = self.turns[key]
        if lane.turn.items:
            self.reword(lane, data.draw(st.sampled_from(lane.turn.items)), text)
        if ends:
            lane.record("an answer")
            self.end(key, "turned", turn.commit([said("an answer")]), go_on=False)

    def reword(self, lane: Lane, item: Item, text: str | None) -> None:
        kind = MessageKind.DELETE if text is None else MessageKind.EDIT
        says = "" if text is None else f"{item.text} {text}"
        number = len(lane.items) + 1
        change = msgspec.structs.replace(item.message, kind=kind, text=says, revision=number)
        receipt = self.run(self.store.enqueue(change))
        assert isinstance(receipt, Accepted)
        assert (receipt.seq, receipt.disposition) == (number, Disposition.APPLIED)
        new = None if text is None else item.message.with_text(says, (), number)
        lane.change_item(item, new)
        lane.note_change(change)

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        lane, item = self.any_item(data, lambda one: one.outcome == "dead")
        if lane is not None and item is not None:
            letters = {one.message.message_id: one.item_id for one in self.run(self.store.dead_letters())}
            assert self.run(self.store.requeue(letters[item.message.message_id])) == self.key_of(lane)
            lane.requeue(item)

    # Time, and ends of the process

    @rule(seconds=STEPS)
    def waits(self, seconds: float) -> None:
        self.time_passes(seconds)

    def time_passes(self, seconds: float) -> None:
        self.clock.step(timedelta(seconds=seconds))
        self.model.now = self.clock.now()
        if seconds < 0:
            # The duties of a gateway notice that when they wake: here it is known at once.
            self.run(queue_of(self.store).pull_turns_forward())
            self.model.pulls_forward()

    @rule(clean=st.booleans())
    def restarts(self, clean: bool) -> None:
        self.restart(clean=clean)

    def restart(self, *, clean: bool) -> None:
        was_ahead = self.run(
            self.store.db.read(partial(clock_set_back.was_clock_ahead, self.clock.now(), None))
        )
        self.close()
        if not clean:
            self.forget_the_end()
        cut_off = {key for key in self.turns if self.model.lanes[key].turn_is_about_something}
        for key in self.turns:
            self.on(key).cut_off(LIMIT)
        self.open()
        if was_ahead:
            self.model.pulls_forward()
        given_up = {key for key in cut_off if self.model.lanes[key].suspended}
        assert {one.session_key for one in self.store.started.given_up} == given_up
        assert set(self.store.started.resumed) == cut_off - given_up
        self.turns.clear()
        self.stale.clear()
        self.touched = set(KEYS)

    def forget_the_end(self) -> None:
        """Let the end of a process look like a kill."""
        (self.home / ".clean_shutdown").unlink()

    # What is true after each step

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def every_touched_lane_is_what_the_model_says(self) -> None:
        states = {(one.session_key, one.seq): one.state for one in self.run(self.store.db.read(read_places))}
        for key in sorted(self.touched):
            self.compare(key, self.model.lanes[key])
            assert {seq: state for (lane, seq), state in states.items() if lane == key} == {
                one.seq: one.state for one in self.model.lanes[key].items
            }
        self.touched.clear()
        waiting = sum(len(lane.heads) for lane in self.model.lanes.values())
        assert queue_of(self.store).total_waiting == waiting

    def compare(self, key: str, lane: Lane) -> None:
        listed = self.run(self.store.list_queued(key))
        running = lane.turn.items if lane.turn is not None else []
        waiting = [(one.seq, None) for one in lane.heads]
        assert [
            (one.seq, one.merged_into) for one in listed if not one.running and not one.merged_into
        ] == waiting
        expected = {
            one.seq: (one.message, one.head.seq if one.head is not None else None, one in running)
            for one in lane.items
            if one.outcome is None
        }
        assert {one.seq: (one.message, one.merged_into, one.running) for one in listed} == expected
        assert self.run(self.store.queue_depth(key)) == len(waiting)
        assert self.run(self.store.db.read(partial(queue.count_outcomes, key))) == lane.outcomes
        session_id = self.run(self.store.peek_session_id(key))
        assert bool(session_id) == bool(lane.session)
        if session_id:
            assert self.names.setdefault(lane.session, session_id) == session_id
        self.compare_talks(lane)

    def compare_talks(self, lane: Lane) -> None:
        seen: Counter[str] = Counter()
        for name in {lane.session, *(one.row.session for one in lane.items if one.row is not None)} - {""}:
            stored = self.run(self.store.db.get_messages(self.names[name]))
            rows = [(one.role, one.text) for one in self.model.rows[name] if one.visible]
            assert [(one.role, one.text) for one in stored] == rows
            seen.update(line for one in stored if one.role == "user" for line in one.text.splitlines())
        assert not [text for text, count in seen.items() if count > 1], "a message stands twice"
        turned = {one.text for one in lane.items if one.outcome == "turned" and one.row is not None}
        assert turned <= set(seen)

    # Choices

    def any_turn(self, data: st.DataObject) -> tuple[str, Turn]:
        key = data.draw(st.sampled_from(sorted(self.turns)))
        return key, self.turns[key]

    def any_item(
        self, data: st.DataObject, fits: Callable[[Item], bool]
    ) -> tuple[Lane, Item] | tuple[None, None]:
        found = [(lane, one) for lane in self.model.lanes.values() for one in lane.items[-8:] if fits(one)]
        if not found:
            return None, None
        lane, item = found[data.draw(st.integers(0, len(found) - 1))]
        self.touched.add(self.key_of(lane))
        return lane, item

    def key_of(self, lane: Lane) -> str:
        return next(key for key, one in self.model.lanes.items() if one is lane)


TestLedger = machine_test(LedgerMachine, soak=(2000, 80))
