"""Workload of a gateway: people talk to it until it is killed; the next one makes good of it.

The journal says what was accepted, what agents began, and what people saw, each before anything else happens.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import anyio

from gateway_sessions import Config, GatewaySessionsError, SessionStore
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.delivery.outbound_messages import GROWING, OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Accepted, Duplicate, InboundMessage, MessageKind
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import AdapterUnavailableError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.runtime.store.open_store import parts_of
from gateway_sessions.storage.transactions.queue import outbox, waiting
from tests.crash.stores import SteppedClock, open_store, query_store

Note = Callable[..., None]
PLATFORM: Final = "telegram"
PATIENCE: Final = 10.0
OTHERS_DIE: Final = 30.0
SCHEDULED = "eve"
"""Whom a schedule is for, and what it asks."""
HALF: Final = "half an answer"
UNSTORED: Final = ("StorageFullError", "StorageUnavailableError")
"""What an agent raises whose rows could not be stored; the turn is then given up, and told so."""
SETTLED: Final = frozenset({"turned", "interrupted", "cancelled", "command"})
AHEAD: Final = 3
"""So many hours a clock is ahead for a while."""


def said_by(person: str) -> SessionSource:
    return SessionSource(platform=PLATFORM, chat_id=person, user_id=person)


class RecordingPlatform:
    """A platform on which whatever is sent is seen at once, and written down as seen."""

    name = ""
    platform = PLATFORM
    capabilities = AdapterCapabilities(edit=True, min_edit_interval=timedelta())

    def __init__(self, note: Note) -> None:
        self._note = note
        self.outages = 0
        """How many sends fail before one is seen."""

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        yield

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        await asyncio.sleep(0)
        if self.outages:
            self.outages -= 1
            raise AdapterUnavailableError(PLATFORM, "is away")
        message_id = idempotency_key
        if idempotency_key.startswith(GROWING):
            message_id += f"#{token_hex(4)}"  # no repeat is recognised
            self._note(shown=message_id, text=message.text)
        elif not message.is_notice:
            self._note(seen=idempotency_key, by=target.chat_id, text=message.text)
        await asyncio.sleep(0)
        return message_id

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        await asyncio.sleep(0)
        self._note(shown=message_id, text=message.text)
        await asyncio.sleep(0)

    async def typing(self, target: ReplyTarget) -> None:
        raise NotImplementedError


@dataclass(slots=True)
class GatewayWorkload:
    """What the child does."""

    home: Path
    config: Config
    clock: SteppedClock
    note: Note
    gates: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    async def steer(self, message: InboundMessage) -> bool:
        """Take whatever is said into a turn."""
        self.note(told=message.message_id)
        return True

    async def run_turn(self, turn: TurnContext) -> str:
        """Call a tool that leaves a trace, let the answer grow, wait if told to, and answer."""
        text = turn.text
        self.note(
            begun=turn.session_key, texts=[one.message_id for one in turn.messages], attempt=turn.attempt
        )
        if "tool" in text:
            call = {"id": f"c{turn.seq}", "type": "function", "function": {"name": "act", "arguments": "{}"}}
            await turn.append({"role": "assistant", "content": None, "tool_calls": [call]})
            await turn.append({"role": "tool", "content": "done", "tool_call_id": f"c{turn.seq}"})
        if "grow" in text:
            await turn.show(HALF)
            self.note(kept=f":{turn.session_key}:{turn.seq}:")
        if "wait" in text:
            await self.gates[turn.session_key].wait()
        return f"answer to {text}"

    async def person_says(self, gateway: Gateway, person: str, number: int, text: str) -> None:
        """Somebody writes; the journal knows once it is accepted."""
        message = InboundMessage(source=said_by(person), text=text, message_id=f"{person}{number}")
        self.note(submits=message.message_id)
        try:
            receipt = await gateway.submit(message)
        except GatewaySessionsError as error:
            self.note(refused=message.message_id, problem=type(error).__name__)
            return
        if isinstance(receipt, Accepted | Duplicate):
            self.note(accepted=message.message_id, seq=receipt.seq, lane=receipt.session_key)

    async def person_edits(self, gateway: Gateway, person: str, number: int, text: str | None) -> None:
        """Somebody edits what they said, or takes it back; the journal knows once that is accepted."""
        name = f"{person}{number}"
        kind = MessageKind.DELETE if text is None else MessageKind.EDIT
        change = InboundMessage(
            source=said_by(person), text=text or "", message_id=name, kind=kind, revision=1
        )
        self.note(changing=name)
        try:
            receipt = await gateway.submit(change)
        except GatewaySessionsError as error:
            self.note(refused=name, problem=type(error).__name__)
            return
        if isinstance(receipt, Accepted | Duplicate):
            self.note(changed=name, says=text)

    @asynccontextmanager
    async def gateway(self, witness: RecordingPlatform) -> AsyncGenerator[Gateway]:
        store = open_store(self.home, self.config, clock=self.clock)
        async with store, Gateway(store, agent=self, adapters=[witness]) as gateway:
            yield gateway

    async def run(self) -> None:
        """Two conversations at once, with tools, a queue, repeats, an outage and a new beginning."""
        witness = RecordingPlatform(self.note)
        async with self.gateway(witness) as gateway:
            for person in ("ann", "bob"):
                await self.person_says(gateway, person, 1, "one tool wait")
            for number in (2, 3):
                self.clock.advance(seconds=2)
                await self.person_says(gateway, "ann", number, f"next {number}")
                await self.person_says(gateway, "ann", number, f"next {number}")
            for person in ("ann", "bob"):
                self.gates[gateway.store.key_for(said_by(person))].set()
            await wait_until_quiet(gateway)
            witness.outages = 1
            await self.person_says(gateway, "bob", 2, "two tool")
            await wait_until_quiet(gateway)
            self.clock.advance(minutes=1)
            await self._starts_anew(gateway)
            await self.person_says(gateway, "bob", 3, "three grow")
            await wait_until_quiet(gateway)
        await self._waits_for_a_gateway()
        for _ in range(2):
            await self._has_no_time(witness)
        async with self.gateway(witness) as gateway:
            self.gates[gateway.store.key_for(said_by("cid"))].set()
            await self.person_says(gateway, "bob", 4, "/status")
            await wait_until_quiet(gateway)
            await self.person_edits(gateway, "bob", 1, "one, edited")
            await self.person_edits(gateway, "bob", 3, None)
            await self._runs_a_schedule(gateway)
            await self._sees_a_wrong_clock(gateway)

    async def _has_no_time(self, witness: RecordingPlatform) -> None:
        """A turn that is told more while it runs, then changed, and cut off by a drain."""
        async with self.gateway(witness) as gateway:
            store, lane = gateway.store, gateway.store.key_for(said_by("cid"))
            await self.person_says(gateway, "cid", 1, "one tool grow wait")
            await wait_until_turn_runs(gateway, lane)
            try:
                await store.set_busy_mode(lane, BusyMode.STEER)
            except GatewaySessionsError as error:
                self.note(refused="mode", problem=type(error).__name__)
            for number in (2, 3, 4):
                await self.person_says(gateway, "cid", number, f"and {number}")
            await self.person_edits(gateway, "cid", 2, "and 2, edited")
            await self.person_edits(gateway, "cid", 3, None)
            await gateway.drain(timedelta(0))

    async def _runs_a_schedule(self, gateway: Gateway) -> None:
        """The gateway speaks first, at a time that has come."""
        target, at = f"{PLATFORM}:{SCHEDULED}", self.clock.now()
        try:
            await gateway.schedules.add("morning", to=target, at=at, prompt=SCHEDULED)
        except GatewaySessionsError as error:
            self.note(refused="schedule", problem=type(error).__name__)
            return
        self.note(scheduled="morning")
        await wait_until_quiet(gateway)

    async def _sees_a_wrong_clock(self, gateway: Gateway) -> None:
        """What comes in while the clock is ahead is answered although that is set right meanwhile."""
        self.clock.advance(hours=AHEAD)
        await self.person_says(gateway, "dan", 1, "one wait")
        await self.person_says(gateway, "dan", 2, "two")
        self.clock.advance(hours=-AHEAD)
        self.gates[gateway.store.key_for(said_by("dan"))].set()
        gateway.look_again()
        await self.person_says(gateway, "dan", 3, "three")
        await wait_until_quiet(gateway)

    async def _waits_for_a_gateway(self) -> None:
        """A message that comes while no gateway runs, only a store."""
        async with open_store(self.home, self.config, clock=self.clock) as store:
            message = InboundMessage(source=said_by("ann"), text="six", message_id="ann6")
            receipt = await store.enqueue(message)
            if isinstance(receipt, Accepted):
                self.note(accepted=message.message_id, seq=receipt.seq, lane=receipt.session_key)

    async def _starts_anew(self, gateway: Gateway) -> None:
        """A reset while a turn runs and another one waits."""
        lane = gateway.store.key_for(said_by("ann"))
        self.gates.clear()
        await self.person_says(gateway, "ann", 4, "four wait")
        self.clock.advance(seconds=2)
        await self.person_says(gateway, "ann", 5, "five")
        self.note(resets=lane)
        try:
            await gateway.store.reset_session(lane)
        except GatewaySessionsError as error:
            self.note(refused="reset", problem=type(error).__name__)
        else:
            self.note(reset=lane)
        await wait_until_quiet(gateway)


async def wait_until_quiet(gateway: Gateway) -> None:
    """Wait until no turn runs or waits, and nothing is being sent."""
    with anyio.move_on_after(PATIENCE):
        while gateway.busy:  # noqa: ASYNC110 -- nobody tells a test
            await asyncio.sleep(0.002)


async def wait_until_turn_runs(gateway: Gateway, lane: str) -> None:
    """Wait until the agent works on a turn of that lane."""
    with anyio.move_on_after(PATIENCE):
        while (turn := gateway.running_turn(lane)) is None or turn.agent is None:  # noqa: ASYNC110 -- as above
            await asyncio.sleep(0.002)
    await asyncio.sleep(0.01)


@dataclass(slots=True)
class JournalOfTalk:
    """What the journal says."""

    accepted: dict[str, int] = field(default_factory=dict)
    """By message id, its place on its lane."""
    shown: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By message that grew, what people saw in it."""
    kept: set[str] = field(default_factory=set[str])
    """Those of them that the next process must know."""
    seen: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By reply, what people saw of it."""
    unstored: set[str | None] = field(default_factory=set[str | None])
    """Messages that are kept as dead letters, because their agents could not store what they did."""
    says: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """What messages say since they were changed; None: nothing any more."""
    begun: Counter[str] = field(default_factory=Counter[str])
    """How often agents began to answer a message."""
    scheduled: int = 0
    """How many schedules the program was told are stored."""


def read_talk_journal(journal: Path) -> JournalOfTalk:
    heard = JournalOfTalk()
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            facts: dict[str, Any] = json.loads(line)
        except ValueError:
            break
        note_input(facts, heard)
        note_output(facts, heard)
    return heard


def note_input(facts: dict[str, Any], heard: JournalOfTalk) -> None:
    """Note what people said, and agents heard."""
    if "accepted" in facts:
        heard.accepted[facts["accepted"]] = facts["seq"]
    if "changed" in facts:
        heard.says[facts["changed"]] = facts["says"]
    if "begun" in facts:
        heard.begun.update(facts["begun"])


def note_output(facts: dict[str, Any], heard: JournalOfTalk) -> None:
    """Note what people saw."""
    if "seen" in facts:
        heard.seen[facts["seen"]].append(facts["text"])
    if "shown" in facts:
        heard.shown[facts["shown"]].append(facts["text"])
    if "kept" in facts:
        heard.kept.add([one for one in heard.shown if facts["kept"] in one][-1])
    heard.scheduled += "scheduled" in facts


async def check_gateway(home: Path, journal: Path, config: Config, clock: SteppedClock, note: Note) -> None:
    """The next gateway answers all that was accepted, once, in order, and says what may be a repeat."""
    before = read_talk_journal(journal)
    talk = GatewayWorkload(home, config, clock, note)
    for gate in ("ann", "bob", "cid", "dan"):
        talk.gates[f"agent:main:telegram:dm:{gate}"].set()
    patient = replace(config, agent=replace(config.agent, max_restart_attempts=9))
    talk.config = patient
    async with talk.gateway(RecordingPlatform(note)) as gateway:
        await wait_for_dead_nodes(gateway.store)
        await let_all_replies_go_out(gateway, clock)
        letters = await gateway.store.dead_letters()
        before.unstored = {one.message.message_id for one in letters if one.message is not None}
        await check_store(home, config, before)
        assert not await gateway.store.db.read(outbox.count_owed_by_account), "a reply is still owed"
        assert not await gateway.store.db.read(partial(outbox.dead_replies, 10)), "a reply was given up"
        for dead in await gateway.store.dead_letters():
            assert dead.problem.startswith(UNSTORED), f"a message was given up: {dead.problem}"
    check_shown_replies(read_talk_journal(journal))


async def wait_for_dead_nodes(store: SessionStore) -> None:
    """Where there are nodes, wait until those before this one are known to be dead, and their lanes free."""
    cluster = parts_of(store).cluster
    with anyio.fail_after(OTHERS_DIE):
        while cluster is not None and (len(cluster.membership.nodes) > 1 or cluster.membership.lost):
            await cluster.membership.wait_for_next_survey()


async def let_all_replies_go_out(gateway: Gateway, clock: SteppedClock) -> None:
    """Let time pass until nothing is left to do."""
    for _ in range(20):
        await wait_until_quiet(gateway)
        owed = await gateway.store.db.read(outbox.count_owed_by_account)
        if not owed and not await gateway.store.db.read(waiting.waiting_lanes):
            return
        clock.advance(minutes=2)
        gateway.look_again()
        await asyncio.sleep(0.01)


async def check_store(home: Path, config: Config, told: JournalOfTalk) -> None:
    """Everything accepted came to an end, is in its transcript once, and in the order of its lane."""
    rows = await query_store(home, config, "SELECT event, session_key, seq, outcome FROM inbox ORDER BY seq")
    said = await query_store(
        home,
        config,
        "SELECT session_key, platform_message_id, messages.extra, content, parts FROM messages"
        " JOIN sessions USING (session_id) WHERE role = 'user' AND hidden_because IS NULL"
        " ORDER BY message_id",
    )
    ends = {event: (seq, outcome) for event, _, seq, outcome in rows}
    for message_id, place in told.accepted.items():
        seq, outcome = ends.get(event_name(message_id), (None, None))
        came = f"{message_id} was accepted, and came to {outcome}"
        assert outcome in SETTLED or message_id in told.unstored, came
        assert seq == place, f"{message_id} was told place {place}, and has {seq}"
    for lane in {row[1] for row in rows}:
        places = [row[2] for row in rows if row[1] == lane]
        assert places == list(range(1, len(places) + 1)), f"gaps in {lane}: {places}"
        check_lane([(row[1], row[2]) for row in said if row[0] == lane and row[3] != SCHEDULED])
    runs = sum(row[3] == SCHEDULED for row in said)
    assert told.scheduled <= runs <= 1, f"a schedule for one time was told to the agent {runs} times"
    texts = {
        name: f"{text} {parts}" for _, first, extra, text, parts in said for name in ids_of(first, extra)
    }
    check_changes(told, texts)


def check_changes(told: JournalOfTalk, texts: dict[str, str]) -> None:
    """What people changed says what they said last, and what they took back is gone."""
    for name, text in told.says.items():
        if text is None:
            assert name not in texts, f"{name} was taken back, and stands in a transcript: {texts[name]}"
        else:
            assert text in texts.get(name, ""), (
                f"the edit of {name} was accepted, and is lost: {texts.get(name)}"
            )


def ids_of(first: str, extra: str | None) -> list[str]:
    """The messages that a row of a transcript holds."""
    return json.loads(extra or "{}").get("platform_message_ids") or [first]


def event_name(message_id: str) -> str:
    """The name of the event that brought the message."""
    person = message_id.rstrip("0123456789")
    return InboundMessage(source=said_by(person), text="?", message_id=message_id).idempotency_key or ""


def check_lane(rows: list[tuple[str, str | None]]) -> None:
    """Each message is in one transcript, once, and none before an earlier one."""
    order = [
        int(message_id.lstrip("abcdino")) for first, extra in rows for message_id in ids_of(first, extra)
    ]
    assert len(set(order)) == len(order), f"in a transcript twice: {order}"
    assert order == sorted(order), f"reordered: {order}"


def check_shown_replies(heard: JournalOfTalk) -> None:
    """A reply is seen; one that is seen again says that it may be a repeat. None stays half as it grew."""
    for reply, texts in heard.seen.items():
        assert all(text.startswith(REPEATED) for text in texts[1:]), f"{reply} doubled unmarked: {texts}"
    for message_id, texts in heard.shown.items():
        assert texts[-1] != HALF or message_id not in heard.kept, f"{message_id} stays half an answer"
    whole = [texts[-1] for texts in heard.shown.values() if texts[-1].startswith("answer to")]
    assert len(set(whole)) == len(whole), f"grown twice: {whole}"
