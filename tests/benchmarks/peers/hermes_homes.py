"""Writes `tests/data/hermes_*.sql` and `.jsonl`: a Hermes database as its own code fills it, and its export.

Needs an environment of its own with `hermes-agent==0.19.0`; `environment.py` makes one. From the root of the
repository:

    TZ=UTC <environment>/bin/python -m tests.benchmarks.peers.hermes_homes

The newest file is what the peer wrote. The older ones hold the same rows in the columns that older versions
had: schema 11 as its documentation shows it, and one between. The output is the same every time.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

DATA = Path(__file__).parents[2] / "data"
START = 1772722800.25
SESSIONS_DIR = "{SESSIONS_DIR}"
TABLES = (
    "schema_version", "sessions", "messages", "session_model_usage", "state_meta", "gateway_routing",
    "compression_locks", "async_delegations",
)  # fmt: skip
SEED_SESSIONS = (
    "id", "source", "user_id", "model", "model_config", "system_prompt", "parent_session_id", "started_at",
    "ended_at", "end_reason", "message_count", "tool_call_count", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "billing_provider", "billing_base_url",
    "billing_mode", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source",
    "pricing_version", "title", "api_call_count",
)  # fmt: skip
SEED_MESSAGES = (
    "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
    "token_count", "finish_reason", "reasoning", "reasoning_content", "reasoning_details",
    "codex_reasoning_items", "codex_message_items",
)  # fmt: skip
LATER_SESSIONS = (*SEED_SESSIONS, "handoff_state", "handoff_platform", "handoff_error", "cwd", "archived")
LATER_MESSAGES = (*SEED_MESSAGES, "platform_message_id", "observed", "active")
USER = {"platform": "telegram", "chat_id": "4711", "chat_type": "dm", "user_id": "4711", "user_name": "Alice"}
GROUP = {
    "platform": "telegram",
    "chat_id": "-100:7",
    "chat_type": "group",
    "user_id": "4711",
    "chat_name": "Team",
}


def main() -> None:
    """Fill a home that is thrown away, and write what its database holds."""
    if time.tzname[0] != "UTC":
        sys.exit("run me with TZ=UTC")
    with tempfile.TemporaryDirectory() as home:
        os.environ["HERMES_HOME"] = home
        path = Path(home) / "state.db"
        fill(path)
        write("hermes_0_19.jsonl", exported(path))
        with closing(sqlite3.connect(path)) as database:
            write("hermes_0_19.sql", dumped(database, TABLES, {}))
            shapes = {"sessions": LATER_SESSIONS, "messages": LATER_MESSAGES}
            write(
                "hermes_0_15_like.sql",
                dumped(database, ("schema_version", "sessions", "messages"), shapes, 14),
            )
            shapes = {"sessions": SEED_SESSIONS, "messages": SEED_MESSAGES}
            write(
                "hermes_schema_11.sql",
                dumped(database, ("schema_version", "sessions", "messages"), shapes, 11),
            )


def write(name: str, lines: Iterable[str]) -> None:
    target = DATA / name
    target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{target.stat().st_size:6} {name}")


def dumped(
    database: sqlite3.Connection,
    tables: Iterable[str],
    shapes: dict[str, tuple[str, ...]],
    version: int | None = None,
) -> Iterable[str]:
    """Statements that make these tables with these columns (None: as they are), and their rows."""
    for table in tables:
        info = database.execute(f"PRAGMA table_info({table})").fetchall()
        columns = shapes.get(table) or tuple(row[1] for row in info)
        types = {row[1]: row[2] for row in info}
        keys = [row[1] for row in info if row[5]]
        defined = ", ".join(f"{name} {types[name]}" for name in columns)
        primary = f", PRIMARY KEY ({', '.join(keys)})" if keys else ""
        yield f"CREATE TABLE {table} ({defined}{primary});"
        if table == "schema_version" and version is not None:
            yield f"INSERT INTO schema_version VALUES ({version});"  # noqa: S608 -- constants
            continue
        for row in database.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid"):  # noqa: S608 -- constants
            yield f"INSERT INTO {table} VALUES ({', '.join(map(literal, row))});"  # noqa: S608 -- text for a file


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).encode()
    if b"\x00" in text or b"\n" in text:
        return f"CAST(x'{text.hex()}' AS TEXT)"
    return "'" + text.decode().replace("'", "''") + "'"


def fill(path: Path) -> None:
    """Sessions of every kind."""
    from hermes_state import SessionDB  # type: ignore[import-not-found]  # only in the peer's environment  # noqa: PLC0415

    ticks = itertools.count(1)
    with mock.patch("time.time", side_effect=lambda: START + next(ticks) / 8):
        db = SessionDB(path)
        compressed_chat(db)
        branches(db)
        odd_ones(db)
        lanes(db)
        db.close()


def exported(path: Path) -> list[str]:
    """What `hermes sessions export` writes."""
    from hermes_state import SessionDB  # noqa: PLC0415 -- after the environment is set

    db = SessionDB(path)
    lines = [json.dumps(one, ensure_ascii=False) for one in db.export_all()]
    db.close()
    return lines


def compressed_chat(db: Any) -> None:
    """A chat that was compressed twice over, with everything a message can carry."""
    chat = {
        "user_id": "4711",
        "session_key": "agent:main:telegram:dm:4711",
        "chat_id": "4711",
        "chat_type": "dm",
    }
    db.create_session("20260305_150000_aaaaaaaa", "telegram", model="m-1", system_prompt="Be brief.",
                      model_config={"temperature": 0.5}, **chat)  # fmt: skip
    db.set_session_title("20260305_150000_aaaaaaaa", "Trip to Lisbon")
    say = say_in(db, "20260305_150000_aaaaaaaa")
    say("session_meta", '{"tools": ["terminal"]}')
    say("user", "When does the train leave?\nFrom Lisbon.", platform_message_id="101")
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "terminal", "arguments": '{"command": "date"}'},
    }
    say("assistant", "I'll look.", tool_calls=[call], finish_reason="tool_calls", reasoning="A time table.",
        reasoning_details=[{"type": "summary", "text": "look"}], codex_reasoning_items=[{"id": "r1"}],
        codex_message_items=[{"id": "m1"}], reasoning_content="", token_count=12)  # fmt: skip
    say("tool", "Thu 5 Mar", tool_call_id="c1", tool_name="terminal", effect_disposition="none")
    say("assistant", "At nine.", finish_reason="stop", api_content="At nine. [memory]")
    say(
        "user",
        [
            {"type": "text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}},
        ],
    )
    say("user", "half a \ud83d emoji", observed=True)
    usage = {
        "model": "m-1",
        "billing_provider": "p",
        "billing_base_url": "https://api.example.org/v1",
        "cost_status": "estimated",
    }
    for tokens in (100, 150):
        db.update_token_counts(
            "20260305_150000_aaaaaaaa",
            input_tokens=tokens,
            output_tokens=10,
            reasoning_tokens=4,
            cache_read_tokens=5,
            estimated_cost_usd=0.001,
            api_call_count=1,
            **usage,
        )
    db.update_token_counts(
        "20260305_150000_aaaaaaaa",
        input_tokens=40,
        output_tokens=3,
        model="m-2",
        billing_provider="p",
        api_call_count=1,
    )
    db.record_auxiliary_usage(
        "20260305_150000_aaaaaaaa", "title_generation", model="m-3", input_tokens=7, output_tokens=2
    )
    db.end_session("20260305_150000_aaaaaaaa", "compression")
    for child in ("20260305_160000_bbbbbb", "20260305_160001_cccccc"):
        db.create_session(child, "telegram", parent_session_id="20260305_150000_aaaaaaaa", **chat)
    db.set_session_title("20260305_160000_bbbbbb", "Trip to Lisbon #2")
    say_in(db, "20260305_160000_bbbbbb")("user", "A summary of what was said.")
    say_in(db, "20260305_160001_cccccc")("user", "A stale window.")
    db.end_session("20260305_160001_cccccc", "ws_orphan_reap")
    tip = say_in(db, "20260305_160000_bbbbbb")
    first = [tip("user", f"question {number}") for number in range(3)]
    db.archive_and_compact("20260305_160000_bbbbbb", [{"role": "user", "content": "Short: three questions."}])
    tip("assistant", "Yes?")
    taken_back = tip("user", "no, wait")
    tip("assistant", "Waiting.")
    db.rewind_to_message("20260305_160000_bbbbbb", taken_back)
    tip("user", "go on")
    assert first
    db.update_token_counts(
        "20260305_160000_bbbbbb",
        input_tokens=500,
        output_tokens=50,
        model="m-1",
        api_call_count=2,
        absolute=True,
    )


def branches(db: Any) -> None:
    """A branch, a sub-agent, and the work of a timer."""
    parent = "20260305_150000_aaaaaaaa"
    db.create_session("20260305_170000_dddddd", "telegram", user_id="4711", parent_session_id=parent,
                      model_config={"_branched_from": parent})  # fmt: skip
    say_in(db, "20260305_170000_dddddd")("user", "What if we flew?")
    db.create_session(
        "20260305_171000_eeeeee", "tool", parent_session_id=parent, model_config={"_delegate_from": parent}
    )
    say_in(db, "20260305_171000_eeeeee")("user", "Find flights.")
    db.end_session("20260305_171000_eeeeee", "agent_close")
    db.create_session("cron_42_20260305_180000", "cron", model="m-1")
    say_in(db, "cron_42_20260305_180000")("user", "Water the plants.")
    db.end_session("cron_42_20260305_180000", "cron_complete")


def odd_ones(db: Any) -> None:
    """The command line, an archived session, a renewed one, an empty one, and ids that are none of ours."""
    db.create_session("20260304_090000_ffffff", "cli", cwd="/home/alice/project")
    say_in(db, "20260304_090000_ffffff")("user", "List the files.")
    db.set_session_title("20260304_090000_ffffff", "Files")
    db.set_session_archived("20260304_090000_ffffff", True)
    group = {"user_id": "4711", "session_key": "agent:main:telegram:group:-100:7:4711", "chat_id": "-100:7",
             "chat_type": "group"}  # fmt: skip
    db.create_session("20260304_100000_11111111", "telegram", **group)
    say_in(db, "20260304_100000_11111111")("user", "Good morning, team.")
    db.end_session("20260304_100000_11111111", "daily")
    db.create_session(
        "20260305_100000_22222222", "telegram", parent_session_id="20260304_100000_11111111", **group
    )
    db.record_gateway_session_peer("20260305_100000_22222222", source="telegram", display_name="Team",
                                   origin_json=json.dumps(GROUP), **group)  # fmt: skip
    say_in(db, "20260305_100000_22222222")("user", "Good morning again.")
    db.create_session("api/with slash", "api_server", user_id="key-1")
    say_in(db, "api/with slash")("user", "Called from outside.")
    db.create_session("20260305_190000_33333333", "telegram", user_id="99")
    db.request_handoff("20260305_190000_33333333", "discord")
    db.set_meta("last_auto_prune", "1772722800")


def lanes(db: Any) -> None:
    """The routing table: a chat, the same session on another lane, and a group whose id holds a separator."""
    entries = (
        ("agent:main:telegram:dm:4711", "20260305_160000_bbbbbb", USER, 3600),
        ("agent:main:discord:dm:4711", "20260305_160000_bbbbbb", USER | {"platform": "discord"}, 60),
        ("agent:main:telegram:group:-100:7:4711", "20260305_100000_22222222", GROUP, 30),
    )
    for key, session_id, origin, used in entries:
        entry = {
            "session_key": key,
            "session_id": session_id,
            "created_at": local(START),
            "updated_at": local(START + used),
            "platform": origin["platform"],
            "chat_type": origin["chat_type"],
            "origin": origin,
        }
        db.save_gateway_routing_entry(scope=SESSIONS_DIR, session_key=key, entry_json=json.dumps(entry))


def local(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def say_in(db: Any, session_id: str) -> Any:
    return lambda role, content, **more: db.append_message(session_id, role, content, **more)


if __name__ == "__main__":
    main()
