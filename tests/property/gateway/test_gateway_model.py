"""No sequence of messages, answers, failures, resets, times, outages and ends makes a gateway lose its way.

Agents do what the test says and nothing else, so that the model knows what every turn is about to leave.
After each step everything rests; then database, people and agents are compared with the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway_sessions import Config, SessionEntry, SessionResetPolicy
from gateway_sessions.config import (
    AgentConfig,
    Durability,
    ExpiryWatcherConfig,
    GatewayConfig,
    SessionDBConfig,
    SessionsJsonConfig,
    SnapshotMode,
)
from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.queue.busy_modes import BusyRules, DropPolicy
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Attachment,
    AttachmentKind,
    Disposition,
    Duplicate,
    InboundMessage,
    MessageKind,
    Receipt,
    Rejected,
)
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.runtime.agents.protocol import Answer
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.storage.transactions.queue.waiting import Overtaken
from tests.property.gateway.gateway_driver import NAMES, GatewayDriver
from tests.property.gateway.gateway_model import Facts, Said
from tests.property.gateway.gateway_rows import ANSWERED
from tests.property.machines import machine_test

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")
NEVER = timedelta(days=36_500)

lanes = st.sampled_from(NAMES)
numbers = st.integers(0, 30)
seldom = st.integers(0, 5).map(lambda one: one == 0)
busy_rules = st.builds(
    BusyRules,
    mode=st.sampled_from(BusyMode),
    max_queued=st.sampled_from([2, 4]),
    drop=st.sampled_from(DropPolicy),
    merge_limit=st.sampled_from([2, 20]),
    acknowledge=st.booleans(),
)
writings = {
    "name": lanes,
    "writers": st.lists(st.integers(0, 1), min_size=1, max_size=3),
    "photo": seldom,
    "solo": seldom,
    "nameless": seldom,
}


def config_with(rules: BusyRules, max_turns: int, mode: ResetMode) -> Config:
    return Config(
        timezone="UTC",
        busy=rules,
        group_sessions_per_user=False,
        session_reset=SessionResetPolicy(mode=mode, idle_minutes=600),
        agent=AgentConfig(gateway_timeout=None, max_restart_attempts=3),
        gateway=GatewayConfig(max_turns=max_turns, dedup_window=NEVER / 10),
        sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
        sessiondb=SessionDBConfig(durability=Durability.OS),
        expiry_watcher=ExpiryWatcherConfig(first_pass=NEVER),
    )


configs = st.builds(
    config_with,
    rules=busy_rules,
    max_turns=st.sampled_from([1, 2, 64]),
    mode=st.sampled_from([ResetMode.NONE, ResetMode.IDLE]),
)


class GatewayMachine(RuleBasedStateMachine):
    """Does the same to a gateway and to the model, and compares them after each step."""

    driver: GatewayDriver | None = None

    @initialize(config=configs)
    def begin(self, config: Config) -> None:
        self.driver = GatewayDriver(config)
        self.lanes = self.driver.model.lanes
        self.known: list[tuple[str, InboundMessage, Said | None]] = []
        """What the platform may deliver again; None: it was refused."""

    def teardown(self) -> None:
        if self.driver is not None:
            self.driver.end()

    # People write

    @rule(**writings)
    def people_write(self, name: str, writers: list[int], photo: bool, solo: bool, nameless: bool) -> None:
        for writer in writers:
            self.writes(name, self.message(name, writer, photo=photo, nameless=nameless), solo=solo)

    @rule(**writings)
    def people_write_and_are_answered(
        self, name: str, writers: list[int], photo: bool, solo: bool, nameless: bool
    ) -> None:
        self.people_write(name, writers, photo, solo, nameless)
        if name in self.driver.runs:
            self.answers(name, "answers")

    def message(
        self, name: str, writer: int, *, photo: bool = False, nameless: bool = False
    ) -> InboundMessage:
        number = next(self.driver.numbers)
        return InboundMessage(
            source=self.driver.source(name, writer),
            text=f"m{number};",
            message_id=None if nameless else f"id{number}",
            attachments=(PHOTO,) if photo else (),
            sent_at=self.driver.clock.now(),
        )

    def writes(self, name: str, message: InboundMessage, *, solo: bool = False) -> None:
        gateway = self.driver.gateway
        work = gateway.admit(message, solo=True) if solo else gateway.submit(message)
        self.driver.do_and_learn(work, lambda receipt: self.taken(name, message, receipt, solo=solo))

    def taken(self, name: str, message: InboundMessage, receipt: Receipt, *, solo: bool = False) -> None:
        """Compare the receipt with that of the model."""
        lane, run = self.lanes[name], self.driver.runs.get(name)
        if isinstance(receipt, Accepted):
            lane.moves_to(receipt.session_id)
        facts = run.facts if run is not None else Facts()
        expected = lane.arrives(message, self.driver.clock.now(), facts, solo=solo)
        if message.message_id is not None:
            self.known.append((name, message, lane.said[-1] if isinstance(expected, Accepted) else None))
        assert type(receipt) is type(expected), f"{receipt} and not {expected}"
        if isinstance(receipt, Rejected) and isinstance(expected, Rejected):
            assert (receipt.reason, receipt.retry_after) == (expected.reason, expected.retry_after)
            assert receipt.text
            assert receipt.retry_after is not None
            return
        assert isinstance(receipt, Accepted)
        for fact in ("seq", "disposition", "merged_into", "dropped", "demoted"):
            assert getattr(receipt, fact) == getattr(expected, fact), fact
        assert receipt.session_key == self.driver.keys[name]
        self.follow_up(name, receipt.disposition)

    def follow_up(self, name: str, disposition: Disposition) -> None:
        """What the message does to the turn that runs."""
        match disposition:
            case Disposition.INTERRUPTS:
                self.driver.note_turn_end(name)
                self.lanes[name].ends(Outcome.INTERRUPTED, self.driver.clock.now())
            case Disposition.ROLLS_BACK:
                self.driver.note_turn_end(name)
                self.lanes[name].ends(Outcome.ROLLED_BACK, self.driver.clock.now())
            case Disposition.STEERS if self.driver.takes_it:
                self.lanes[name].steers()
                self.driver.runs[name].facts.steered += 1
            case _:
                pass

    @precondition(lambda self: self.known)
    @rule(number=numbers)
    def a_platform_delivers_again(self, number: int) -> None:
        name, message, said = self.known[number % len(self.known)]
        if said is None:
            self.known.remove((name, message, said))
            self.writes(name, message)
            return
        receipt = self.driver.do_and_learn(self.driver.gateway.submit(message))
        if isinstance(receipt, Rejected) and (refused := self.refused_again(name, said)) is not None:
            assert (receipt.reason, receipt.retry_after) == (refused.reason, refused.retry_after)
            return
        assert receipt == Duplicate(seq=said.seq, session_key=self.driver.keys[name])
        said.remembered = True

    def refused_again(self, name: str, said: Said) -> Rejected | None:
        """How what was accepted may be refused."""
        run = self.driver.runs.get(name)
        facts = run.facts if run is not None else Facts()
        return self.lanes[name].refuses(said, self.driver.clock.now(), facts)

    @rule(name=lanes, times=st.integers(2, 3))
    def a_platform_delivers_several_times_at_once(self, name: str, times: int) -> None:
        message, submit = self.message(name, 0), self.driver.gateway.submit

        async def deliver() -> list[Receipt]:
            return list(await asyncio.gather(*(submit(message) for _ in range(times))))

        def compare(receipts: list[Receipt]) -> None:
            first, *others = sorted(receipts, key=lambda one: isinstance(one, Duplicate))
            self.taken(name, message, first)
            for one in others:
                if isinstance(first, Accepted):
                    assert one == Duplicate(seq=first.seq, session_key=first.session_key)
                else:
                    assert isinstance(one, Rejected)

        self.driver.do_and_learn(deliver(), compare)

    # People change what they said

    @precondition(lambda self: self.can_be_changed())
    @rule(number=numbers, deletes=seldom)
    def people_change_what_they_said(self, number: int, deletes: bool) -> None:
        found = self.can_be_changed()
        self.changes(*found[number % len(found)], deletes=deletes)

    @rule(name=lanes, number=numbers, deletes=seldom, how=st.sampled_from(["answers", "fails", "works on"]))
    def people_change_what_is_worked_on(self, name: str, number: int, deletes: bool, how: str) -> None:
        if name not in self.driver.runs:
            self.writes(name, self.message(name, 0))
        if (running := self.lanes[name].running) is None:
            return
        said = [one for one in running.whole if one.message.message_id is not None]
        if said:
            self.changes(name, said[number % len(said)], deletes=deletes)
        if how != "works on":
            self.answers(name, how)

    def changes(self, name: str, said: Said, *, deletes: bool) -> None:
        number = next(self.driver.numbers)
        kind, text = (MessageKind.DELETE, "") if deletes else (MessageKind.EDIT, f"e{number};")
        change = msgspec.structs.replace(said.message, kind=kind, revision=number, text=text, attachments=())

        def changed(receipt: Receipt) -> None:
            lane = self.lanes[name]
            lane.changes(change, said, self.driver.clock.now())
            assert isinstance(receipt, Accepted)
            assert (receipt.seq, receipt.disposition) == (len(lane.said), Disposition.APPLIED)
            self.known.append((name, change, lane.said[-1]))

        self.driver.do_and_learn(self.driver.gateway.submit(change), changed)

    def can_be_changed(self) -> list[tuple[str, Said]]:
        """What waits, runs or failed, and what was answered, be it in one row with more."""
        return [
            (name, one)
            for name, lane in self.lanes.items()
            for one in lane.said
            if one.message.message_id is not None
            and not (one.is_change or one.deleted)
            and one.outcome in {None, Outcome.DEAD, *ANSWERED}
        ]

    # Agents work

    @precondition(lambda self: self.driver.runs)
    @rule(number=numbers, how=st.sampled_from(["answers", "is silent", "fails"]))
    def an_agent_ends(self, number: int, how: str) -> None:
        self.answers(one_of(self.driver.runs, number), how)

    def answers(self, name: str, how: str) -> None:
        lane, text = self.lanes[name], f"r{next(self.driver.numbers)};"

        async def answer(_: TurnContext) -> Answer:
            if how == "fails":
                raise ConnectionError
            return text if how == "answers" else Reply("", silent=True)

        def ended() -> None:
            self.driver.note_turn_end(name)
            if how == "fails":
                lane.fails(self.driver.clock.now())
            else:
                lane.ends(Outcome.TURNED, self.driver.clock.now(), *([text] if how == "answers" else []))

        self.driver.order(name, answer, ended)

    @precondition(lambda self: self.driver.runs)
    @rule(number=numbers, how=st.sampled_from(["says", "appends", "calls", "has help"]))
    def an_agent_works_on(self, number: int, how: str) -> None:
        name = one_of(self.driver.runs, number)
        run, lane, text = self.driver.runs[name], self.lanes[name], f"w{next(self.driver.numbers)};"
        call = {"id": text, "type": "function", "function": {"name": "tool", "arguments": "{}"}}

        async def work(turn: TurnContext) -> Answer:
            match how:
                case "says":
                    await turn.say(text)
                case "appends":
                    await turn.append({"role": "assistant", "content": text})
                case "calls":
                    await turn.append({"role": "assistant", "content": None, "tool_calls": [call]})
                case _ if run.facts.sub_work:
                    run.stack.close()
                case _:
                    run.stack.enter_context(turn.sub_work())
            return None

        def worked() -> None:
            lane.replies += [text] if how == "says" else []
            run.facts.sub_work ^= how == "has help"

        self.driver.order(name, work, worked)

    @rule(stubborn=st.booleans(), takes_it=st.booleans())
    def agents_change(self, stubborn: bool, takes_it: bool) -> None:
        self.driver.stubborn, self.driver.takes_it = stubborn, takes_it

    # People overtake, and change the queue

    @rule(name=lanes)
    def a_reset(self, name: str) -> None:
        def reset(entry: SessionEntry | None) -> None:
            lane = self.lanes[name]
            assert (entry is None) == (lane.session_id is None)
            self.driver.overtaken(name)
            if entry is not None:
                assert entry.session_id != lane.session_id
                lane.moves_to(entry.session_id)

        self.driver.do_and_learn(self.driver.store.reset_session(self.driver.keys[name]), reset)

    @rule(name=lanes)
    def a_stop(self, name: str) -> None:
        def stopped(found: Overtaken) -> None:
            lane = self.lanes[name]
            assert found.stopped == (len(lane.running.whole) if lane.running is not None else 0)
            assert found.cancelled == sum(len(one.said) for one in lane.waiting)
            self.driver.overtaken(name)

        self.driver.do_and_learn(self.driver.store.stop_turn(self.driver.keys[name]), stopped)

    @precondition(lambda self: self.with_some("waiting"))
    @rule(which=numbers, number=numbers, to=st.integers(0, 3))
    def the_queue_is_changed(self, which: int, number: int, to: int) -> None:
        store, name = self.driver.store, one_of(self.with_some("waiting"), which)
        key, lane = self.driver.keys[name], self.lanes[name]
        seq = lane.waiting[number % len(lane.waiting)].seqs[0]

        def compare(found: object) -> None:
            assert found == (lane.move(seq, min(to, len(lane.waiting))) if to else lane.cancel(seq))

        self.driver.do_and_learn(
            store.move_queued(key, seq, to) if to else store.cancel_queued(key, seq), compare
        )

    @precondition(lambda self: self.with_some("dead"))
    @rule(which=numbers, number=numbers)
    def a_dead_letter_is_tried_again(self, which: int, number: int) -> None:
        store, name = self.driver.store, one_of(self.with_some("dead"), which)
        key, lane = self.driver.keys[name], self.lanes[name]
        slot = lane.dead[number % len(lane.dead)]

        async def requeue() -> None:
            letters = await store.dead_letters()
            found = next(one for one in letters if (one.session_key, one.seq) == (key, slot.seqs[0]))
            assert found.message.text == slot.said[0].message.text
            await store.requeue(found.item_id)

        self.driver.do_and_learn(requeue(), lambda _: lane.requeue(slot, self.driver.clock.now()))

    def with_some(self, what: str) -> list[str]:
        return [name for name, lane in self.lanes.items() if getattr(lane, what)]

    # Time

    @rule(seconds=st.sampled_from([0.1, 0.4, 2, 70]))
    def time_passes(self, seconds: float) -> None:
        self.driver.do_and_learn(self.driver.clock.advance(seconds=seconds))

    @rule(minutes=st.sampled_from([-90, -1, 90, 700, 1800]))
    def the_clock_is_set(self, minutes: int) -> None:
        self.driver.clock.step(minutes=minutes)
        self.driver.set_back += timedelta(minutes=max(-minutes, 0))
        if minutes < 0:
            self.driver.model.pulls_forward(self.driver.clock.now())
        self.driver.wake_duties()

    @rule()
    def sessions_expire(self) -> None:
        self.driver.do_and_learn(self.driver.store.watcher.sweep())

    # Trouble with the platform

    @rule(how=st.sampled_from(["well", "out of reach", "slow to answer"]))
    def the_platform_is(self, how: str) -> None:
        driver = self.driver
        driver.trouble.close()
        if how != "well":
            outage = driver.platform.outage() if how == "out of reach" else driver.platform.late_ack()
            driver.trouble.enter_context(outage)

    @rule(how=st.sampled_from(["shown", "not shown", "too many", "refused"]))
    def the_next_send_fails(self, how: str) -> None:
        match how:
            case "too many":
                self.driver.platform.rate_limit(20)
            case "refused":
                self.driver.platform.refuses()
            case _:
                self.driver.platform.fails_ambiguously(shown=how == "shown")

    # Ends and beginnings

    @rule(how=st.sampled_from([GatewayDriver.restart, GatewayDriver.crash, GatewayDriver.take_over]))
    def the_process_ends(self, how) -> None:
        how(self.driver)

    @rule(minutes=st.sampled_from([30, 90, 3000]))
    def the_machine_is_off_for_a_while(self, minutes: int) -> None:
        self.driver.crash(timedelta(minutes=minutes))

    @invariant()
    @precondition(lambda self: self.driver is not None)
    def everything_is_as_the_model_says(self) -> None:
        self.driver.compare_with_model()


def one_of(names: Iterable[str], number: int) -> str:
    found = sorted(names)
    return found[number % len(found)]


TestGateway = machine_test(GatewayMachine, soak=(1500, 60))
