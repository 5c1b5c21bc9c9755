"""Contract tests of exports, imports, and round trips of both.

A round trip keeps all sessions of a database, and the receipt of an erasure survives an import.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from gateway_sessions import InvalidInputError, Message, SessionDB, SessionNotFoundError
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.bench import (
    ALICE,
    EVERYTHING,
    DatabaseContract,
    everything,
    talk,
    there,
)
from gateway_sessions.testing.contract.database.unstorable_values import nested
from gateway_sessions.testing.inside import ESTABLISHED
from gateway_sessions.transcripts import FindingKind, ImportReport, TransferProgress


async def fill(db: SessionDB) -> None:
    """Create two sessions of Alice's, of which one continues the other, and one of Bob's."""
    await db.create_session("a1", "cli", user_id="alice", model="m", model_config={"temperature": 0.5})
    await db.append_messages("a1", [{"role": "user", "content": f"question {number}"} for number in range(3)])
    await db.create_session("b1", "telegram", user_id="bob")
    await db.append_message("b1", "user", "hello from Bob")
    await db.create_session("a2", "cli", user_id="alice", parent_session_id="a1", relation="continuation")
    await db.append_message("a2", "user", "a summary")
    await db.end_session("a1", "compression")


async def lines(db: SessionDB, **asked: Any) -> list[dict[str, Any]]:
    """Return the lines that an export writes."""
    stream = io.BytesIO()
    await db.write_export(stream, scope=EVERYTHING, **asked)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


class ExportingContract(DatabaseContract):
    """Tests the content of exports, and their scopes."""

    async def test_an_export_has_the_established_members_and_its_messages(self, db: SessionDB) -> None:
        await fill(db)
        exported = await db.export_session("a1", scope=EVERYTHING)
        assert list(exported)[: len(ESTABLISHED) + 2] == ["id", "format", *ESTABLISHED]
        assert exported["id"] == "a1"
        assert exported["model_config"] == {"temperature": 0.5}
        assert isinstance(exported["started_at"], float)
        assert [one["content"] for one in exported["messages"]] == ["question 0", "question 1", "question 2"]
        assert exported["messages"][0].keys() == {"seq", "role", "content", "timestamp"}
        json.dumps(exported)

    async def test_nobody_exports_what_they_cannot_see(self, db: SessionDB) -> None:
        await fill(db)
        with pytest.raises(SessionNotFoundError):
            await db.export_session("b1", scope=ALICE)
        assert [one["id"] async for one in db.export_all(scope=ALICE)] == ["a1", "a2"]
        with pytest.raises(SessionNotFoundError):
            await db.write_export(io.BytesIO(), scope=ALICE, session_id="b1", lineage="logical")
        stream = io.BytesIO()
        await db.write_export(stream, scope=ALICE)
        assert b"Bob" not in stream.getvalue()

    async def test_sessions_are_exported_in_the_order_in_which_they_began(self, db: SessionDB) -> None:
        await fill(db)
        assert [one["id"] async for one in db.export_all(scope=EVERYTHING)] == ["a1", "a2", "b1"]
        assert [one["id"] async for one in db.export_all(scope=EVERYTHING, source="telegram")] == ["b1"]

    async def test_one_session_is_exported_or_the_line_it_stands_in(self, db: SessionDB) -> None:
        await fill(db)
        assert [one["id"] for one in await lines(db, session_id="a2")] == ["a2"]
        both = await lines(db, session_id="a2", lineage="logical")
        assert [one["id"] for one in both] == ["a1", "a2"]

    async def test_logically_a_compressed_conversation_stands_together(self, db: SessionDB) -> None:
        await fill(db)
        assert [one["id"] for one in await lines(db, lineage="logical")] == ["a1", "a2", "b1"]

    async def test_hidden_messages_may_be_left_out_of_an_export(self, db: SessionDB) -> None:
        await fill(db)
        await db.rewind_session("a1")
        whole = await db.export_session("a1", scope=EVERYTHING)
        assert whole["messages"][-1]["hidden_because"] == "rewound"
        assert whole["messages"][-1]["active"] is False
        shown = await db.export_session("a1", scope=EVERYTHING, include_hidden=False)
        assert [one["seq"] for one in shown["messages"]] == [1, 2]

    @pytest.mark.parametrize(
        ("form", "beginning"), [("markdown", b"# question 0\n"), ("html", b"<!DOCTYPE html>")]
    )
    async def test_people_get_pages_they_can_read(self, db: SessionDB, form: str, beginning: bytes) -> None:
        await fill(db)
        stream = io.BytesIO()
        report = await db.write_export(stream, scope=EVERYTHING, format=form)
        assert stream.getvalue().startswith(beginning)
        assert report.bytes == len(stream.getvalue())

    async def test_an_export_shows_one_moment(self, db: SessionDB) -> None:
        await fill(db)
        written: list[asyncio.Task[int]] = []

        def write_meanwhile(_: TransferProgress) -> None:
            if not written:
                written.append(asyncio.ensure_future(db.append_message("b1", "user", "too late")))

        shown = await lines(db, progress=write_meanwhile)
        await written[0]
        assert "too late" not in str(shown)
        assert "too late" in str(await lines(db))

    async def test_options_of_an_export_that_nobody_knows_are_refused(self, db: SessionDB) -> None:
        with pytest.raises(InvalidInputError, match="jsonl, markdown, html"):
            await db.write_export(io.BytesIO(), scope=EVERYTHING, format="pdf")
        with pytest.raises(InvalidInputError, match="lineage"):
            await db.write_export(io.BytesIO(), scope=EVERYTHING, lineage="family")  # type: ignore[arg-type]  # what a caller gets wrong


T: Final = 1772722800.25
BY_OTHERS: Final[list[dict[str, Any]]] = [
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
    {
        "id": 3,
        "role": "tool",
        "content": 7,
        "tool_calls": "broken",
        "observed": 1,
        "mood": "good",
    },
    {"id": 4, "role": "user", "content": "old", "active": 0, "compacted": 1},
    {"id": 5, "role": "user", "content": "back", "active": 0},
    {"id": 6, "role": "user", "content": "\x00json:broken", "active": 0},
]
"""Messages in the words of another program."""
UNUSABLE: Final[tuple[dict[str, Any], ...]] = (
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
)


def exported_by_others(session_id: str, **more: Any) -> dict[str, Any]:
    """Return a session as another program exports it."""
    message = {"role": "user", "content": f"hello from {session_id}", "timestamp": T}
    return {"id": session_id, "source": "cli", "started_at": T, "messages": [message]} | more


def told(report: ImportReport) -> list[tuple[str, str | None, int | None]]:
    """Return the findings of a report, briefly."""
    return [(str(one.kind), one.session_id, one.line) for one in report.findings]


async def exported(db: SessionDB, session_id: str) -> dict[str, Any]:
    """Return a session as it is exported."""
    return await db.export_session(session_id, scope=EVERYTHING)


class ImportingContract(DatabaseContract):
    """Tests imports and their reports."""

    async def test_a_second_import_changes_nothing(self, db: SessionDB) -> None:
        given = [exported_by_others("a"), exported_by_others("b", parent_session_id="a", title="Trip")]
        first = await db.import_sessions(given)
        before = await everything(db)
        second = await db.import_sessions(given)
        assert (first.imported, first.skipped, first.messages) == (2, 0, 2)
        assert (second.imported, second.skipped, second.messages, second.findings) == (0, 2, 0, ())
        assert await everything(db) == before

    async def test_a_dry_import_tells_what_would_be_and_writes_nothing(self, db: SessionDB) -> None:
        await db.create_session("taken", "cli")
        await db.set_session_title("taken", "Trip")
        given = [
            exported_by_others("child", parent_session_id="later"),
            exported_by_others("later", title="Trip"),
            exported_by_others("next", title="Trip"),
            exported_by_others("orphan", parent_session_id="gone"),
            exported_by_others("a", parent_session_id="b"),
            exported_by_others("b", parent_session_id="a"),
            exported_by_others("a", title="again"),
            exported_by_others("later", title="Trip"),
            exported_by_others("c1", parent_session_id="a", relation="continuation"),
            exported_by_others("c2", parent_session_id="a", relation="continuation"),
            exported_by_others("taken"),
            {"id": "no/path"},
        ]
        dry = await db.import_sessions(given, dry_run=True)
        assert [one["id"] for one in await everything(db)] == ["taken"]
        real = await db.import_sessions(given)
        assert dry.dry_run
        assert not real.dry_run
        assert (dry.imported, dry.skipped, dry.messages) == (real.imported, real.skipped, real.messages)
        assert told(dry) == told(real)
        assert told(real) == [
            ("error", None, 12),
            ("retitled", "later", 2),
            ("retitled", "next", 3),
            ("detached", "a", 5),
            ("clash", "a", 7),
            ("branched", "c2", 10),
            ("clash", "taken", 11),
            ("detached", "orphan", 4),
        ]

    async def test_parents_may_stand_behind_their_children(self, db: SessionDB) -> None:
        report = await db.import_sessions(
            [exported_by_others("child", parent_session_id="parent"), exported_by_others("parent")]
        )
        assert report.findings == ()
        child = await exported(db, "child")
        assert (child["parent_session_id"], child["relation"]) == ("parent", "succession")
        assert "extra" not in child

    async def test_a_parent_that_comes_with_a_later_file_is_found(self, db: SessionDB) -> None:
        child = exported_by_others("child", parent_session_id="parent", relation="branch")
        first = await db.import_sessions([child])
        assert told(first) == [("detached", "child", 1)]
        assert (await exported(db, "child"))["extra"]["import"] == {
            "parent_session_id": "parent",
            "relation": "branch",
        }
        assert (await db.import_sessions([child])).findings == ()
        second = await db.import_sessions([child, exported_by_others("parent")])
        assert (second.imported, second.skipped, second.findings) == (1, 1, ())
        assert (await exported(db, "child"))["relation"] == "branch"
        third = await db.import_sessions([exported_by_others("parent"), child])
        assert (third.skipped, third.findings) == (2, ())

    async def test_nobody_becomes_their_own_ancestor(self, db: SessionDB) -> None:
        ring = [exported_by_others(one, parent_session_id=other) for one, other in ("ab", "bc", "ca", "dd")]
        report = await db.import_sessions(ring)
        assert sorted(one.session_id or "" for one in report.of(FindingKind.DETACHED)) == ["b", "d"]
        assert report.imported == 4

    async def test_an_imported_title_that_is_taken_gets_the_next_of_its_lineage(self, db: SessionDB) -> None:
        await db.create_session("mine", "cli")
        await db.set_session_title("mine", "Trip")
        report = await db.import_sessions(
            [exported_by_others("a", title="Trip"), exported_by_others("b", title="Trip #2")]
        )
        assert [(await exported(db, one))["title"] for one in ("mine", "a", "b")] == [
            "Trip",
            "Trip #2",
            "Trip #3",
        ]
        assert told(report) == [("retitled", "a", 1), ("retitled", "b", 2)]
        assert (await db.import_sessions([exported_by_others("a", title="Trip")])).skipped == 1

    async def test_two_owners_may_import_the_same_title(self, db: SessionDB) -> None:
        report = await db.import_sessions(
            [exported_by_others("a", title="T", user_id="x"), exported_by_others("b", title="T", user_id="y")]
        )
        assert report.findings == ()

    async def test_a_session_that_has_changed_since_is_a_clash_and_stays(self, db: SessionDB) -> None:
        await db.import_sessions(
            [exported_by_others("a"), exported_by_others("b"), exported_by_others("c", title="T")]
        )
        await db.append_message("a", "user", "more")
        await db.rewind_session("b")
        await db.set_session_title("c", "Mine")
        before = await everything(db)
        report = await db.import_sessions(
            [exported_by_others("a"), exported_by_others("b"), exported_by_others("c", title="T")]
        )
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
    async def test_every_difference_from_an_import_is_noticed(
        self, db: SessionDB, change: dict[str, Any], problem: str
    ) -> None:
        message = {
            "role": "user",
            "content": "x",
            "timestamp": T,
            "versions": [{"content": "y", "replaced_at": T}],
        }
        whole = exported_by_others(
            "a", messages=[message], usage_events=[{"event_id": "e", "at": T, "input_tokens": 1}]
        )
        await db.import_sessions([whole])
        if "versions" in change:
            change = {"messages": [message | change]}
        report = await db.import_sessions([whole | change])
        assert [one.detail for one in report.clashes] == [f"another session has its id; {problem}"]

    async def test_a_clash_says_that_there_are_fewer_messages_here(self, db: SessionDB) -> None:
        one = exported_by_others("a")
        await db.import_sessions([one])
        report = await db.import_sessions(
            [one | {"messages": [*one["messages"], *one["messages"]], "preview": "x"}]
        )
        assert [one.detail for one in report.clashes] == ["another session has its id; it has fewer messages"]

    async def test_use_that_was_counted_elsewhere_is_not_counted_twice(self, db: SessionDB) -> None:
        events = [{"event_id": "e", "at": T, "input_tokens": 5}]
        given = [exported_by_others("a", usage_events=events), exported_by_others("b", usage_events=events)]
        dry = await db.import_sessions(given, dry_run=True)
        report = await db.import_sessions(given)
        assert told(dry) == told(report) == [("clash", "b", 2)]

    async def test_counters_are_the_sum_of_the_events_whatever_the_file_says(self, db: SessionDB) -> None:
        events = [{"event_id": "e", "at": T, "input_tokens": 5, "estimated_cost_usd": 0.5}]
        await db.import_sessions(
            [exported_by_others("a", usage_events=events, input_tokens=10**9, estimated_cost_usd=99)]
        )
        kept = await exported(db, "a")
        assert (kept["input_tokens"], kept["estimated_cost_usd"], kept["cost_status"]) == (
            5,
            0.5,
            "estimated",
        )

    async def test_counters_without_events_become_one_event(self, db: SessionDB) -> None:
        await db.import_sessions(
            [
                exported_by_others(
                    "a",
                    input_tokens=7,
                    output_tokens=2,
                    model="m",
                    billing_provider="p",
                    estimated_cost_usd=0.0,
                ),
                exported_by_others("b", input_tokens=1, cost_status="included", actual_cost_usd=0.0),
                exported_by_others("c", output_tokens=0),
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

    async def test_bad_lines_are_reported_by_number_and_the_rest_goes_on(
        self, db: SessionDB, tmp_path: Path
    ) -> None:
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
            json.dumps(exported_by_others("deep", extra={"a": nested(70)})).encode(),
        ]
        text = b"\n".join([*bad, json.dumps(exported_by_others("good")).encode()])
        await asyncio.to_thread(path.write_bytes, text)
        report = await db.import_sessions(path)
        assert report.imported == 1
        assert [one.line for one in report.errors] == [2, 3, 4, 6, 7, 8, 9, 10, 11]
        assert all(one.detail for one in report.errors)

    async def test_what_cannot_be_used_is_refused_with_its_line(self, db: SessionDB) -> None:
        given = [exported_by_others(str(number), **change) for number, change in enumerate(UNUSABLE)]
        report = await db.import_sessions([*given, exported_by_others("good")])
        assert [one.line for one in report.errors] == list(range(1, len(UNUSABLE) + 1))
        assert all(one.detail for one in report.errors)
        assert await there(db) == {"good"}

    async def test_exports_of_another_program_are_understood(self, db: SessionDB) -> None:
        given = exported_by_others(
            "a",
            model_config='{"_branched_from": "p"}',
            parent_session_id="p",
            chat_id="4711",
            archived=1,
            messages=BY_OTHERS,
        )
        await db.import_sessions([exported_by_others("p", model_config="not json"), given])
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

    async def test_what_was_taken_in_can_be_taken_back_and_goes_on(self, db: SessionDB) -> None:
        await db.import_sessions([exported_by_others("a")])
        await db.append_message("a", "assistant", "hello")
        assert [one.seq for one in await db.get_messages("a")] == [1, 2]

    async def test_all_that_is_imported_may_become_somebody_elses(self, db: SessionDB) -> None:
        given = exported_by_others(
            "a", owner="main:x:user:old", session_key="agent:main:x:dm:old", user_id="old"
        )
        await db.import_sessions([given], owner="main:cli:user:new")
        kept = await exported(db, "a")
        assert kept["owner"] == "main:cli:user:new"
        assert "session_key" not in kept
        assert (await db.import_sessions([given], owner="main:cli:user:new")).skipped == 1

    async def test_an_owner_that_is_not_said_is_the_person(self, db: SessionDB) -> None:
        await db.import_sessions([exported_by_others("a", user_id="u:1"), exported_by_others("b")])
        assert [(await exported(db, one))["owner"] for one in "ab"] == [
            "main:cli:user:u%3A1",
            "main:cli:local",
        ]

    async def test_the_progress_of_an_import_is_told(self, db: SessionDB) -> None:
        seen: list[TransferProgress] = []
        await db.import_sessions(
            [exported_by_others(str(number)) for number in range(300)], progress=seen.append
        )
        told = [one.sessions for one in seen]
        assert (len(told) > 1, sorted(told), told[-1]) == (True, told, 300)

    async def test_lines_objects_and_streams_of_both_can_be_imported(self, db: SessionDB) -> None:
        async def stream() -> AsyncIterator[bytes]:
            for one in "ab":
                yield json.dumps(exported_by_others(one)).encode()

        assert (await db.import_sessions(stream())).imported == 2
        assert (await db.import_sessions([json.dumps(exported_by_others("c"))])).imported == 1
        assert (await db.import_sessions([exported_by_others("d")])).imported == 1
        assert await there(db) == set("abcd")


async def live(db: SessionDB, clock: FakeClock) -> None:
    """Fill a database with all that an export shows."""
    await db.create_session("a", "cli", user_id="alice", model="m", model_config={"t": 0.5}, extra={"x": [1]})
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    await db.append_messages(
        "a",
        [
            Message("user", "one", platform_message_id="1"),
            Message("assistant", [{"type": "text", "text": "two"}], tool_calls=[call], reasoning="hm"),
            Message("tool", "three", tool_call_id="c", tool_name="look", extra={"mood": "good"}),
            Message("user", "four"),
        ],
    )
    clock.step(timedelta(seconds=1.5))
    await db.edit_message("a", "1", "ONE")
    await db.rewind_session("a")
    await db.set_session_title("a", "Trip")
    await db.record_usage("a", "e1", model="m", input_tokens=7, estimated_cost_usd=0.1)
    await db.split_session("a", "b", [Message("user", "summary")])
    await db.branch_session("b", "c")
    await talk(db, "d", "hi", user="bob", parent_session_id="c", relation="delegate")
    await db.end_session("d", "done")
    await db.set_session_pinned("c")
    await db.set_session_archived("d")


class RoundTripsContract(DatabaseContract):
    """Tests that an import of an export gives the same sessions."""

    async def test_what_was_exported_comes_back_exactly_after_it_was_deleted(
        self, db: SessionDB, clock: FakeClock
    ) -> None:
        await live(db, clock)
        stream = io.BytesIO()
        await db.write_export(stream, scope=EVERYTHING)
        before = await everything(db)
        await db.delete_sessions([one["id"] for one in before])
        assert await there(db) == set()
        report = await db.import_sessions(stream.getvalue().splitlines())
        assert (report.imported, report.findings) == (len(before), ())
        assert await everything(db) == before
        again = await db.import_sessions(db.export_all(scope=EVERYTHING))
        assert (again.imported, again.skipped, again.findings) == (0, len(before), ())

    async def test_times_survive_export_and_import_to_the_microsecond(
        self, db: SessionDB, session: str, clock: FakeClock
    ) -> None:
        years = range(0, 900, 7)
        moments = [clock.now() + timedelta(days=365 * one, microseconds=one) for one in years]
        await db.append_messages(session, [Message("user", "x", sent_at=one) for one in moments])
        exported = await everything(db)
        await db.delete_session(session)
        await db.import_sessions(exported)
        assert [one.sent_at for one in await db.get_messages(session)] == moments

    async def test_nobody_who_was_erased_is_imported_again(self, db: SessionDB, clock: FakeClock) -> None:
        await talk(db, "a", "hello")
        exported = await everything(db)
        await db.erase("main:cli:user:alice")
        report = await db.import_sessions(exported)
        assert (report.imported, ["erased" in one.detail for one in report.clashes]) == (0, [True])
        clock.step(timedelta(minutes=1))
        await talk(db, "b", "back again")
        assert await there(db) == {"b"}
