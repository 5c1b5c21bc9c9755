"""No sequence of calls makes a transcript differ from a plain list, nor its totals from what they add up.

The model is written over lists and shares with the package only the form of a preview.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway_sessions import InvalidInputError, Message, SessionDB
from gateway_sessions.core.transcript.messages import preview_of
from gateway_sessions.errors import NothingToUndoError
from gateway_sessions.ports import Transaction, TransactionFactory
from gateway_sessions.testing import FakeClock
from gateway_sessions.transcripts import Hidden

T = TypeVar("T")

TEXTS = st.sampled_from([None, "", " \n", "hello", "grüß\nGott", "x" * 61, "語" * 90])
PLATFORM_IDS = st.sampled_from([None, None, "p1", "p2"])


@dataclass(frozen=True)
class Said:
    role: str
    text: str | None
    platform_id: str | None = None
    calls: int = 0
    observed: bool = False
    hidden: str | None = None
    hidden_by: int = 0

    @property
    def is_turn(self) -> bool:
        return self.role == "user" and not self.observed and self.hidden is None

    @property
    def tool_calls(self) -> list[Any] | None:
        return [{"id": f"ü{n}"} for n in range(self.calls)] or None

    @property
    def size(self) -> int:
        calls = json.dumps(self.tool_calls, separators=(",", ":"), ensure_ascii=False) if self.calls else ""
        return sum(len((text or "").encode()) for text in (self.text, self.platform_id, calls))

    @property
    def message(self) -> Message:
        return Message(
            self.role,
            self.text,
            platform_message_id=self.platform_id,
            tool_calls=self.tool_calls,
            observed=self.observed,
        )


SAID = st.one_of(
    st.builds(Said, st.just("user"), TEXTS, PLATFORM_IDS, observed=st.booleans()),
    st.builds(Said, st.just("assistant"), TEXTS, calls=st.integers(0, 2)),
    st.builds(Said, st.sampled_from(["tool", "system", "session_meta", "odd"]), TEXTS),
)
MANY = st.lists(SAID, max_size=4)
STEPS = st.one_of(
    st.tuples(st.just("append"), MANY),
    st.tuples(st.just("append"), MANY),
    st.tuples(st.just("rewind"), st.integers(-1, 3)),
    st.tuples(st.just("rewind_to"), st.integers(0, 8)),
    st.tuples(st.just("restore"), st.none()),
    st.tuples(st.just("replace"), MANY),
    st.tuples(st.just("compact"), MANY),
    st.tuples(st.just("edit"), st.tuples(st.sampled_from(["p1", "p2", "p3"]), TEXTS)),
    st.tuples(st.just("retract"), st.sampled_from(["p1", "p2", "p3"])),
    st.tuples(st.just("clear"), st.none()),
)


@dataclass
class Model:
    rows: list[Said] = field(default_factory=list)
    changes: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    rewinds: int = 0

    def append(self, said: list[Said]) -> object:
        self.rows += said
        return len(said)

    def rewind(self, turns: int) -> object:
        places = [at for at, row in enumerate(self.rows) if row.is_turn]
        return self._hide(places[-max(turns, 1) :][0]) if places else None

    def rewind_to(self, at: int) -> object:
        if at >= len(self.rows) or self.rows[at].role != "user":
            return InvalidInputError
        return self._hide(at)

    def _hide(self, at: int) -> tuple[int, int, str]:
        hidden = [row for row in self.rows[at:] if row.hidden is None]
        self.rewinds += bool(hidden)
        self._change(at, Hidden.REWOUND)
        return len(hidden), sum(row.is_turn for row in hidden), self.rows[at].text or ""

    def _change(self, at: int, why: str) -> None:
        by = next(self.changes)
        self.rows[at:] = [
            row if row.hidden else replace(row, hidden=why, hidden_by=by) for row in self.rows[at:]
        ]

    def restore(self, _: None) -> object:
        rewound = {row.hidden_by for row in self.rows if row.hidden == Hidden.REWOUND}
        if not rewound:
            return NothingToUndoError
        mine = [row.hidden == Hidden.REWOUND and row.hidden_by == max(rewound) for row in self.rows]
        behind = self.rows[len(mine) - mine[::-1].index(True) :]
        if any(
            row.hidden is None and not row.observed and row.role in {"user", "assistant", "tool"}
            for row in behind
        ):
            return NothingToUndoError
        self.rows = [
            replace(row, hidden=None) if was else row for row, was in zip(self.rows, mine, strict=True)
        ]
        return sum(mine)

    def replace(self, said: list[Said]) -> object:
        self.rows = [row for row in self.rows if row.hidden] + said
        return len(said)

    def compact(self, said: list[Said]) -> object:
        hidden = sum(row.hidden is None for row in self.rows)
        self._change(0, Hidden.COMPACTED)
        self.rows += said
        return hidden

    def edit(self, what: tuple[str, str | None]) -> object:
        platform_id, text = what
        for at in reversed(range(len(self.rows))):
            if self.rows[at].platform_id == platform_id:
                was, self.rows[at] = self.rows[at].text, replace(self.rows[at], text=text)
                return was != text
        return False

    def retract(self, platform_id: str) -> object:
        before = list(self.rows)
        self.rows = [
            replace(row, hidden=Hidden.RETRACTED) if row.platform_id == platform_id else row for row in before
        ]
        return self.rows != before

    def clear(self, _: None) -> object:
        count, self.rows = len(self.rows), []
        return count

    def totals(self) -> dict[str, object]:
        active = [row for row in self.rows if row.hidden is None]
        shown = (preview_of(row.text) for row in active if row.role == "user" and row.text)
        return {
            "last_seq": len(self.rows),
            "message_count": len(active),
            "tool_call_count": sum(row.calls for row in active),
            "text_bytes": sum(row.size for row in self.rows),
            "rewind_count": self.rewinds,
            "preview": next((preview for preview in shown if preview is not None), None),
        }


class Noting(SessionDB):
    """Knows which messages the search index was told of; the index itself forgets that at once."""

    noted: set[int]

    async def write(self, transaction: TransactionFactory[T]) -> T:
        return await super().write(lambda: self._noting(transaction()))

    def _noting(self, transaction: Transaction[T]) -> Transaction[T]:
        try:
            statement = next(transaction)
            while True:
                if statement.name == "add_index_change":
                    self.noted |= {message_id for _, message_id in statement.many or ()}
                statement = transaction.send((yield statement))
        except StopIteration as stop:
            return stop.value
        finally:
            transaction.close()


class Real:
    """One database for all examples, each of which has a session of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runner = asyncio.Runner()
        self.names = itertools.count()
        self.session = ""
        self.open()

    def open(self) -> None:
        self.opened = AsyncExitStack()
        db = Noting.open(self.path, clock=FakeClock(), survives_power_cut=False)
        assert isinstance(db, Noting)
        db.noted = set()
        self.db = self.runner.run(self.opened.enter_async_context(db))

    def close(self) -> None:
        self.runner.run(self.opened.aclose())

    def begin(self) -> None:
        self.session = self.runner.run(self.db.create_session(f"s{next(self.names)}", "cli"))

    def stored(self) -> list[Message]:
        return self.runner.run(self.db.get_messages(self.session, include_hidden=True))

    def totals(self) -> dict[str, object]:
        record = self.runner.run(self.db.get_session(self.session))
        assert record is not None
        names = ("last_seq", "message_count", "tool_call_count", "text_bytes", "rewind_count", "preview")
        return {name: getattr(record, name) for name in names}

    def do(self, step: str, what: Any) -> object:
        try:
            return self.runner.run(getattr(self, step)(what))
        except (InvalidInputError, NothingToUndoError) as error:
            return type(error)

    async def append(self, said: list[Said]) -> object:
        return len(await self.db.append_messages(self.session, [one.message for one in said]))

    async def rewind(self, turns: int) -> object:
        done = await self.db.rewind_session(self.session, turns)
        return done and (done.rewound_count, done.turns_undone, done.target_text)

    async def rewind_to(self, at: int) -> object:
        rows = await self.db.get_messages(self.session, include_hidden=True)
        message_id = rows[at].message_id if at < len(rows) else 7
        done = await self.db.rewind_to_message(self.session, message_id)
        return done.rewound_count, done.turns_undone, done.target_text

    async def restore(self, _: None) -> object:
        return await self.db.restore_rewound(self.session)

    async def replace(self, said: list[Said]) -> object:
        return len(await self.db.replace_messages(self.session, [one.message for one in said]))

    async def compact(self, said: list[Said]) -> object:
        return await self.db.archive_and_compact(self.session, [one.message for one in said])

    async def edit(self, what: tuple[str, str | None]) -> object:
        return await self.db.edit_message(self.session, *what)

    async def retract(self, platform_id: str) -> object:
        return await self.db.retract_message(self.session, platform_id)

    async def clear(self, _: None) -> object:
        return await self.db.clear_messages(self.session)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    real = Real(tmp_path_factory.mktemp("home") / "sessions.db")
    yield real
    real.close()
    real.runner.close()


def as_said(messages: list[Message]) -> list[tuple[object, ...]]:
    return [
        (
            one.seq,
            one.role,
            one.content,
            one.platform_message_id,
            one.tool_calls,
            one.observed,
            one.hidden_because,
        )
        for one in messages
    ]


def changed(before: list[Message], after: list[Message]) -> set[int]:
    """The messages that do not say any more what they said, wherever they stand and whether they are seen."""
    left = {one.message_id: one.altered(seq=0, hidden_because=None) for one in after}
    return {
        one.message_id
        for one in before
        if left.get(one.message_id) != one.altered(seq=0, hidden_because=None)
    }


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=1, max_size=8))
def test_a_transcript_is_what_a_list_would_be(real: Real, steps: list[tuple[str, Any]]):
    real.begin()
    model = Model()
    for step, what in steps:
        before, real.db.noted = real.stored(), set()
        act: Callable[[Any], object] = getattr(model, step)
        assert real.do(step, what) == act(what)
        after = real.stored()
        assert as_said(after) == [
            (seq, row.role, row.text, row.platform_id, row.tool_calls, row.observed, row.hidden)
            for seq, row in enumerate(model.rows, start=1)
        ]
        assert sorted(one.message_id for one in after) == [one.message_id for one in after]
        assert real.totals() == model.totals()
        assert real.db.noted == changed(before, after)


def test_ids_rise_over_all_restarts_although_the_clock_stands_still(real: Real):
    real.begin()
    for _ in range(3):
        real.do("append", [Said("user", "a")])
        real.do("clear", None)
        real.do("append", [Said("user", "b")])
        before = real.stored()[-1].message_id
        real.close()
        real.open()
        real.do("append", [Said("user", "c")])
        assert real.stored()[-1].message_id > before
