"""What a look at a store and its repair say of queues that do not add up; nothing that waits is lost."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.operator import check_store, repair_store
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.queue.bench import APART, LANE, accept, begin, owed
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import open_store

COLLECTING = BusyRules(mode=BusyMode.COLLECT)
DAMAGE = {
    "DELETE FROM lanes": "lane without a row, of which there are messages",
    "UPDATE lanes SET lease_epoch = NULL": "lane with messages of a turn that does not run",
    "UPDATE lanes SET lease_token = 99": "lane with messages of a turn that does not run",
    "DELETE FROM inbox WHERE seq = 3": "message that joined a turn that is gone",
    "UPDATE lanes SET waiting = 7": "lane that does not say truly what waits on it",
    "UPDATE lanes SET ready_at = 5": "lane that does not say truly what waits on it",
    "UPDATE lanes SET next_seq = 2": "lane that would give a place a second time",
    "UPDATE inbox SET settled_at = 5 WHERE seq = 2": "message in a state that there is not",
    "UPDATE inbox SET kind = 'massage' WHERE seq = 2": "message in a state that there is not",
}


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A lane on which a turn runs and three messages wait, two of them together."""
    home = tmp_path / "home"
    async with open_store(home) as store:
        await accept(store, "one", "two", rules=APART, solo=True)
        await accept(store, "three", "four", rules=COLLECTING)
        await begin(store)
    return home


async def test_a_queue_as_it_should_be_is_found_so(home: Path):
    assert (await check_store(home)).found == ()


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_queue_that_does_not_add_up_is_found_and_mended(
    home: Path, damage: str, fake_clock: FakeClock
):
    execute_sql(home / "sessions.db", damage)
    found = (await check_store(home)).found
    assert any(DAMAGE[damage] in one for one in found), found
    assert any(DAMAGE[damage] in one for one in (await repair_store(home)).done)
    assert (await check_store(home)).found == ()
    fake_clock.step(timedelta(days=1))
    async with open_store(home, clock=fake_clock) as store:
        waiting = {one.seq for one in await store.list_queued(LANE)}
        assert waiting == ({1, 2, 4} if "seq = 3" in damage else {1, 2, 3, 4})
        turned: list[int] = []
        while (turn := await store.claim()) is not None:
            turned += turn.seqs
            await turn.commit()
        assert set(turned) == waiting
        assert (await accept(store, "five")).seq == 5


@pytest.mark.parametrize("damage", ["outcome = 'turned'", "outcome = 'tuned', settled_at = 5"])
async def test_a_message_that_is_said_to_be_settled_and_has_its_text_becomes_a_dead_letter(
    home: Path, damage: str, fake_clock: FakeClock
):
    execute_sql(home / "sessions.db", f"UPDATE inbox SET {damage} WHERE seq = 2")  # noqa: S608 -- ours
    done = (await repair_store(home)).done
    assert any("message in a state that there is not" in one for one in done)
    assert (await check_store(home)).found == ()
    async with open_store(home, clock=fake_clock) as store:
        (letter,) = await store.dead_letters()
        assert (letter.seq, letter.message.text if letter.message is not None else None) == (2, "two")
        await store.requeue(letter.item_id)
        assert 2 in {one.seq for one in await store.list_queued(LANE)}


async def test_a_reply_in_no_state_is_given_up(home: Path):
    async with open_store(home) as store:
        turn = await begin(store)
        await turn.commit(replies=[owed("an answer")])
    execute_sql(home / "sessions.db", "UPDATE outbox SET state = 'lost'")
    assert any("reply in a state that there is not" in one for one in (await repair_store(home)).done)
    assert (await check_store(home)).found == ()
    async with open_store(home) as store:
        assert len(await store.dead_replies()) == 1
