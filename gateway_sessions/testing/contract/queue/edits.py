"""Contract tests of edits and deletions after the turn of a message has begun."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import msgspec
import pytest

from gateway_sessions import (
    Accepted,
    Duplicate,
    InboundMessage,
    Rejected,
    Scope,
    SessionSource,
    SessionState,
    SessionStore,
    Turn,
)
from gateway_sessions.adapters import MessageKind
from gateway_sessions.config import AgentConfig
from gateway_sessions.queue import Disposition
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    ALICE,
    APART,
    BEGINS_HERE,
    COLLECTING,
    LANE,
    OpenStore,
    StoreContract,
    accept,
    begin,
    fates,
    in_line,
    reply,
    said,
    talk_of,
)
from gateway_sessions.testing.inside import STEERED, consistency, queue_of

PRIVATE: Final = "my password is hunter2"
ROOM: Final = SessionSource(
    platform="telegram", chat_type="group", chat_id="room", user_id="alice", user_name="Alice"
)
ENDS: Final[dict[str, Callable[[Turn], Awaitable[object]]]] = {
    "commit": lambda turn: turn.commit([reply("answer")]),
    "fail": lambda turn: turn.fail("no power"),
    "interrupt": lambda turn: turn.interrupt("message"),
    "roll back": lambda turn: turn.roll_back("message"),
    "release": lambda turn: turn.release(),
}


async def edits(store: SessionStore, which: str, text: str, source: SessionSource = ALICE) -> None:
    """Let the author edit a message."""
    message = said(text, source=source, message_id=which, kind=MessageKind.EDIT, revision=len(text))
    await applied(store, message)


async def deletes(store: SessionStore, which: str, source: SessionSource = ALICE) -> None:
    """Let the author delete a message."""
    await applied(store, said("", source=source, message_id=which, kind=MessageKind.DELETE))


async def applied(store: SessionStore, message: InboundMessage) -> None:
    """Expect that a change was carried out."""
    receipt = await store.enqueue(message)
    assert isinstance(receipt, Accepted), receipt
    assert receipt.disposition is Disposition.APPLIED


async def start(store: SessionStore, text: str, source: SessionSource = ALICE) -> Turn:
    """Accept a message, and let its turn begin in the same commit."""
    _, turn = await queue_of(store).enqueue(said(text, source=source), APART, here=BEGINS_HERE)
    assert turn is not None
    return turn


async def nobody_finds(store: SessionStore, text: str) -> None:
    """Check that the text is in no search, dead letter, queue or transcript."""
    found = await store.db.search_messages(text.rsplit(maxsplit=1)[-1], scope=Scope.operator())
    assert found.hits == ()
    letters = await store.dead_letters()
    assert [one for one in letters if one.message is not None and text in one.message.text] == []
    waiting = await store.list_queued(LANE)
    assert [one for one in waiting if text in one.message.text] == []
    session_id = await store.peek_session_id(LANE)
    if session_id is not None:
        assert [one for one in await talk_of(store, session_id) if text in one[1]] == []


async def versions_in(store: SessionStore, session_id: str) -> list[object]:
    """Return the texts that the messages of a session had before they were edited."""
    stored = await store.db.get_messages(session_id, include_hidden=True)
    found = [await store.db.get_message_versions(session_id, one.message_id) for one in stored]
    return [version.content for versions in found for version in versions]


class ChangedContract(StoreContract):
    """Tests edits and deletions of messages whose turn runs, was cut off, or has failed."""

    @pytest.mark.parametrize("appends", [False, True])
    @pytest.mark.parametrize("end", sorted(ENDS))
    async def test_an_edit_of_what_a_turn_is_about_stands_however_it_ends(
        self, store: SessionStore, end: str, *, appends: bool
    ) -> None:
        turn = await start(store, PRIVATE)
        if appends:
            await turn.append(reply("let me see"))
        await edits(store, PRIVATE, "never mind")
        await edits(store, PRIVATE, "never mind that")
        await ENDS[end](turn)
        await nobody_finds(store, PRIVATE)
        talk = await talk_of(store, turn.entry.session_id)
        assert talk.count(("user", "never mind that")) == (end != "roll back")
        assert [text for role, text in talk if role == "user"] == ["never mind that"] * (end != "roll back")
        assert await store.db.read(consistency.find_all) == []

    @pytest.mark.parametrize("appends", [False, True])
    @pytest.mark.parametrize("end", sorted(ENDS))
    async def test_what_was_deleted_while_its_turn_ran_is_nowhere_however_that_ends(
        self, store: SessionStore, end: str, *, appends: bool
    ) -> None:
        turn = await start(store, PRIVATE)
        if appends:
            await turn.append(reply("let me see"))
        await deletes(store, PRIVATE)
        await ENDS[end](turn)
        await nobody_finds(store, PRIVATE)
        talk = await talk_of(store, turn.entry.session_id)
        assert [role for role, _ in talk if role == "user"] == []
        assert await store.queue_depth(LANE) == 0
        assert await fates(store) == {"cancelled": 1, "applied": 1}
        assert await store.dead_letters() == []
        await accept(store, "two")
        assert (await begin(store)).attempt == 1
        assert await store.db.read(consistency.find_all) == []

    @pytest.mark.parametrize("appends", [False, True])
    async def test_another_try_is_about_what_the_message_says_by_then(
        self, open_store: OpenStore, *, appends: bool
    ) -> None:
        async with open_store() as store:
            turn = await start(store, "send 1000 euros")
            if appends:
                await turn.append(reply("let me see"))
            await edits(store, "send 1000 euros", "send 10 euros")
        async with open_store() as store:
            again = await begin(store)
            assert (again.attempt, [one.text for one in again.messages]) == (2, ["send 10 euros"])
            await again.commit([reply("sent")])
            talk = await talk_of(store, again.entry.session_id)
            assert [text for role, text in talk if role == "user"] == ["send 10 euros"]

    async def test_a_turn_that_was_cut_off_is_not_tried_again_for_what_was_deleted(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await start(store, PRIVATE)
            await accept(store, "two")
            await deletes(store, PRIVATE)
        async with open_store() as store:
            assert store.started.resumed == ()
            entry = await store.get_session(LANE)
            assert entry is not None
            assert entry.state is SessionState.ACTIVE
            following = await begin(store)
            assert (following.attempt, [one.text for one in following.messages]) == (1, ["two"])
            await nobody_finds(store, PRIVATE)

    @pytest.mark.parametrize("appends", [False, True])
    @pytest.mark.parametrize(
        ("gone", "left"), [("one", "two\nthree"), ("two", "one\nthree"), ("three", "one\ntwo")]
    )
    async def test_one_message_of_several_is_taken_from_a_running_turn(
        self, store: SessionStore, clock: FakeClock, gone: str, left: str, *, appends: bool
    ) -> None:
        await accept(store, "one", "two", "three", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        if appends:
            await turn.append(reply("let me see"))
        await deletes(store, gone)
        await turn.release()
        again = await begin(store)
        assert "\n".join(one.text for one in again.messages) == left
        await again.commit([reply("well")])
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for role, text in talk if role == "user"] == [left]
        assert await fates(store) == {"turned": 2, "cancelled": 1, "applied": 1}
        assert await store.db.read(consistency.find_all) == []

    @pytest.mark.parametrize("appends", [False, True])
    @pytest.mark.parametrize("which", ["one", "two", "three"])
    async def test_one_message_of_several_is_edited_in_a_running_turn(
        self, store: SessionStore, clock: FakeClock, which: str, *, appends: bool
    ) -> None:
        await accept(store, "one", "two", "three", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        if appends:
            await turn.append(reply("let me see"))
        await edits(store, which, f"{which}, better")
        await turn.commit([reply("well")])
        (row,) = [one for one in await store.db.get_messages(turn.entry.session_id) if one.role == "user"]
        assert row.text == "one\ntwo\nthree".replace(which, f"{which}, better")
        assert row.platform_message_id == "one"
        assert row.extra["platform_message_ids"] == ["one", "two", "three"]

    async def test_what_was_said_into_a_turn_is_edited_and_deleted_like_the_rest(
        self, store: SessionStore
    ) -> None:
        turn = await start(store, "one")
        await accept(store, "and two", "and three")
        assert await turn.steer(2)
        assert await turn.steer(3)
        await edits(store, "and two", "and two, better")
        await deletes(store, "and three")
        await deletes(store, "one")
        await turn.commit([reply("well")])
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for _, text in talk] == ["and two, better", "well"]
        assert await fates(store) == {"turned": 1, "cancelled": 2, "applied": 3}

    @pytest.mark.parametrize("end", ["fail", "release"])
    async def test_what_was_said_into_a_turn_does_not_die_with_it_if_its_first_message_was_deleted(
        self, store: SessionStore, end: str
    ) -> None:
        turn = await start(store, "one")
        await turn.append(reply("let me see"))
        await accept(store, "two")
        assert await turn.steer(2)
        await deletes(store, "one")
        await ENDS[end](turn)
        assert await in_line(store) == [2]
        assert await store.dead_letters() == []
        following = await begin(store)
        assert (following.attempt, [one.text for one in following.messages]) == (1, ["two"])
        await following.commit([reply("well")])
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for _, text in talk] == ["let me see", "two", "well"]
        stored = await store.db.get_messages(turn.entry.session_id)
        assert [one.text for one in stored if one.extra.get(STEERED)] == []
        assert await fates(store) == {"turned": 1, "cancelled": 1, "applied": 1}
        assert await store.db.read(consistency.find_all) == []

    async def test_what_was_said_into_a_turn_that_was_cut_off_is_new_if_all_else_was_deleted(
        self, open_store: OpenStore
    ) -> None:
        agent = AgentConfig(max_restart_attempts=1)
        async with open_store(agent=agent) as store:
            turn = await start(store, "one")
            await accept(store, "two")
            assert await turn.steer(2)
            await deletes(store, "one")
        async with open_store(agent=agent) as store:
            assert (store.started.resumed, store.started.given_up) == ((), ())
            following = await begin(store)
            assert (following.attempt, [one.text for one in following.messages]) == (1, ["two"])
            assert following.entry.session_id == turn.entry.session_id

    async def test_what_joined_the_message_that_was_deleted_fails_with_its_turn_and_what_was_said_into_it_not(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        await accept(store, "three")
        assert await turn.steer(3)
        await deletes(store, "one")
        await turn.fail("no power")
        assert [one.seq for one in await store.dead_letters()] == [2]
        assert await in_line(store) == [3]

    async def test_who_said_it_in_a_room_is_told_of_what_they_say_now(self, open_store: OpenStore) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            turn = await start(store, "one", ROOM)
            await turn.append(reply("let me see"))
            await edits(store, "one", "one, better", ROOM)
            (chat, _) = await turn.transcript()
            assert "Alice" in str(chat["content"])
            assert "one, better" in str(chat["content"])

    async def test_a_failed_message_is_tried_again_with_what_it_says_now(self, store: SessionStore) -> None:
        await (await start(store, "boom")).fail("no power")
        await edits(store, "boom", "fixed wording")
        (letter,) = await store.dead_letters()
        assert letter.message is not None
        assert letter.message.text == "fixed wording"
        assert letter.problem == "no power"
        await store.requeue(letter.item_id)
        turn = await begin(store)
        assert [one.text for one in turn.messages] == ["fixed wording"]
        await turn.commit([reply("well")])
        talk = await talk_of(store, turn.entry.session_id)
        assert talk == [("user", "fixed wording"), ("assistant", "well")]

    async def test_a_failed_message_that_was_deleted_is_kept_nowhere(self, store: SessionStore) -> None:
        await (await start(store, PRIVATE)).fail("no power")
        await deletes(store, PRIVATE)
        assert await store.dead_letters() == []
        await nobody_finds(store, PRIVATE)
        assert await fates(store) == {"cancelled": 1, "applied": 1}
        receipt = await store.enqueue(msgspec.structs.replace(said("late"), kind=MessageKind.DELETE))
        assert isinstance(receipt, Rejected)

    @pytest.mark.parametrize(("gone", "left"), [("one", "two\nthree"), ("two", "one\nthree")])
    async def test_the_rest_of_a_failed_turn_can_be_tried_again(
        self, store: SessionStore, clock: FakeClock, gone: str, left: str
    ) -> None:
        await accept(store, "one", "two", "three", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        await (await begin(store)).fail("no power")
        await deletes(store, gone)
        letters = await store.dead_letters()
        await store.requeue(letters[-1].item_id)
        turn = await begin(store)
        assert "\n".join(one.text for one in turn.messages) == left
        await turn.commit([reply("well")])
        talk = await talk_of(store, turn.entry.session_id)
        assert talk == [("user", left), ("assistant", "well")]
        assert await store.dead_letters() == []

    @pytest.mark.parametrize("gone", [["one"], [PRIVATE], ["one", PRIVATE], [PRIVATE, "one"]])
    async def test_of_what_was_deleted_no_copy_in_a_branch_keeps_anything(
        self, store: SessionStore, clock: FakeClock, gone: list[str]
    ) -> None:
        await accept(store, "one", PRIVATE, rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        await turn.append(reply("let me see"))
        await turn.fail("no power")
        branched = await store.branch_session(LANE)
        assert branched is not None
        left = ["one", PRIVATE]
        for which in gone:
            await deletes(store, which)
            left.remove(which)
            for session_id in (turn.entry.session_id, branched.session_id):
                assert await talk_of(store, session_id) == [
                    *[("user", text) for text in left],
                    ("assistant", "let me see"),
                ]
                assert await versions_in(store, session_id) == []

    async def test_of_an_edit_that_was_deleted_no_copy_in_a_branch_keeps_a_version(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", PRIVATE, rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        await turn.fail("no power")
        branched = await store.branch_session(LANE)
        assert branched is not None
        await edits(store, PRIVATE, "never mind")
        for session_id in (turn.entry.session_id, branched.session_id):
            assert await talk_of(store, session_id) == [("user", "one\nnever mind")]
            assert await versions_in(store, session_id) == [f"one\n{PRIVATE}"]
        await deletes(store, PRIVATE)
        for session_id in (turn.entry.session_id, branched.session_id):
            assert await talk_of(store, session_id) == [("user", "one")]
            assert await versions_in(store, session_id) == []

    @pytest.mark.parametrize("end", ["commit", "fail"])
    async def test_an_edit_that_changes_nothing_leaves_no_version_and_no_time(
        self, store: SessionStore, end: str
    ) -> None:
        """Some platforms send an edit when only the preview of a link is new."""
        turn = await start(store, "one")
        await turn.append(reply("let me see"))
        await accept(store, "two")
        assert await turn.steer(2)
        for revision in (1, 2):
            for which in ("one", "two"):
                same = said(which, kind=MessageKind.EDIT, revision=revision)
                await applied(store, same)
        await ENDS[end](turn)
        if end == "fail":
            await applied(store, said("one", kind=MessageKind.EDIT, revision=3))
        stored = await store.db.get_messages(turn.entry.session_id)
        assert [one.text for one in stored if one.edited_at is not None] == []
        assert await versions_in(store, turn.entry.session_id) == []

    async def test_what_was_edited_while_its_turn_ran_goes_on_being_known(self, store: SessionStore) -> None:
        """The lane is calm again after the edit, so its next message begins its turn at once."""
        turn = await start(store, "one")
        await edits(store, "one", "one, better")
        await turn.commit([reply("yes")])
        following = await start(store, "two")
        assert (following.seq, following.attempt) == (3, 1)
        await following.commit([reply("yes")])
        assert await store.claim(LANE) is None
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for _, text in talk] == ["one, better", "yes", "two", "yes"]

    @pytest.mark.parametrize("when", ["waits", "runs", "was answered"])
    async def test_what_is_asked_again_is_changed_wherever_it_is(
        self, store: SessionStore, clock: FakeClock, when: str
    ) -> None:
        """The change must reach the rows of the new try, and not only the hidden rows of the first one."""
        await accept(store, "one", "two", PRIVATE, rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        await turn.commit([reply("yes")])
        assert await queue_of(store).requeue_last_turn(LANE, said("/retry")) is not None
        again = await begin(store) if when != "waits" else None
        if again is not None and when == "was answered":
            await again.commit([reply("yes")])
        await edits(store, "two", "2")
        await deletes(store, PRIVATE)
        assert isinstance(await store.enqueue(said("two"), rules=APART), Duplicate)
        again = again or await begin(store)
        assert (again.attempt, again.seqs[0]) == (1, 4)
        if when != "was answered":
            await again.commit([reply("yes")])
        assert await talk_of(store, turn.entry.session_id) == [("user", "one\n2"), ("assistant", "yes")]
        hidden = await talk_of(store, turn.entry.session_id, include_hidden=True)
        assert [text for _, text in hidden if PRIVATE in text] == []
        assert await in_line(store) == []

    async def test_what_is_to_be_tried_again_by_itself_is_not_asked_again(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        await turn.append(reply("let me see"))
        await turn.release()
        assert await queue_of(store).requeue_last_turn(LANE, said("/retry")) is not None
        assert await in_line(store) == [1]
        await (await begin(store)).commit([reply("yes")])
        assert [text for _, text in await talk_of(store, turn.entry.session_id)] == [
            "one",
            "let me see",
            "yes",
        ]
