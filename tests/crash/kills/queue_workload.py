"""Workload of a queue: a program takes messages in and works on turns until it is killed.

The journal says what was acknowledged: that a message was accepted, how its turn ended, what is owed for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from gateway_sessions import (
    Accepted,
    BusyMode,
    BusyRules,
    Config,
    FencedError,
    GatewaySessionsError,
    InboundMessage,
    SessionSource,
    SessionStore,
    Turn,
)
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.queue import Owed
from gateway_sessions.runtime.store.database_opening import DATABASE_FILE
from gateway_sessions.testing.inside import queue_of
from tests.crash.kills.gateway_workload import wait_for_dead_nodes
from tests.crash.stores import SteppedClock, open_store, query_store

Note = Callable[..., None]
APART: Final = BusyRules(debounce=timedelta(0))
COLLECTING: Final = BusyRules(mode=BusyMode.COLLECT)
LATE: Final = "said too late"
"""What a turn would write that has lost its lane."""


def lane_of(name: str) -> str:
    return f"agent:main:telegram:dm:{name[0]}"


def message(name: str) -> InboundMessage:
    """One of the lane that its name begins with."""
    source = SessionSource(platform="telegram", chat_id=name[0], user_id=f"person-{name[0]}")
    return InboundMessage(source=source, text=f"this is {name}", message_id=name)


def reply(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@dataclass(slots=True)
class QueueWorkload:
    """What the child does."""

    home: Path
    config: Config
    clock: SteppedClock
    note: Note
    places: dict[str, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Turns that end in every way there is, and one that does not end."""
        async with open_store(self.home, self.config, clock=self.clock) as store:
            await self._goes_on(store)
            await self._is_overtaken(store)
            await self._fails_and_is_taken_back(store)
            await self._joins(store)
            await self._accept(store, "d1")
            await self._begin(store, "d")
        async with open_store(self.home, self.config, clock=self.clock) as store:
            turn = await self._begin(store, "d")
            await self._end_turn(turn, "turned")

    async def _goes_on(self, store: SessionStore) -> None:
        await asyncio.gather(*(self._accept(store, name) for name in ("a1", "b1", "c1")))
        for name in ("a2", "a3", "a2"):
            await self._accept(store, name)
        turn = await self._begin(store, "a")
        if turn is None:
            return
        await turn.append(reply("let me see"))
        steered = ["a2"] if await turn.steer(self.places.get("a2", 0)) else []
        following = await self._end_turn(turn, "turned", *steered, go_on=True)
        await self._end_turn(following, "turned")

    async def _is_overtaken(self, store: SessionStore) -> None:
        await self._accept(store, "a4")
        await self._accept(store, "a5")
        turn = await self._begin(store, "a")
        running = message_names(turn)
        waiting = [one.message.message_id for one in await store.list_queued(lane_of("a")) if not one.running]
        self.note(tries=[*running, *waiting])
        await store.reset_session(lane_of("a"))
        self.note(ended="cancelled", messages=waiting)
        self.note(ended="interrupted", messages=running)
        if turn is not None:
            try:
                await turn.commit([reply(LATE)], replies=[owed(turn, LATE)])
            except FencedError:
                self.note(fenced=turn.token)
        await self._accept(store, "a6")

    async def _fails_and_is_taken_back(self, store: SessionStore) -> None:
        await self._accept(store, "b2")
        await self._accept(store, "b3")
        await self._end_turn(await self._begin(store, "b"), "dead")
        self.note(tries=["b2"])
        if await store.cancel_queued(lane_of("b"), self.places.get("b2", 0)):
            self.note(ended="cancelled", messages=["b2"])
        turn = await self._begin(store, "b")
        if turn is not None:
            await turn.append(reply("let me see"))
        await self._end_turn(turn, "rolled_back")
        for letter in await store.dead_letters():
            self.note(tries=[letter.message.message_id if letter.message else ""])
            await store.requeue(letter.item_id)
        turn = await self._begin(store, "b")
        if turn is not None:
            await turn.append(reply("let me see"))
            await turn.release(counted=True)
        await self._end_turn(await self._begin(store, "b"), "interrupted")

    async def _joins(self, store: SessionStore) -> None:
        for name in ("c2", "c3"):
            await self._accept(store, name, COLLECTING)
        self.clock.advance(seconds=5)
        await self._end_turn(await self._begin(store, "c"), "turned")

    async def _accept(self, store: SessionStore, name: str, rules: BusyRules = APART) -> None:
        try:
            receipt = await store.enqueue(message(name), rules=rules)
        except GatewaySessionsError as error:
            self.note(refused=name, problem=type(error).__name__)
        else:
            if isinstance(receipt, Accepted):
                self.places[name] = receipt.seq
                self.note(accepted=name, seq=receipt.seq)

    async def _begin(self, store: SessionStore, lane: str) -> Turn | None:
        return await store.claim(lane_of(lane))

    async def _end_turn(
        self, turn: Turn | None, outcome: str, *steered: str, go_on: bool = False
    ) -> Turn | None:
        """End a turn like this; the lane's next one, if it goes on."""
        if turn is None:
            return None
        names = [*message_names(turn), *steered]
        self.note(tries=names)
        text = f"{outcome} {names[0]} {turn.token}"
        replies = [owed(turn, text)]
        match outcome:
            case "turned":
                ended = await turn.commit([reply(text)], replies=replies, go_on=go_on)
            case "dead":
                ended = await turn.fail("no power", replies=replies)
            case "rolled_back":
                ended = await turn.roll_back("somebody", replies=replies)
            case _:
                ended = await turn.interrupt("somebody", [reply(text)], replies=replies)
        self.note(ended=outcome, messages=names, owes=text)
        return ended.next


def message_names(turn: Turn | None) -> list[str]:
    """The messages that a turn began with."""
    return [one.message_id or "" for one in turn.messages] if turn is not None else []


def owed(turn: Turn, text: str) -> Owed:
    target = ReplyTarget.answering(turn.messages[0])
    return Owed(target=target, message=OutboundMessage(text=text), owner=turn.entry.owner, seq=turn.seq)


@dataclass(slots=True)
class JournalOfQueue:
    """What the journal says."""

    places: dict[str, int] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    """How the turn of a message ended, unless something was tried since that may have changed it."""
    owed: list[str] = field(default_factory=list)


def read_queue_journal(journal: Path) -> JournalOfQueue:
    known = JournalOfQueue()
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            facts: dict[str, Any] = json.loads(line)
        except ValueError:
            break
        if "accepted" in facts:
            known.places[facts["accepted"]] = facts["seq"]
        for name in facts.get("tries", ()):
            known.ends.pop(name, None)
        for name in facts["messages"] if "ended" in facts else ():
            known.ends[name] = facts["ended"]
        known.owed += [facts["owes"]] if "owes" in facts else []
    return known


async def check_queue(home: Path, journal: Path, config: Config, clock: SteppedClock) -> None:
    """All that was acknowledged is so, and all that was accepted comes to an end in the next process."""
    known = read_queue_journal(journal)
    if await has_tables(home, config):
        await check_acknowledged(home, config, known)
    else:
        assert not known.places, "the database is gone"
    patient = replace(config, agent=replace(config.agent, max_restart_attempts=9))
    async with open_store(home, patient, clock=clock) as store:
        await wait_for_dead_nodes(store)
        while (turn := await store.claim()) is not None:
            await turn.commit([reply("at last")])
        for name in known.places:
            again = await store.enqueue(message(name))
            assert again.seq == known.places[name], f"{name} is not known any more"  # type: ignore[union-attr]
        assert queue_of(store).total_waiting == 0
    await check_settled(home, config, known)


async def has_tables(home: Path, config: Config) -> bool:
    """Whether there is a database with tables; on a server there always is one by now."""
    if config.sessiondb.url is not None:
        return True
    return (home / DATABASE_FILE).exists() and bool(
        await query_store(home, config, "SELECT 1 FROM sqlite_master")
    )


async def check_acknowledged(home: Path, config: Config, known: JournalOfQueue) -> None:
    rows = await query_store(home, config, "SELECT event, session_key, seq, outcome FROM inbox")
    found = {event.split("\x1f")[2]: (key, seq, outcome) for event, key, seq, outcome in rows}
    for name, seq in known.places.items():
        assert name in found, f"{name} was accepted, and is lost"
        assert found[name][:2] == (lane_of(name), seq), f"{name} was told place {seq}, and has {found[name]}"
    for name, outcome in known.ends.items():
        assert found[name][2] == outcome, f"{name} was {outcome}, and is {found[name][2]}"
    replies = [
        json.loads(row[0])["text"] for row in await query_store(home, config, "SELECT content FROM outbox")
    ]
    assert len(set(replies)) == len(replies), f"owed twice: {replies}"
    assert set(known.owed) <= set(replies), f"owed no more: {set(known.owed) - set(replies)}"
    assert LATE not in replies


async def check_settled(home: Path, config: Config, known: JournalOfQueue) -> None:
    unsettled = await query_store(home, config, "SELECT event FROM inbox WHERE outcome IS NULL")
    assert not unsettled, "something never came to an end"
    given_up = await query_store(home, config, "SELECT session_key FROM inbox WHERE outcome = 'dead'")
    dead = {row[0] for row in given_up}
    assert dead <= {lane_of("b")}, f"given up without having failed: {dead}"
    lanes: dict[str, list[int]] = {}
    for key, seq in await query_store(
        home, config, "SELECT session_key, seq FROM inbox ORDER BY session_key, seq"
    ):
        lanes.setdefault(key, []).append(seq)
    for key, places in lanes.items():
        assert places == list(range(1, len(places) + 1)), f"gaps in {key}: {places}"
    said = await query_store(
        home,
        config,
        "SELECT platform_message_id, extra FROM messages WHERE role = 'user' AND hidden_because IS NULL"
        " ORDER BY message_id",
    )
    names = [
        name
        for first, extra in said
        for name in json.loads(extra or "{}").get("platform_message_ids") or [first]
    ]
    assert len(set(names)) == len(names), f"in transcripts twice: {names}"
    for lane in "acd":  # on lane b, something is tried again later
        assert of_lane(names, lane) == sorted(of_lane(names, lane)), f"reordered: {names}"
    ended = await query_store(home, config, "SELECT event FROM inbox WHERE outcome = 'turned'")
    turned = {row[0].split("\x1f")[2] for row in ended}
    assert turned <= set(names), f"turned, and in no transcript: {turned - set(names)}"
    assert (LATE,) not in await query_store(home, config, "SELECT content FROM messages")


def of_lane(names: Iterable[str], lane: str) -> list[str]:
    return [one for one in names if one.startswith(lane)]
