"""Messages one after another: what a process knows of their lane saves it a look, and proves nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway_sessions import Duplicate, Message, SessionStore
from gateway_sessions.core.queue import ItemKind
from gateway_sessions.errors import FencedError
from gateway_sessions.runtime.turn import Turn
from gateway_sessions.storage.verbs.ledger import Noted
from gateway_sessions.testing.contract.lanes import (
    APART,
    BEGINS_HERE,
    LANE,
    StoreContract,
    accept,
    answer,
    begin,
    fates,
    reply,
    said,
    talk_of,
)

WELL = [("user", "one"), ("assistant", "yes"), ("user", "two"), ("assistant", "yes")]


async def start(store: SessionStore, text: str, **members: Any) -> Turn | None:
    """Let a message begin its turn, if it may, in the commit that takes it in."""
    _, turn = await store.ledger.enqueue(said(text, **members), APART, here=BEGINS_HERE)
    return turn


async def exchange(store: SessionStore, *texts: str) -> Turn:
    """Say something and answer, again and again; the last of the turns."""
    last: Turn | None = None
    for text in texts:
        last = await start(store, text)
        assert last is not None, text
        await last.commit([reply("yes")])
    assert last is not None
    return last


class KnownLanesContract(StoreContract):
    """What happens to a lane between two messages that begin their turns at once."""

    async def test_turns_of_a_lane_that_nobody_else_touches(self, store: SessionStore) -> None:
        turns = [await exchange(store, text) for text in ("one", "two", "three")]
        assert [(one.seq, one.token, one.attempt) for one in turns] == [(1, 1, 1), (2, 2, 1), (3, 3, 1)]
        assert await talk_of(store, turns[0].entry.session_id) == [
            *WELL,
            ("user", "three"),
            ("assistant", "yes"),
        ]
        assert await fates(store) == {"turned": 3}
        assert await store.queue_depth(LANE) == 0

    async def test_a_message_that_is_known_begins_nothing(self, store: SessionStore) -> None:
        await exchange(store, "one", "two")
        receipt, turn = await store.ledger.enqueue(said("one"), APART, here=BEGINS_HERE)
        assert (receipt, turn) == (Duplicate(seq=1, session_key=LANE), None)
        assert (await exchange(store, "three")).seq == 3

    async def test_a_command_between_them_counts(self, store: SessionStore) -> None:
        await exchange(store, "one")
        noted = await store.ledger.note(said("/status"), ItemKind.COMMAND)
        assert isinstance(noted, Noted)
        assert noted.seq == 2
        assert (await exchange(store, "two")).seq == 3

    async def test_what_waits_comes_first(self, store: SessionStore) -> None:
        turn = await exchange(store, "one")
        await accept(store, "two")
        assert await store.queue_depth(LANE) == 1
        begun = await start(store, "three")
        assert begun is not None
        assert begun.messages[0].text == "two"
        await begun.commit([reply("yes")])
        await answer(store)
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for role, text in talk if role == "user"] == ["one", "two", "three"]

    async def test_a_turn_between_them_is_waited_for(self, store: SessionStore) -> None:
        await exchange(store, "one")
        await accept(store, "two")
        async with await begin(store) as turn:
            assert await start(store, "three") is None
            await turn.commit([reply("yes")])
        assert await store.queue_depth(LANE) == 1

    async def test_a_session_that_may_not_go_on_does_not(self, store: SessionStore) -> None:
        first = await exchange(store, "one")
        await store.suspend_session(LANE)
        second = await exchange(store, "two")
        assert second.entry.session_id != first.entry.session_id
        assert await talk_of(store, second.entry.session_id) == WELL[2:]

    async def test_a_reset_between_them(self, store: SessionStore) -> None:
        first = await exchange(store, "one")
        await store.reset_session(LANE)
        second = await exchange(store, "two", "three")
        assert second.entry.session_id != first.entry.session_id
        assert await store.get_session(LANE) is not None
        assert (second.seq, second.attempt) == (3, 1)

    async def test_what_a_turn_has_appended_stands_there_once(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        await turn.append(Message("tool", "found it"))
        await turn.commit([reply("yes")])
        await exchange(store, "two")
        talk = await talk_of(store, turn.entry.session_id)
        assert talk == [WELL[0], ("tool", "found it"), *WELL[1:]]

    async def test_what_was_said_into_a_turn_is_part_of_it(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        await accept(store, "and two")
        assert await turn.steer(2)
        await turn.commit([reply("yes")])
        assert [text for _, text in await talk_of(store, turn.entry.session_id)] == ["one", "and two", "yes"]
        assert await fates(store) == {"turned": 2}
        assert (await exchange(store, "three")).seq == 3

    async def test_a_message_that_comes_meanwhile_is_next(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        assert await start(store, "two") is None
        assert (await turn.commit([reply("yes")])).waiting == 1
        await answer(store, "yes")
        assert await talk_of(store, turn.entry.session_id) == WELL

    async def test_who_goes_on_takes_it_along(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        assert await start(store, "two") is None
        following = (await turn.commit([reply("yes")], go_on=True)).next
        assert following is not None
        assert (following.seq, following.token) == (2, 2)
        await following.commit([reply("yes")])
        assert await talk_of(store, turn.entry.session_id) == WELL

    @pytest.mark.parametrize("way", ["commit", "fail", "interrupt", "roll_back"])
    async def test_a_turn_that_was_stopped_writes_nothing(self, store: SessionStore, way: str) -> None:
        turn = await start(store, "one")
        assert turn is not None
        await store.stop_turn(LANE)
        ends: dict[str, Callable[[], Awaitable[object]]] = {
            "commit": lambda: turn.commit([reply("yes")]),
            "fail": lambda: turn.fail("broken"),
            "interrupt": lambda: turn.interrupt("message"),
            "roll_back": lambda: turn.roll_back("message"),
        }
        with pytest.raises(FencedError):
            await ends[way]()
        assert (await exchange(store, "two")).seq == 2
        assert ("assistant", "yes") not in (await talk_of(store, turn.entry.session_id))[:-1]

    @pytest.mark.parametrize(
        ("way", "stands"),
        [("fail", ["one"]), ("interrupt", ["one"]), ("roll_back", []), ("release", ["one"])],
    )
    async def test_however_a_turn_ends_the_next_one_begins(
        self, store: SessionStore, way: str, stands: list[str]
    ) -> None:
        turn = await start(store, "one")
        assert turn is not None
        ends: dict[str, Callable[[], Awaitable[object]]] = {
            "fail": lambda: turn.fail("broken"),
            "interrupt": lambda: turn.interrupt("message"),
            "roll_back": lambda: turn.roll_back("message"),
            "release": turn.release,
        }
        await ends[way]()
        if way == "release":
            await answer(store, "yes")
        last = await exchange(store, "two")
        assert (last.seq, last.attempt) == (2, 1)
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for role, text in talk if role == "user"] == [*stands, "two"]

    async def test_a_message_is_read_as_it_is_stored(self, store: SessionStore) -> None:
        """With what no database can hold, or an adapter has added: its turn sees what a later try would."""
        odd = said("a\x00b", message_id="1", metadata={"thread": (1, 2)})
        _, turn = await store.ledger.enqueue(odd, APART, here=BEGINS_HERE)
        assert turn is not None
        seen = turn.messages[0]
        await turn.release()
        again = await begin(store)
        assert again.messages[0] == seen
        assert (seen.text, seen.metadata) == ("a\ufffdb", {"thread": [1, 2]})
        await again.commit([reply("yes")])
