"""No sequence of calls and restarts makes a database of sessions differ from a few dicts and lists."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway_sessions import Scope, SessionDB
from gateway_sessions.errors import NothingToUndoError, SessionEndedError
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import OpenDB
from tests.property.database.database_model import Model, Said, Talk
from tests.property.machines import StepRunner, machine_test

WORDS = ("docker", "docks", "build", "builds", "部署", "größe")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
PLAIN = st.builds(Said, st.sampled_from(["user", "assistant"]), TEXTS)
PARTS = st.builds(Said, st.just("user"), TEXTS.map(lambda text: [{"type": "text", "text": text}]))
CALLS = st.builds(Said, st.just("assistant"), TEXTS, st.sampled_from(["docker", "search"]))
SAID = st.lists(st.one_of(PLAIN, PLAIN, PARTS, CALLS), min_size=1, max_size=4)
OWNERS = st.sampled_from(["alice", "bob"])
SUMMARY = Said("user", "docker so far")
QUERIES = st.tuples(st.sampled_from([*WORDS, "dock*", "build*", "nothing"]), st.sampled_from([None, *WORDS]))
NEEDLES = st.sampled_from(["ocke", "docker b", "uild", "署", "röß", "r s", "zz"])


class DatabaseMachine(RuleBasedStateMachine):
    """Sessions of two people. An engine says by `fresh` how to open a database without anything in it."""

    fresh: ClassVar[Callable[[Path], OpenDB]]

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.runner = StepRunner()
        self.open_db = type(self).fresh(self.home)
        self.model = Model()
        self.numbers = itertools.count()
        self.touched: set[str] = set()
        """Sessions to be compared after this step."""

    @initialize(said=SAID)
    def settle_in(self, said: list[Said]) -> None:
        self.open()
        for owner, text in (("alice", "docker builds"), ("bob", "größe 部署")):
            self.begin(owner)
            first = [Said("user", text, platform_id=f"p{next(self.numbers)}"), *said]
            self.append(max(self.model.talks), first)

    def open(self) -> None:
        self.db = self.open_db()
        self.run(self.db.__aenter__())

    def teardown(self) -> None:
        self.touched = set(self.model.talks)
        try:
            self.every_touched_session_is_what_the_model_says()
            for owner, word in itertools.product(("alice", "bob"), ("docker", "build*", "部署")):
                self.search(owner, (word, None), word.rstrip("*"))
        finally:
            self.run(self.db.__aexit__(None, None, None))
            self.runner.close()
            shutil.rmtree(self.home)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def new_id(self) -> str:
        return f"s{next(self.numbers):03}"

    def one(self, data: st.DataObject) -> tuple[str, Talk]:
        session_id = data.draw(st.sampled_from(sorted(self.model.talks)))
        self.touched.add(session_id)
        return session_id, self.model.talks[session_id]

    @rule(owner=OWNERS)
    def begin(self, owner: str) -> None:
        new = self.run(self.db.create_session(self.new_id(), "cli", user_id=owner))
        self.model.talks[new] = Talk(owner)
        self.touched.add(new)

    @rule(catch_up=st.booleans())
    def restart(self, *, catch_up: bool) -> None:
        if catch_up:
            self.run(self.db.catch_up_search_index())
        self.run(self.db.__aexit__(None, None, None))
        self.open()
        self.touched = set(self.model.talks)

    @rule(data=st.data(), said=SAID, named=st.booleans())
    def say(self, data: st.DataObject, said: list[Said], *, named: bool) -> None:
        session_id, _ = self.one(data)
        first = [Said("user", "docker", platform_id=f"p{next(self.numbers)}")] if named else []
        self.append(session_id, first + said)

    def append(self, session_id: str, said: list[Said]) -> None:
        self.run(self.db.append_messages(session_id, [one.mapping for one in said]))
        self.model.talks[session_id].said += said

    @rule(data=st.data(), turns=st.integers(1, 3))
    def rewind(self, data: st.DataObject, turns: int) -> None:
        session_id, talk = self.one(data)
        done = self.run(self.db.rewind_session(session_id, turns))
        assert (done and done.rewound_count) == talk.rewind(turns)

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        session_id, talk = self.one(data)
        expected = talk.restore()
        if expected is None:
            with pytest.raises(NothingToUndoError):
                self.run(self.db.restore_rewound(session_id))
        else:
            assert self.run(self.db.restore_rewound(session_id)) == expected

    @rule(data=st.data())
    def rewind_and_restore(self, data: st.DataObject) -> None:
        self.rewind(data, 1)
        self.restore(data)

    @rule(data=st.data(), text=st.none() | TEXTS)
    def change_on_its_platform(self, data: st.DataObject, text: str | None) -> None:
        session_id, talk = self.one(data)
        assert not self.run(self.db.retract_message(session_id, "p"))
        names = [one.platform_id for one in talk.said if one.platform_id]
        if not names:
            return
        name = data.draw(st.sampled_from(names))
        if text is None:
            assert self.run(self.db.retract_message(session_id, name)) is talk.retract(name)
        else:
            assert self.run(self.db.edit_message(session_id, name, text)) is talk.edit(name, text)

    @rule(data=st.data())
    def end_or_reopen(self, data: st.DataObject) -> None:
        session_id, talk = self.one(data)
        if talk.end_reason is None:
            assert self.run(self.db.end_session(session_id, "user_exit"))
            talk.end_reason = "user_exit"
        else:
            assert not self.run(self.db.end_session(session_id, "again"))
            assert self.run(self.db.reopen_session(session_id))
            talk.end_reason = None

    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        session_id, _ = self.one(data)
        new = self.new_id()
        expected = self.model.split(session_id, new, SUMMARY)
        if expected is None:
            with pytest.raises(SessionEndedError):
                self.run(self.db.split_session(session_id, new, [SUMMARY.mapping]))
        else:
            assert self.run(self.db.split_session(session_id, new, [SUMMARY.mapping])) == expected
            self.touched = set(self.model.talks)

    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        session_id, _ = self.one(data)
        new = self.new_id()
        assert self.run(self.db.branch_session(session_id, new)) == new
        self.model.branch(session_id, new)
        self.touched.add(new)

    @rule(data=st.data(), cleared=st.booleans())
    def name(self, data: st.DataObject, *, cleared: bool) -> None:
        session_id, talk = self.one(data)
        talk.title = None if cleared else f"T{next(self.numbers)}"
        assert self.run(self.db.set_session_title(session_id, talk.title))

    @rule(data=st.data(), tokens=st.integers(0, 9), again=st.booleans())
    def use(self, data: st.DataObject, tokens: int, *, again: bool) -> None:
        session_id, talk = self.one(data)
        known = sorted(talk.events)
        event = known[0] if again and known else f"e{next(self.numbers)}"
        assert self.run(self.db.record_usage(session_id, event, input_tokens=tokens)) is (event not in known)
        talk.events.setdefault(event, tokens)

    @precondition(lambda self: len(self.model.talks) > 2)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        session_id, _ = self.one(data)
        assert self.run(self.db.delete_session(session_id))
        self.model.delete(session_id)
        assert self.run(self.db.get_session(session_id)) is None
        self.touched = set(self.model.talks)

    @rule(owner=OWNERS, query=QUERIES, needle=NEEDLES)
    def search(self, owner: str, query: tuple[str, str | None], needle: str) -> None:
        needed, unwanted = query
        text = f"{needed} NOT {unwanted}" if unwanted else needed
        assert self.hits(owner, text) == self.model.find_by_words(owner, needed, unwanted=unwanted)
        assert self.hits(owner, needle, mode="substring") == self.model.find_by_text(owner, needle)

    def hits(self, owner: str, query: str, **options: Any) -> set[tuple[str, int]]:
        found = self.run(self.db.search_messages(query, scope=mine(owner), limit=1_000, **options))
        assert not found.degraded
        assert len(found.hits) == len({one.id for one in found.hits})
        return {(one.session_id, one.seq) for one in found.hits}

    @invariant()
    def every_touched_session_is_what_the_model_says(self) -> None:
        for session_id in self.touched & self.model.talks.keys():
            self.compare(session_id, self.model.talks[session_id])
        self.touched.clear()

    def compare(self, session_id: str, talk: Talk) -> None:
        stored = self.run(self.db.get_messages(session_id, include_hidden=True))
        assert [
            (one.seq, one.role, one.content, one.tool_calls, one.platform_message_id, one.hidden_because)
            for one in stored
        ] == [
            (seq, one.role, one.content, one.calls, one.platform_id, one.hidden)
            for seq, one in enumerate(talk.said, start=1)
        ]
        record = self.run(self.db.get_session(session_id))
        assert record.owner == f"main:cli:user:{talk.owner}"
        assert (record.parent_session_id, record.relation) == (talk.parent, talk.relation)
        assert (record.end_reason, record.title) == (talk.end_reason, talk.title)
        assert record.message_count == sum(one.hidden is None for one in talk.said)
        assert (record.api_call_count, record.input_tokens) == (len(talk.events), sum(talk.events.values()))
        assert self.run(self.db.get_compression_lineage(session_id)) == self.model.lineage(session_id)

    @invariant()
    def each_person_is_shown_their_conversations_once(self) -> None:
        for owner in ("alice", "bob"):
            page = self.run(self.db.list_sessions_rich(scope=mine(owner), limit=100))
            assert len(page) == len(expected := self.model.listed(owner))
            assert {one.session_id for one in page} == expected


def mine(owner: str) -> Scope:
    return Scope(owners=frozenset({f"main:cli:user:{owner}"}))


class SqliteMachine(DatabaseMachine):
    @staticmethod
    def fresh(home: Path) -> OpenDB:
        return partial(SessionDB.open, home / "sessions.db", clock=FakeClock(), survives_power_cut=False)


TestSqlite = machine_test(SqliteMachine, soak=(1000, 60))
