"""What adapters have noted of a person goes with them, whichever engine keeps the truth."""

from __future__ import annotations

import json
from pathlib import Path

from gateway_sessions import SessionSource
from gateway_sessions.config import SessionDBConfig
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.store_fixtures import open_store, quick_config

ANN, ROOM = "1234567", "-100777"
NOTES = {
    "adapter:telegram::place:1234567": "9",
    "adapter:telegram::place:-100777": "12",
    "adapter:telegram:work:channels": json.dumps(["1234567", "-100777", {"id": "1234567"}]),
    "adapter:telegram::sent": json.dumps({"reply:1": {"to": "1234567", "id": "7"}, "reply:2": {"to": "55"}}),
    "adapter:telegram::last": "chat 1234567, message 8",
    "adapter:telegram::since": "s12345678_9",
    "adapter:discord::place:1234567": "9",
    "own": "1234567",
}


async def test_an_erasure_takes_a_person_out_of_the_notes_of_their_platform(
    home: Path, fake_clock: FakeClock, truth: SessionDBConfig
):
    async with open_store(home, quick_config(sessiondb=truth), clock=fake_clock) as store:
        private = SessionSource(platform="telegram", chat_id=ANN, user_id=ANN)
        room = SessionSource(platform="telegram", chat_id=ROOM, chat_type="group", user_id=ANN)
        entry = await store.get_or_create_session(private)
        await store.get_or_create_session(room)
        for name, value in NOTES.items():
            await store.db.set_meta(name, value)
        assert entry.owner is not None
        receipt = await store.erase(entry.owner)
        left = {name: await store.db.get_meta(name) for name in NOTES}
    assert receipt.rows["meta"] == 4
    assert left == {
        **NOTES,
        "adapter:telegram::place:1234567": None,
        "adapter:telegram:work:channels": json.dumps(["-100777", {}]),
        "adapter:telegram::sent": json.dumps({"reply:1": {"id": "7"}, "reply:2": {"to": "55"}}),
        "adapter:telegram::last": None,
    }


async def test_a_room_takes_nothing_along(home: Path, fake_clock: FakeClock, truth: SessionDBConfig):
    async with open_store(home, quick_config(sessiondb=truth), clock=fake_clock) as store:
        shared = SessionSource(platform="telegram", chat_id=ROOM, chat_type="channel")
        entry = await store.get_or_create_session(shared)
        await store.db.set_meta("adapter:telegram::place:-100777", "12")
        assert entry.owner is not None
        await store.erase(entry.owner)
        assert await store.db.get_meta("adapter:telegram::place:-100777") == "12"
