"""Asks the peer when a session ends: by policy alone, and by its marks together with a policy."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from freezegun.api import FrozenDateTimeFactory

from tests.benchmarks.peers.hermes_clock import frozen_at
from tests.benchmarks.peers.hermes_store import direct_chat, open_store, stored_entry

Fields = dict[str, Any]
Moments = tuple[datetime, datetime]

TICK = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
POLICIES: tuple[Fields, ...] = (
    {"mode": "none"},
    {"mode": "idle", "idle_minutes": 1},
    {"mode": "idle", "idle_minutes": 30},
    {"mode": "idle", "idle_minutes": 1440},
    {"mode": "idle", "idle_minutes": 10080},
    {"mode": "daily", "at_hour": 0},
    {"mode": "daily", "at_hour": 4},
    {"mode": "daily", "at_hour": 23},
    {"mode": "both", "at_hour": 4, "idle_minutes": 30},
    {"mode": "both", "at_hour": 4, "idle_minutes": 1440},
    {"mode": "both", "at_hour": 0, "idle_minutes": 720},
    {"mode": "both", "at_hour": 23, "idle_minutes": 4320},
)
MIDNIGHTS = (datetime(2027, 1, 1), datetime(2028, 2, 29))  # noqa: DTZ001  # the peer is naive


def resets(home: Path) -> list[Fields]:
    """A plain session, a policy and two moments: the reason for which the peer replaces it, if it does."""
    found: list[Fields] = []
    with frozen_at(MIDNIGHTS[0]) as frozen:
        for number, policy in enumerate(POLICIES):
            found += resets_under(policy, home / f"resets-{number}", frozen)
    return found


def resets_under(policy: Fields, folder: Path, frozen: FrozenDateTimeFactory) -> list[Fields]:
    """One store, one lane per question, so that no answer disturbs the next."""
    pairs = list(dict.fromkeys(pair for midnight in MIDNIGHTS for pair in moments(policy, midnight)))
    chats = [f"{folder.name}-{number}" for number in range(len(pairs))]
    entries = [stored_entry(chat, updated_at) for chat, (updated_at, _) in zip(chats, pairs, strict=True)]
    store = open_store(folder, entries, policy)
    found = []
    for chat, (updated_at, now) in zip(chats, pairs, strict=True):
        frozen.move_to(now)
        entry = store.get_or_create_session(direct_chat(chat))
        moment = {"updated_at": updated_at.isoformat(), "now": now.isoformat()}
        found.append({"policy": policy, **moment, "reason": entry.auto_reset_reason})
    return found


def moments(policy: Fields, midnight: datetime) -> Iterator[Moments]:
    """When the session was last used, and when it is asked for, around each edge of the policy."""
    if policy["mode"] != "daily":
        last = midnight + 10 * HOUR
        idle = timedelta(minutes=policy["idle_minutes"]) if "idle_minutes" in policy else DAY
        for offset in (-TICK, 0 * TICK, TICK, timedelta(seconds=1), 3 * idle, -2 * idle):
            yield last, last + idle + offset
    if policy["mode"] != "idle":
        boundary = midnight + policy.get("at_hour", 4) * HOUR
        updates = (boundary - DAY, boundary - HOUR, boundary - TICK, boundary, boundary + TICK)
        asked = (boundary - TICK, boundary, boundary + TICK, boundary + DAY - TICK, boundary + DAY)
        yield from ((one, now) for one, now in itertools.product(updates, asked) if one <= now)


NOW = datetime(2026, 3, 5, 15, 0)  # noqa: DTZ001  # the peer is naive
MARKS: tuple[Fields, ...] = (
    {},
    {"suspended": True},
    {"resume_pending": True, "resume_reason": "restart_timeout"},
    {"suspended": True, "resume_pending": True, "resume_reason": "restart_timeout"},
    {"expiry_finalized": True},
    {"expiry_finalized": True, "resume_pending": True, "resume_reason": "restart_interrupted"},
)
MARK_AGES = (None, 3599.0, 3600.0, 3600.000001, 86400.0)
LAST_USED = (60.0, 5400.0, 90000.0)
WINDOWS = ("0", "-1", "60", "", "soon")
DAILY_OR_IDLE: Fields = {"mode": "both", "at_hour": 4, "idle_minutes": 60}
DECIDING: tuple[Fields, ...] = (
    {"mode": "none"},
    {"mode": "idle", "idle_minutes": 60},
    {"mode": "idle", "idle_minutes": 1440},
    {"mode": "daily", "at_hour": 4},
    DAILY_OR_IDLE,
)


def decisions(home: Path) -> list[Fields]:
    """What the next message does to a lane, over its marks, their age, the policy and the settings."""
    every_mark = list(itertools.product(MARKS, LAST_USED, MARK_AGES))
    resumable = list(itertools.product(MARKS[2:3], LAST_USED[:2], MARK_AGES))
    asked: list[tuple[Fields, list[tuple[Fields, float, float | None]]]] = [
        ({"policy": policy}, every_mark) for policy in DECIDING
    ]
    asked += [({"policy": DECIDING[2], "freshness_window": window}, resumable) for window in WINDOWS]
    asked += [
        ({"policy": DAILY_OR_IDLE, setting: True}, list(itertools.product(MARKS, LAST_USED, MARK_AGES[:1])))
        for setting in ("active_processes", "force_new")
    ]
    with frozen_at(NOW):
        return [
            decision
            for number, (settings, lanes) in enumerate(asked)
            for decision in decisions_under(settings, lanes, home / f"decisions-{number}")
        ]


def decisions_under(
    settings: Fields, lanes: list[tuple[Fields, float, float | None]], folder: Path
) -> Iterator[Fields]:
    """One store whose lanes carry these marks, last use and age of the mark; each lane gets one message."""
    entries = {
        f"{folder.name}-{number}": marked_entry(f"{folder.name}-{number}", *lane)
        for number, lane in enumerate(lanes)
        if lane[0].get("resume_pending") or lane[2] is None
    }
    active = settings.get("active_processes", False)
    store = open_store(folder, entries.values(), settings["policy"], active=active)
    with mock.patch.dict(os.environ):
        if "freshness_window" in settings:
            os.environ["HERMES_AUTO_CONTINUE_FRESHNESS"] = settings["freshness_window"]
        for chat, entry in entries.items():
            after = store.get_or_create_session(direct_chat(chat), force_new=settings.get("force_new", False))
            kept = after.session_id == entry["session_id"]
            answer = {"kept": kept, "reason": after.auto_reset_reason}
            answer |= {} if kept else {"had_activity": after.reset_had_activity}
            before = {name: entry[name] for name in WATCHED if entry.get(name)}
            yield {"entry": before, **settings, "now": NOW.isoformat(), **answer}


def marked_entry(chat: str, marks: Fields, last_used: float, age: float | None) -> Fields:
    mark = {} if age is None else {"last_resume_marked_at": (NOW - timedelta(seconds=age)).isoformat()}
    tokens = 0 if last_used == LAST_USED[1] else 120
    return stored_entry(chat, NOW - timedelta(seconds=last_used), last_prompt_tokens=tokens, **marks, **mark)


WATCHED = (
    "updated_at", "suspended", "resume_pending", "last_resume_marked_at", "expiry_finalized",
    "last_prompt_tokens",
)  # fmt: skip
