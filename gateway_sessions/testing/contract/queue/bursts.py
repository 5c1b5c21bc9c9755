"""Contract tests of edits and deletions of single messages of a burst, at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import permutations
from typing import Final

import pytest

from gateway_sessions import (
    Accepted,
    Duplicate,
    InboundMessage,
    Receipt,
    Rejected,
    Scope,
    SessionSource,
    SessionStore,
    Turn,
    build_session_key,
)
from gateway_sessions.adapters import MessageKind
from gateway_sessions.queue import Disposition, RejectReason
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import COLLECTING, OpenStore, StoreContract, begin, reply
from gateway_sessions.testing.inside import BEGINNING, consistency, queue_of, transcript_version

SIZES: Final = range(2, 9)
MARKED: Final = "hunter2"
"""The text of every message that is changed: nobody may find it afterwards."""
many: Final = pytest.mark.timeout(120)
"""Marks tests of many bursts, which take a server a while."""
ROOM: Final = SessionSource(
    platform="telegram", chat_type="group", chat_id="room", user_id="alice", user_name="Alice"
)


@dataclass(slots=True)
class Burst:
    """A burst, and the one message of it that is changed."""

    size: int
    at: int
    kind: MessageKind
    source: SessionSource = field(init=False)

    def __post_init__(self) -> None:
        chat = f"{self.kind}-{self.size}-{self.at}"
        self.source = SessionSource(platform="telegram", chat_id=chat, user_id=chat)

    @property
    def lane(self) -> str:
        """Return the lane of the burst."""
        return build_session_key(self.source)

    @property
    def texts(self) -> list[str]:
        """Return the texts of its messages."""
        return [f"{MARKED} {one}" if one == self.at else f"text {one}" for one in range(self.size)]

    @property
    def left(self) -> str:
        """Return the text of its turn after the change."""
        texts: list[str | None] = [*self.texts]
        texts[self.at] = "better" if self.kind is MessageKind.EDIT else None
        return "\n".join(one for one in texts if one is not None)

    @property
    def change(self) -> InboundMessage:
        """Return the edit or the deletion."""
        text = "better" if self.kind is MessageKind.EDIT else ""
        return self.message(self.at, text, kind=self.kind, revision=int(self.kind is MessageKind.EDIT))

    def message(
        self, at: int, text: str, *, kind: MessageKind = MessageKind.NEW, revision: int = 0
    ) -> InboundMessage:
        """Return an event about one of its messages."""
        return InboundMessage(
            source=self.source, text=text, message_id=f"m{at}", kind=kind, revision=revision
        )


BURSTS: Final = [
    Burst(size, at, kind)
    for kind in (MessageKind.EDIT, MessageKind.DELETE)
    for size in SIZES
    for at in range(size)
]
"""Bursts of 2 to 8 messages, any of which is edited or deleted."""
SAMPLE: Final = [
    Burst(size, at, kind)
    for kind in (MessageKind.EDIT, MessageKind.DELETE)
    for size, at in ((2, 0), (3, 1), (8, 7))
]


async def say(store: SessionStore, bursts: Sequence[Burst], clock: FakeClock) -> None:
    """Accept all bursts, each as one turn."""
    for burst in bursts:
        for at, text in enumerate(burst.texts):
            receipt = await store.enqueue(burst.message(at, text), rules=COLLECTING)
            assert isinstance(receipt, Accepted)
            assert (receipt.merged_into is None) == (at == 0)
    clock.step(timedelta(seconds=5))


async def change(store: SessionStore, burst: Burst) -> None:
    """Deliver the change twice, and carry it out."""
    applied(await store.enqueue(burst.change))
    again = await store.enqueue(burst.change)
    assert isinstance(again, Duplicate), again


def applied(receipt: Receipt) -> None:
    """Expect that the change was carried out."""
    assert isinstance(receipt, Accepted), receipt
    assert receipt.disposition is Disposition.APPLIED


async def finish(store: SessionStore, burst: Burst) -> None:
    """Answer the turn; check that a model is sent what is left, and that nobody finds the old text."""
    turn = await begin(store, burst.lane)
    assert "\n".join(one.text for one in turn.messages) == burst.left
    await commit(turn)
    await look(store, burst)


async def commit(turn: Turn) -> None:
    """Answer the messages of the turn."""
    await turn.commit([reply("well")])


async def look(store: SessionStore, burst: Burst) -> None:
    """Check that the transcript has one row with what is left, and that a model is sent nothing else."""
    session_id = await store.peek_session_id(burst.lane) or ""
    (row,) = [one for one in await store.db.get_messages(session_id) if one.role == "user"]
    assert row.text == burst.left
    gone = burst.kind is MessageKind.DELETE
    ids = [f"m{one}" for one in range(burst.size) if not (gone and one == burst.at)]
    assert row.extra.get("platform_message_ids", [row.platform_message_id]) == ids
    chats = await store.load_transcript(session_id)
    told = [one["content"] for one in chats if one["role"] == "user" and one["content"] != BEGINNING]
    assert told == [burst.left]
    assert [one["role"] for one in chats] == ["user", "assistant"] * (len(chats) // 2)
    assert chats[-1]["content"].endswith("well")
    versions = await store.db.get_message_versions(session_id, row.message_id)
    assert not gone or versions == []


async def nobody_finds_what_was_changed(store: SessionStore) -> None:
    """Check that no search finds the old text, and that the store has no faults."""
    found = await store.db.search_messages(MARKED, scope=Scope.operator())
    assert found.hits == ()
    assert await store.db.read(consistency.find_all) == []


class BurstContract(StoreContract):
    """Tests edits and deletions of single messages of bursts, at any time, once and again."""

    @many
    async def test_a_change_before_the_turn_counts(self, store: SessionStore, clock: FakeClock) -> None:
        await say(store, BURSTS, clock)
        for burst in BURSTS:
            await change(store, burst)
            await finish(store, burst)
        await nobody_finds_what_was_changed(store)

    @many
    async def test_a_change_during_the_turn(self, store: SessionStore, clock: FakeClock) -> None:
        await say(store, BURSTS, clock)
        for number, burst in enumerate(BURSTS):
            turn = await begin(store, burst.lane)
            if number % 2:
                await turn.append(reply("let me see"))
            await change(store, burst)
            await commit(turn)
            await look(store, burst)
        await nobody_finds_what_was_changed(store)

    @many
    async def test_a_change_after_the_turn_counts(self, store: SessionStore, clock: FakeClock) -> None:
        await say(store, BURSTS, clock)
        for burst in BURSTS:
            await commit(await begin(store, burst.lane))
            await change(store, burst)
            await look(store, burst)
        await nobody_finds_what_was_changed(store)

    @many
    @pytest.mark.parametrize("when", ["waits", "was cut off", "was cut off with rows", "was answered"])
    async def test_a_change_after_a_restart(self, open_store: OpenStore, clock: FakeClock, when: str) -> None:
        async with open_store() as store:
            await say(store, BURSTS, clock)
            for burst in BURSTS if when != "waits" else ():
                turn = await begin(store, burst.lane)
                if when == "was cut off with rows":
                    await turn.append(reply("let me see"))
                if when == "was answered":
                    await commit(turn)
        async with open_store() as store:
            for burst in BURSTS:
                await change(store, burst)
                if when == "was answered":
                    await look(store, burst)
                else:
                    await finish(store, burst)
            await nobody_finds_what_was_changed(store)
        async with open_store() as store:
            for burst in BURSTS:
                assert isinstance(await store.enqueue(burst.change), Duplicate)

    @pytest.mark.parametrize("change_when", ["it ran", "it had failed"])
    async def test_a_change_of_a_turn_that_failed(
        self, store: SessionStore, clock: FakeClock, change_when: str
    ) -> None:
        await say(store, SAMPLE, clock)
        for burst in SAMPLE:
            turn = await begin(store, burst.lane)
            if change_when == "it ran":
                await change(store, burst)
            await turn.fail("no power")
            if change_when == "it had failed":
                await change(store, burst)
            letters = [one for one in await store.dead_letters() if one.session_key == burst.lane]
            assert "\n".join(one.message.text for one in letters[::-1] if one.message) == burst.left
            await store.requeue(letters[-1].item_id)
            await finish(store, burst)
        await nobody_finds_what_was_changed(store)

    @pytest.mark.parametrize("while_it", ["waits", "runs", "is answered"])
    async def test_a_row_is_hidden_once_all_its_messages_are_deleted(
        self, store: SessionStore, clock: FakeClock, while_it: str
    ) -> None:
        orders = [*permutations(range(3))]
        for number, order in enumerate(orders):
            burst = Burst(3, number, MessageKind.DELETE)
            await say(store, [burst], clock)
            turn = None if while_it == "waits" else await begin(store, burst.lane)
            if turn is not None and while_it == "is answered":
                await commit(turn)
            for at in order:
                applied(await store.enqueue(burst.message(at, "", kind=MessageKind.DELETE)))
            if turn is None:
                assert await store.claim(burst.lane) is None
                continue
            if not turn.ended:
                await commit(turn)
            stored = await store.db.get_messages(turn.entry.session_id)
            assert [one.role for one in stored] == ["assistant"]
            chats = await store.load_transcript(turn.entry.session_id)
            assert [one["role"] for one in chats] == ["user", "assistant"]  # a model is told of a beginning
        assert await store.db.read(consistency.find_all) == []

    @pytest.mark.parametrize("while_it", ["waits", "runs", "is answered", "is answered alone"])
    async def test_an_older_edit_that_comes_later_changes_nothing(
        self, store: SessionStore, clock: FakeClock, while_it: str
    ) -> None:
        burst = Burst(1 if while_it.endswith("alone") else 3, 0, MessageKind.EDIT)
        await say(store, [burst], clock)
        turn = None if while_it == "waits" else await begin(store, burst.lane)
        if turn is not None and while_it.startswith("is answered"):
            await commit(turn)
        for revision, text in ((2, "second"), (1, "first"), (4, "fourth"), (3, "third")):
            edit = burst.message(0, text, kind=MessageKind.EDIT, revision=revision)
            applied(await store.enqueue(edit))
        if turn is None or not turn.ended:
            await commit(turn or await begin(store, burst.lane))
        await self._says(store, burst, "fourth")
        for revision, text in ((3, "third, again"), (4, "fourth")):
            edit = burst.message(0, text, kind=MessageKind.EDIT, revision=revision)
            assert isinstance(await store.enqueue(edit), Duplicate)
        await self._says(store, burst, "fourth")

    @pytest.mark.parametrize("revisions", [(0, 0), (1, 2), (2, 1)])
    async def test_edits_that_come_together_are_ordered_by_their_numbers_else_as_they_came(
        self, store: SessionStore, clock: FakeClock, revisions: tuple[int, int]
    ) -> None:
        bursts = [Burst(2, number, MessageKind.EDIT) for number in range(2)]
        await say(store, bursts, clock)
        for burst in bursts:
            if burst.at:
                await commit(await begin(store, burst.lane))
            edits = [
                burst.message(0, f"edit {number}", kind=MessageKind.EDIT, revision=revision)
                for number, revision in enumerate(revisions)
            ]
            for receipt in await asyncio.gather(*map(store.enqueue, edits)):
                applied(receipt)
            if not burst.at:
                await commit(await begin(store, burst.lane))
            await self._says(store, burst, "edit 0" if revisions == (2, 1) else "edit 1")

    async def test_an_edit_without_a_number_is_carried_out_whenever_it_comes(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        burst = Burst(2, 0, MessageKind.EDIT)
        await say(store, [burst], clock)
        await commit(await begin(store, burst.lane))
        for text in ("one", "two", "one"):
            applied(await store.enqueue(burst.message(0, text, kind=MessageKind.EDIT)))
            await self._says(store, burst, text)

    async def _says(self, store: SessionStore, burst: Burst, text: str) -> None:
        session_id = await store.peek_session_id(burst.lane) or ""
        (row,) = [one for one in await store.db.get_messages(session_id) if one.role == "user"]
        assert row.text == "\n".join([text, *burst.texts[1:]])

    async def test_what_is_refused_is_no_duplicate_when_it_comes_again(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        """Some platforms deliver an edit before the message."""
        burst = Burst(2, 1, MessageKind.EDIT)
        for _ in range(2):
            receipt = await store.enqueue(burst.change)
            assert isinstance(receipt, Rejected)
            assert receipt.reason is RejectReason.UNKNOWN
        await say(store, [burst], clock)
        await change(store, burst)
        await finish(store, burst)

    async def test_what_was_deleted_is_not_edited_any_more(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        burst = Burst(3, 1, MessageKind.DELETE)
        await say(store, [burst], clock)
        await commit(await begin(store, burst.lane))
        await change(store, burst)
        late = await store.enqueue(burst.message(1, "back", kind=MessageKind.EDIT, revision=9))
        assert isinstance(late, Rejected)
        await look(store, burst)

    async def test_a_change_that_stands_is_none_of_the_unknown_once_its_note_is_forgotten(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await say(store, SAMPLE, clock)
        for burst in SAMPLE:
            await commit(await begin(store, burst.lane))
            await change(store, burst)
        clock.step(timedelta(days=30))
        assert await queue_of(store).forget_settled(clock.now())
        for burst in SAMPLE:
            applied(await store.enqueue(burst.change))
            await look(store, burst)

    async def test_it_follows_the_row_into_branches_and_to_other_lanes(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        for burst in SAMPLE:
            await say(store, [burst], clock)
            turn = await begin(store, burst.lane)
            await commit(turn)
            branched = await store.branch_session(burst.lane)
            assert branched is not None
            elsewhere = SessionSource(platform="discord", chat_id=burst.source.chat_id, user_id="x")
            other = await store.get_or_create_session(elsewhere)
            await store.switch_session(other.session_key, branched.session_id, scope=Scope.operator())
            await change(store, burst)
            for session_id in (turn.entry.session_id, branched.session_id):
                stored = await store.db.get_messages(session_id)
                assert [one.text for one in stored if one.role == "user"] == [burst.left]
        await nobody_finds_what_was_changed(store)

    async def test_it_changes_no_message_of_another_chat_that_has_the_same_id(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        here, there = Burst(2, 0, MessageKind.EDIT), Burst(2, 1, MessageKind.DELETE)
        await say(store, [here, there], clock)
        first, second = await begin(store, here.lane), await begin(store, there.lane)
        await commit(first)
        await commit(second)
        await store.switch_session(here.lane, second.entry.session_id, scope=Scope.operator())
        await change(store, here)
        stored = await store.db.get_messages(second.entry.session_id)
        assert stored[0].text == "\n".join(there.texts)
        stored = await store.db.get_messages(first.entry.session_id)
        assert stored[0].text == here.left

    async def test_what_was_taken_back_is_changed_as_well_and_comes_back_so(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        for burst in SAMPLE:
            await say(store, [burst], clock)
            turn = await begin(store, burst.lane)
            await commit(turn)
            await store.db.rewind_session(turn.entry.session_id)
            await change(store, burst)
            assert await store.db.get_messages(turn.entry.session_id) == []
            assert await store.db.restore_rewound(turn.entry.session_id) == 2
            await look(store, burst)

    async def test_a_room_is_told_who_said_what_is_left(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            burst = Burst(3, 1, MessageKind.EDIT)
            burst.source = ROOM
            lane = store.key_for(ROOM)
            await say(store, [burst], clock)
            turn = await begin(store, lane)
            await commit(turn)
            applied(await store.enqueue(burst.change))
            applied(await store.enqueue(burst.message(0, "", kind=MessageKind.DELETE)))
            chats = await store.load_transcript(turn.entry.session_id)
            assert chats[0]["content"] == "[Alice] better\ntext 2"

    async def test_the_version_of_a_transcript_counts_edits_and_deletions(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        for burst in (Burst(2, 1, MessageKind.EDIT), Burst(3, 0, MessageKind.DELETE)):
            await say(store, [burst], clock)
            turn = await begin(store, burst.lane)
            await commit(turn)
            look_at, seen = partial(transcript_version, turn.entry.session_id), set[int]()
            for number, kind in enumerate((burst.kind, MessageKind.EDIT, MessageKind.DELETE)):
                seen.add((await store.db.read(look_at)).edit_count)
                at = burst.at if not number else 1 - burst.at
                applied(
                    await store.enqueue(burst.message(at, f"new {number}", kind=kind, revision=number + 5))
                )
            seen.add((await store.db.read(look_at)).edit_count)
            assert seen == {0, 1, 2, 3}
