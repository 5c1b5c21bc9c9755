"""Lets the peer write its files, and walks lanes of its own through the life of a session."""

from __future__ import annotations

import json
import random
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from freezegun.api import FrozenDateTimeFactory
from gateway.config import Platform  # type: ignore[import-not-found]  # only in the peer's environment

from tests.benchmarks.peers.hermes_clock import frozen_at
from tests.benchmarks.peers.hermes_store import direct_chat, open_store, stored_entry

Fields = dict[str, Any]

START = datetime(2026, 3, 5, 15, 0)  # noqa: DTZ001  # the peer is naive
MINUTE = timedelta(minutes=1)
NEVER = {"mode": "none"}
IDLE = {"mode": "idle", "idle_minutes": 60}
NOTE = "(the peer's note to readers)"


@contextmanager
def seeded_world() -> Iterator[FrozenDateTimeFactory]:
    """A frozen clock, and the same random ids in every run."""
    numbers = random.Random(19)
    with (
        frozen_at(START) as frozen,
        mock.patch.object(
            uuid, "uuid4", side_effect=lambda: uuid.UUID(int=numbers.getrandbits(128), version=4)
        ),
    ):
        yield frozen


def files(home: Path) -> list[Fields]:
    """Three files: every mark a lane can carry, lanes that share a session, what a hand has edited."""
    with seeded_world() as frozen:
        return [
            marked_file(home / "marked", frozen),
            shared_session_file(home / "shared-session", frozen),
            edited_file(home / "edited"),
        ]


def written(name: str, folder: Path, **more: Any) -> Fields:
    text = (folder / "sessions.json").read_text(encoding="utf-8")
    note = json.dumps(json.loads(text)["_README"])
    return {"name": name, "sessions.json": text.replace(note, json.dumps(NOTE)), **more}


def marked_file(folder: Path, frozen: FrozenDateTimeFactory) -> Fields:
    """One lane in each state, over several kinds of origin; with the rows of the database."""
    old = START - 120 * MINUTE
    entries = [
        stored_entry("auto-reset", old, last_prompt_tokens=900),
        stored_entry("was-suspended", old, suspended=True),
    ]
    store = open_store(folder, entries, IDLE)
    lanes = {}
    for name, source in marked_origins():
        frozen.tick(1)
        lanes[name] = store.get_or_create_session(source)
    keys = {name: entry.session_key for name, entry in lanes.items()}
    store.update_session(keys["plain"], last_prompt_tokens=1234)
    store.suspend_session(keys["suspended"])
    store.mark_resume_pending(keys["resume-pending"])
    frozen.tick(5)
    store.mark_resume_pending(keys["crashed"], reason="restart_interrupted")
    store.set_model_override(keys["override"], {"model": "m-1", "provider": "p", "api_key": "not stored"})
    store.set_expiry_finalized(lanes["finalized"])
    store.reset_session(keys["fresh"], display_name="Renamed")
    return written("marked", folder, gateway_routing=routing_rows(folder))


def marked_origins() -> Iterator[tuple[str, Any]]:
    for name in ("auto-reset", "was-suspended", "plain", "suspended", "resume-pending", "finalized", "fresh"):
        yield name, direct_chat(name)
    group = {"chat_type": "group", "chat_name": "Team Größe 👩‍🚀", "thread_id": "17", "chat_topic": "all"}
    yield "crashed", direct_chat("-100228", **group)
    room = {"platform": Platform("matrix"), "user_id": "@alice:example.org"}
    yield "override", direct_chat("!room:example.org", chat_type="channel", **room)
    signal = {"platform": Platform("signal"), "user_id_alt": "8f3b2c1d", "chat_id_alt": "g-internal"}
    yield "alternative", direct_chat("+15557654321", **signal)
    guild = {
        "platform": Platform("discord"),
        "guild_id": "guild-9",
        "parent_chat_id": "119",
        "message_id": "m1",
    }
    named = {"auto_thread_created": True, "auto_thread_initial_name": "first words", "chat_type": "thread"}
    yield "auto-thread", direct_chat("1190", thread_id="1190", profile="coder", **guild, **named)
    yield (
        "slashes",
        direct_chat("spaces/AAAA", chat_type="group", user_id="users/7", platform=Platform("webhook")),
    )


def routing_rows(folder: Path) -> list[Fields]:
    """The peer's own table for this folder, whose path is replaced by a word."""
    with closing(sqlite3.connect(folder.parent / "state.db")) as database:
        rows = database.execute(
            "SELECT session_key, entry_json, updated_at FROM gateway_routing"
            " WHERE scope = ? ORDER BY session_key",
            (str(folder.resolve()),),
        ).fetchall()
    names = ("scope", "session_key", "entry_json", "updated_at")
    return [dict(zip(names, ("{SESSIONS_DIR}", *row), strict=True)) for row in rows]


def shared_session_file(folder: Path, frozen: FrozenDateTimeFactory) -> Fields:
    """Three lanes of which two were switched to the session of the first, then used."""
    store = open_store(folder, [], NEVER)
    first, *others = [store.get_or_create_session(direct_chat(f"switch-{number}")) for number in range(3)]
    for entry in others:
        frozen.tick(60)
        store.switch_session(entry.session_key, first.session_id)
    frozen.tick(60)
    store.update_session(first.session_key)
    return written("shared-session", folder)


def edited_file(folder: Path) -> Fields:
    """Members and entries that the peer does not know, and the file after its next write."""
    good = stored_entry("good", START)
    entries = [
        good,
        stored_entry("later", START, later_field={"a": 1}),
        stored_entry("legacy", START, memory_flushed=True),
        stored_entry("aware", START) | {"updated_at": "2026-03-05T14:00:00+01:00"},
        stored_entry(
            "wrong-types", START, suspended="yes", total_tokens="7", last_resume_marked_at="yesterday"
        ),
        stored_entry("no-origin", START) | {"origin": None, "platform": "left the building"},
        stored_entry("unknown-platform", START)
        | {"origin": good["origin"] | {"platform": "left the building"}},
        stored_entry("bad-id", START) | {"session_id": "../../etc"},
        stored_entry("bad-time", START) | {"created_at": "soon"},
        {name: value for name, value in stored_entry("no-id", START).items() if name != "session_id"},
        stored_entry("slash", START) | {"session_key": "agent:main:telegram:group:spaces/x/threads/y"},
    ]
    store = open_store(folder, entries, NEVER)
    before = (folder / "sessions.json").read_text(encoding="utf-8")
    store.update_session(good["session_key"])
    return written("edited", folder, before=before)


Step = tuple[int, str, dict[str, Any]]


def scenarios(home: Path) -> list[Fields]:
    """Lives of one lane whose sessions have rows in the database: at which minute, and what is done."""
    with seeded_world() as frozen:
        return [
            scenario(title, policy, steps, home / f"scenario-{number}", frozen)
            for number, (title, policy, steps) in enumerate(SCENARIOS)
        ]


def scenario(
    title: str, policy: Fields, steps: list[Step], folder: Path, frozen: FrozenDateTimeFactory
) -> Fields:
    store = open_store(folder, [], policy)
    source = direct_chat(folder.name)
    seen: list[str] = []
    happened = []
    for minutes, transaction, arguments in steps:
        frozen.move_to(START + minutes * MINUTE)
        result = VERBS[transaction](store, source, arguments)
        step = {"minutes": minutes, "do": transaction} | ({"with": arguments} if arguments else {})
        happened.append(step | {"result": plain(result)} | lane_now(store, source, seen))
    return {"title": title, "policy": policy, "start": START.isoformat(), "steps": happened}


def key_of(store: Any, source: Any) -> str:
    return str(next((entry.session_key for entry in store.list_sessions() if entry.origin == source), ""))


def plain(result: object) -> object:
    return result if isinstance(result, bool | int | None) else "entry"


def lane_now(store: Any, source: Any, seen: list[str]) -> Fields:
    """The lane's session as a number in order of appearance, and its marks."""
    entry = next((one for one in store.list_sessions() if one.origin == source), None)
    if entry is None:
        return {"session": None}
    if entry.session_id not in seen:
        seen.append(entry.session_id)
    marks = {name: getattr(entry, name) for name in MARKS if getattr(entry, name)}
    return {"session": seen.index(entry.session_id), "marks": marks}


MARKS = (
    "suspended", "resume_pending", "resume_reason", "expiry_finalized", "is_fresh_reset", "was_auto_reset",
    "auto_reset_reason", "reset_had_activity",
)  # fmt: skip
VERBS: dict[str, Callable[[Any, Any, dict[str, Any]], object]] = {
    "get_or_create": lambda store, source, more: store.get_or_create_session(source, **more),
    "update": lambda store, source, more: store.update_session(key_of(store, source), **more),
    "suspend": lambda store, source, _more: store.suspend_session(key_of(store, source)),
    "mark_resume_pending": lambda store, source, more: store.mark_resume_pending(
        key_of(store, source), **more
    ),
    "clear_resume_pending": lambda store, source, _more: store.clear_resume_pending(key_of(store, source)),
    "suspend_recently_active": lambda store, _source, more: store.suspend_recently_active(**more),
    "reset": lambda store, source, more: store.reset_session(key_of(store, source), **more),
    "finalize": lambda store, source, _more: store.set_expiry_finalized(
        next(one for one in store.list_sessions() if one.origin == source)
    ),
    "prune": lambda store, _source, more: store.prune_old_entries(**more),
    "append": lambda store, source, more: store.append_to_transcript(
        store.peek_session_id(key_of(store, source)), {"role": "user", **more}
    ),
}
SAY = ("append", {"content": "hello"})
ASK: tuple[str, dict[str, Any]] = ("get_or_create", {})
SCENARIOS: list[tuple[str, Fields, list[Step]]] = [
    ("idle ends a session that was used", IDLE,
     [(0, *ASK), (0, "update", {"last_prompt_tokens": 10}), (60, *ASK), (121, *ASK), (122, *ASK)]),
    ("the watcher ends it first", IDLE, [(0, *ASK), (0, *SAY), (65, "finalize", {}), (66, *ASK)]),
    ("finalised, but no longer due", NEVER, [(0, *ASK), (0, *SAY), (5, "finalize", {}), (6, *ASK)]),
    ("suspension is answered once", NEVER, [(0, *ASK), (1, "suspend", {}), (2, *ASK), (3, *ASK)]),
    ("suspended beats pending", NEVER,
     [(0, *ASK), (1, "mark_resume_pending", {}), (2, "suspend", {}), (3, "mark_resume_pending", {}),
      (4, *ASK)]),
    ("a mark survives access and is cleared", NEVER,
     [(0, *ASK), (1, "mark_resume_pending", {"reason": "shutdown"}), (2, *ASK),
      (3, "clear_resume_pending", {}), (4, "clear_resume_pending", {}), (5, *ASK)]),
    ("a stale mark under a policy", {"mode": "idle", "idle_minutes": 1440},
     [(0, *ASK), (1, "mark_resume_pending", {}), (62, *ASK), (63, *ASK)]),
    ("crash recovery marks recent lanes", NEVER,
     [(0, *ASK), (2, "suspend_recently_active", {"max_age_seconds": 120}),
      (3, "suspend_recently_active", {"max_age_seconds": 600}), (4, *ASK)]),
    ("crash recovery leaves older lanes", NEVER,
     [(0, *ASK), (3, "suspend_recently_active", {"max_age_seconds": 120}), (4, *ASK)]),
    ("a fresh reset, then use", NEVER,
     [(0, *ASK), (1, "reset", {}), (2, *ASK), (3, "update", {}), (4, *ASK)]),
    ("reset clears a suspension", NEVER, [(0, *ASK), (1, "suspend", {}), (2, "reset", {}), (3, *ASK)]),
    ("force_new passes a suspension over", NEVER,
     [(0, *ASK), (1, "suspend", {}), (2, "get_or_create", {"force_new": True}), (3, *ASK)]),
    ("pruned with a transcript, then a message", NEVER,
     [(0, *ASK), (0, *SAY), (1441, "prune", {"max_age_days": 1}), (1442, *ASK)]),
    ("pruned without a transcript, then a message", NEVER,
     [(0, *ASK), (1441, "prune", {"max_age_days": 1}), (1442, *ASK)]),
    ("a suspended lane is not pruned", NEVER,
     [(0, *ASK), (0, "suspend", {}), (9999, "prune", {"max_age_days": 1}), (9999, *ASK)]),
]  # fmt: skip
