"""What an import takes in, what it reports, and what it leaves as it is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Scope, SessionDB, StorageUnavailableError
from gateway_sessions.core.erasure import tombstone_of
from gateway_sessions.core.export.reports import FindingKind, ImportReport, TransferProgress
from gateway_sessions.storage.transfer import files, importing
from gateway_sessions.testing import FakeClock

DATA = Path(__file__).parents[2] / "data"
OPERATOR = Scope.operator()
T = 1772722800.25


def session(session_id: str, **more: Any) -> dict[str, Any]:
    """A session as some other program exports it."""
    message = {"role": "user", "content": f"hello from {session_id}", "timestamp": T}
    return {"id": session_id, "source": "cli", "started_at": T, "messages": [message]} | more


def found(report: ImportReport) -> list[tuple[str, str | None, int | None]]:
    return [(str(one.kind), one.session_id, one.line) for one in report.findings]


async def exported(db: SessionDB, session_id: str) -> dict[str, Any]:
    return await db.export_session(session_id, scope=OPERATOR)


async def everything(db: SessionDB) -> list[dict[str, Any]]:
    return [one async for one in db.export_all(scope=OPERATOR)]


async def test_a_second_import_changes_nothing(db: SessionDB):
    given = [session("a"), session("b", parent_session_id="a", title="Trip")]
    first = await db.import_sessions(given)
    before = await everything(db)
    second = await db.import_sessions(given)
    assert (first.imported, first.skipped, first.messages) == (2, 0, 2)
    assert (second.imported, second.skipped, second.messages, second.findings) == (0, 2, 0, ())
    assert await everything(db) == before


async def test_a_dry_run_tells_what_would_be_and_writes_nothing(db: SessionDB):
    await db.create_session("taken", "cli")
    await db.set_session_title("taken", "Trip")
    given = [
        session("child", parent_session_id="later"),
        session("later", title="Trip"),
        session("next", title="Trip"),
        session("orphan", parent_session_id="gone"),
        session("a", parent_session_id="b"),
        session("b", parent_session_id="a"),
        session("a", title="again"),
        session("later", title="Trip"),
        session("c1", parent_session_id="a", relation="continuation"),
        session("c2", parent_session_id="a", relation="continuation"),
        session("taken"),
        {"id": "no/path"},
    ]
    dry = await db.import_sessions(given, dry_run=True)
    assert [one["id"] for one in await everything(db)] == ["taken"]
    real = await db.import_sessions(given)
    assert dry.dry_run
    assert not real.dry_run
    assert (dry.imported, dry.skipped, dry.messages) == (real.imported, real.skipped, real.messages)
    assert found(dry) == found(real)
    assert found(real) == [
        ("error", None, 12),
        ("retitled", "later", 2),
        ("retitled", "next", 3),
        ("detached", "a", 5),
        ("clash", "a", 7),
        ("branched", "c2", 10),
        ("clash", "taken", 11),
        ("detached", "orphan", 4),
    ]


async def test_parents_may_stand_behind_their_children(db: SessionDB):
    report = await db.import_sessions([session("child", parent_session_id="parent"), session("parent")])
    assert report.findings == ()
    child = await exported(db, "child")
    assert (child["parent_session_id"], child["relation"]) == ("parent", "succession")
    assert "extra" not in child


async def test_a_parent_that_comes_with_a_later_file_is_found(db: SessionDB):
    child = session("child", parent_session_id="parent", relation="branch")
    first = await db.import_sessions([child])
    assert found(first) == [("detached", "child", 1)]
    assert (await exported(db, "child"))["extra"]["import"] == {
        "parent_session_id": "parent",
        "relation": "branch",
    }
    assert (await db.import_sessions([child])).findings == ()
    second = await db.import_sessions([child, session("parent")])
    assert (second.imported, second.skipped, second.findings) == (1, 1, ())
    assert (await exported(db, "child"))["relation"] == "branch"
    third = await db.import_sessions([session("parent"), child])
    assert (third.skipped, third.findings) == (2, ())


async def test_nobody_becomes_their_own_ancestor(db: SessionDB):
    ring = [session(one, parent_session_id=other) for one, other in ("ab", "bc", "ca", "dd")]
    report = await db.import_sessions(ring)
    assert sorted(one.session_id or "" for one in report.of(FindingKind.DETACHED)) == ["b", "d"]
    assert report.imported == 4


async def test_a_taken_title_gets_the_next_of_its_lineage(db: SessionDB):
    await db.create_session("mine", "cli")
    await db.set_session_title("mine", "Trip")
    report = await db.import_sessions([session("a", title="Trip"), session("b", title="Trip #2")])
    assert [(await exported(db, one))["title"] for one in ("mine", "a", "b")] == [
        "Trip",
        "Trip #2",
        "Trip #3",
    ]
    assert found(report) == [("retitled", "a", 1), ("retitled", "b", 2)]
    assert (await db.import_sessions([session("a", title="Trip")])).skipped == 1


async def test_another_owner_may_have_the_same_title(db: SessionDB):
    report = await db.import_sessions(
        [session("a", title="T", user_id="x"), session("b", title="T", user_id="y")]
    )
    assert report.findings == ()


async def test_a_session_that_has_changed_since_is_a_clash_and_stays(db: SessionDB):
    await db.import_sessions([session("a"), session("b"), session("c", title="T")])
    await db.append_message("a", "user", "more")
    await db.rewind_session("b")
    await db.set_session_title("c", "Mine")
    before = await everything(db)
    report = await db.import_sessions([session("a"), session("b"), session("c", title="T")])
    assert [str(one) for one in report.clashes] == [
        "line 1: session a: another session has its id; their messages differ",
        "line 2: session b: another session has its id; their messages differ",
        "line 3: session c: another session has its id; they differ in title",
    ]
    assert await everything(db) == before


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"messages": []}, "their messages differ"),
        ({"versions": []}, "earlier versions of their messages differ"),
        ({"usage_events": []}, "their use differs"),
    ],
)
async def test_every_difference_is_noticed(db: SessionDB, change: dict[str, Any], problem: str):
    message = {
        "role": "user",
        "content": "x",
        "timestamp": T,
        "versions": [{"content": "y", "replaced_at": T}],
    }
    whole = session("a", messages=[message], usage_events=[{"event_id": "e", "at": T, "input_tokens": 1}])
    await db.import_sessions([whole])
    if "versions" in change:
        change = {"messages": [message | change]}
    report = await db.import_sessions([whole | change])
    assert [one.detail for one in report.clashes] == [f"another session has its id; {problem}"]


async def test_fewer_messages_here_than_in_the_file(db: SessionDB):
    one = session("a")
    await db.import_sessions([one])
    report = await db.import_sessions(
        [one | {"messages": [*one["messages"], *one["messages"]], "preview": "x"}]
    )
    assert [one.detail for one in report.clashes] == ["another session has its id; it has fewer messages"]


async def test_use_that_was_counted_elsewhere_is_not_counted_twice(db: SessionDB):
    events = [{"event_id": "e", "at": T, "input_tokens": 5}]
    given = [session("a", usage_events=events), session("b", usage_events=events)]
    dry = await db.import_sessions(given, dry_run=True)
    report = await db.import_sessions(given)
    assert found(dry) == found(report) == [("clash", "b", 2)]


async def test_counters_are_the_sum_of_the_events_whatever_the_file_says(db: SessionDB):
    events = [{"event_id": "e", "at": T, "input_tokens": 5, "estimated_cost_usd": 0.5}]
    await db.import_sessions([session("a", usage_events=events, input_tokens=10**9, estimated_cost_usd=99)])
    kept = await exported(db, "a")
    assert (kept["input_tokens"], kept["estimated_cost_usd"], kept["cost_status"]) == (5, 0.5, "estimated")


async def test_counters_without_events_become_one_event(db: SessionDB):
    await db.import_sessions(
        [
            session(
                "a", input_tokens=7, output_tokens=2, model="m", billing_provider="p", estimated_cost_usd=0.0
            ),
            session("b", input_tokens=1, cost_status="included", actual_cost_usd=0.0),
            session("c", output_tokens=0),
        ]
    )
    a, b, c = [await exported(db, one) for one in "abc"]
    assert (a["input_tokens"], a["usage_events"][0]["event_id"], a["usage_events"][0]["provider"]) == (
        7,
        "import:a",
        "p",
    )
    assert a["estimated_cost_usd"] is None
    assert b["cost_status"] == "included"
    assert c["usage_events"] == []


async def test_bad_lines_are_reported_by_number_and_the_rest_goes_on(db: SessionDB, tmp_path: Path):
    path = tmp_path / "x.jsonl"
    bad: list[bytes] = [
        b"\xef\xbb\xbf",
        b"not json",
        b"[1, 2]",
        b'{"id": "half',
        b"",
        b'{"id": "a/b", "started_at": 1}',
        b'{"id": "x", "source": "cli"}',
        b"\xff\xfe",
        b'{"id": "n", "started_at": NaN}',
        b"[" * 100_000,
        json.dumps(session("deep", extra={"a": nested(70)})).encode(),
    ]
    path.write_bytes(b"\n".join([*bad, json.dumps(session("good")).encode()]))
    report = await db.import_sessions(path)
    assert report.imported == 1
    assert [one.line for one in report.errors] == [2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert all(one.detail for one in report.errors)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "change",
    [
        {"messages": 7},
        {"messages": [7]},
        {"messages": [{"role": "user", "timestamp": "soon"}]},
        {"messages": [{"role": 7}]},
        {"messages": [{"role": "user", "token_count": -1}]},
        {"messages": [{"role": "user", "hidden_because": "bored"}]},
        {"messages": [{"role": "user", "observed": "maybe"}]},
        {"messages": [{"role": "user", "content": 7, "tool_name": 7}]},
        {"messages": [{"role": "user", "extra": 7}]},
        {"messages": [{"role": "user", "versions": [7]}]},
        {"source": "two\nlines"},
        {"owner": "two\nlines"},
        {"title": 7},
        {"model": 7},
        {"started_at": "long ago"},
        {"started_at_micros": 10**30},
        {"ended_at": [1]},
        {"end_reason": "x" * 1000},
        {"parent_session_id": "../x"},
        {"parent_session_id": "p", "relation": "cousin"},
        {"pinned": "yes"},
        {"rewind_count": -1},
        {"extra": [1]},
        {"usage_events": [{"at": T}]},
        {"usage_events": [{"event_id": "e", "input_tokens": -1}]},
        {"usage_events": [{"event_id": "e"}, {"event_id": "e"}]},
        {"usage_events": [7]},
        {"format": "gateway-sessions/1", "model_config": 7},
        {"ended_at": T, "entry": {"session_id": "other"}},
    ],
)
async def test_what_cannot_be_used_is_refused_with_its_name(db: SessionDB, change: dict[str, Any]):
    report = await db.import_sessions([session("a", **change), session("b")])
    assert [one.line for one in report.errors] == [1]
    assert report.imported == 1


async def test_exports_of_another_program_are_understood(db: SessionDB):
    given = session(
        "a",
        model_config='{"_branched_from": "p"}',
        parent_session_id="p",
        chat_id="4711",
        archived=1,
        messages=[
            {
                "id": 1,
                "session_id": "a",
                "role": "user",
                "content": '\x00json:[{"type": "text", "text": "hi"}]',
                "timestamp": T,
            },
            {
                "id": 2,
                "role": "assistant",
                "content": None,
                "tool_calls": '[{"id": "c"}]',
                "reasoning_details": "[1]",
            },
            {"id": 3, "role": "tool", "content": 7, "tool_calls": "broken", "observed": 1, "mood": "good"},
            {"id": 4, "role": "user", "content": "old", "active": 0, "compacted": 1},
            {"id": 5, "role": "user", "content": "back", "active": 0},
            {"id": 6, "role": "user", "content": "\x00json:broken", "active": 0},
        ],
    )
    await db.import_sessions([session("p", model_config="not json"), given])
    kept = await exported(db, "a")
    assert (kept["relation"], kept["archived"], kept["extra"]) == ("branch", True, {"chat_id": "4711"})
    assert (await exported(db, "p"))["model_config"] == {"model_config": "not json"}
    one, two, three, *hidden = kept["messages"]
    assert one["content"] == [{"type": "text", "text": "hi"}]
    assert (two["tool_calls"], two["reasoning_details"], two["timestamp"]) == ([{"id": "c"}], [1], T)
    assert (three["content"], three["tool_calls"], three["extra"]) == ("7", ["broken"], {"mood": "good"})
    assert [(one["hidden_because"], one.get("hidden_by")) for one in hidden] == [
        ("compacted", None),
        ("rewound", 1),
        ("rewound", 1),
    ]
    assert (await db.import_sessions([given])).skipped == 1
    assert await db.restore_rewound("a") == 2


async def test_what_was_taken_in_can_be_taken_back_and_goes_on(db: SessionDB):
    await db.import_sessions([session("a")])
    await db.append_message("a", "assistant", "hello")
    assert [one.seq for one in await db.get_messages("a")] == [1, 2]


async def test_all_may_become_somebody_elses(db: SessionDB):
    given = session("a", owner="main:x:user:old", session_key="agent:main:x:dm:old", user_id="old")
    await db.import_sessions([given], owner="main:cli:user:new")
    kept = await exported(db, "a")
    assert kept["owner"] == "main:cli:user:new"
    assert "session_key" not in kept
    assert (await db.import_sessions([given], owner="main:cli:user:new")).skipped == 1


async def test_an_owner_that_is_not_said_is_the_person(db: SessionDB):
    await db.import_sessions([session("a", user_id="u:1"), session("b")])
    assert [(await exported(db, one))["owner"] for one in "ab"] == ["main:cli:user:u%3A1", "main:cli:local"]


async def test_lines_may_come_from_anywhere(db: SessionDB, other: SessionDB):
    async def stream() -> AsyncIterator[bytes]:
        for one in "ab":
            yield json.dumps(session(one)).encode()

    assert (await db.import_sessions(stream())).imported == 2
    assert (await other.import_sessions(db.export_all(scope=OPERATOR))).imported == 2
    assert await everything(other) == await everything(db)
    assert (await db.import_sessions([json.dumps(session("c"))])).imported == 1


async def test_a_line_that_is_too_long_is_passed_over(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 400)
    monkeypatch.setattr(files, "_SKIPPED", 100)
    path = tmp_path / "x.jsonl"
    long = session("long", title="x" * 2000)
    path.write_text("\n".join(json.dumps(one) for one in (long, session("short"), long)))
    report = await db.import_sessions(path)
    assert (report.imported, [one.line for one in report.errors]) == (1, [1, 3])


async def test_findings_without_end_are_only_counted(db: SessionDB, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importing, "MAX_FINDINGS", 2)
    report = await db.import_sessions([{}] * 5)
    assert (len(report.findings), report.more_findings) == (2, 3)


async def test_progress_is_told(db: SessionDB):
    seen: list[TransferProgress] = []
    await db.import_sessions([session(str(number)) for number in range(40)], progress=seen.append)
    assert [one.sessions for one in seen] == [32, 40]


async def test_a_file_that_is_not_there_is_a_storage_error(db: SessionDB, tmp_path: Path):
    with pytest.raises(StorageUnavailableError):
        await db.import_sessions(tmp_path / "nowhere.jsonl")


async def test_whoever_was_erased_does_not_come_back(db: SessionDB):
    given = session("a", user_id="alice")
    await db.import_sessions([given])
    with sqlite3.connect(db.path) as connection:
        erased_at = int((T + 60) * 1_000_000)
        alice = tombstone_of(db.opening.install_secret, "main:cli:user:alice")
        connection.execute("INSERT INTO tombstones VALUES (?, ?)", (alice, erased_at))
    connection.close()
    report = await db.import_sessions([session("b", user_id="alice")])
    assert ["erased" in one.detail for one in report.clashes] == [True]


async def test_times_survive_to_the_microsecond(db: SessionDB, other: SessionDB, fake_clock: FakeClock):
    await db.create_session("s", "cli")
    years = range(0, 900, 7)
    moments = [fake_clock.now() + timedelta(days=365 * one, microseconds=one) for one in years]
    await db.append_messages("s", [{"role": "user", "content": "x", "timestamp": one} for one in moments])
    await other.import_sessions(db.export_all(scope=OPERATOR))
    assert [one.sent_at for one in await other.get_messages("s")] == moments


async def test_an_export_that_hermes_wrote_is_taken_in(db: SessionDB):
    lines = (DATA / "hermes_0_19.jsonl").read_text("utf-8").splitlines()
    report = await db.import_sessions(lines)
    assert (report.imported, len(report.errors)) == (10, 1)
    assert "'api/with slash'" in report.errors[0].detail
    root = await db.export_session("20260305_150000_aaaaaaaa", scope=OPERATOR)
    assert (root["title"], root["model_config"]) == ("Trip to Lisbon", {"temperature": 0.5})
    assert (root["input_tokens"], root["extra"]["chat_id"]) == (290, "4711")
    assert root["messages"][5]["content"][0] == {"type": "text", "text": "And this?"}
    assert root["messages"][2]["reasoning_details"] == [{"type": "summary", "text": "look"}]
    branch = await db.export_session("20260305_170000_dddddd", scope=OPERATOR)
    assert branch["relation"] == "branch"
    assert (await db.import_sessions(lines)).skipped == 10
