"""Titles, splits and branches in any order, against a plain model: always unique for their owner."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway_sessions import Scope, SessionDB
from gateway_sessions.core.sessions.titles import clean_suggested_title, split_numbered_title
from gateway_sessions.errors import SessionEndedError, TitleTakenError
from gateway_sessions.testing import FakeClock
from tests.raw_sql import execute_sql

OWNERS = ("alice", "bob")
SUMMARY = [{"role": "user", "content": "so far"}]
WORDS = st.sampled_from(["Trip", "Trip #2", "Trip #9", "trip", "x" * 100, "x" * 97 + " #2", "旅行"])


class TitleMachine(RuleBasedStateMachine):
    """A few people whose sessions are named, compressed and branched."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.db = SessionDB.open(self.home / "sessions.db", clock=FakeClock(), survives_power_cut=False)
        self.titles: dict[str, str | None] = {}
        self.owners: dict[str, str] = {}
        self.parents: dict[str, str] = {}
        """Of continuations only."""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        self.run(self.db.__aenter__())
        for owner in OWNERS:
            self.begin(owner)

    def teardown(self) -> None:
        self.run(self.db.__aexit__(None, None, None))
        self.runner.close()
        shutil.rmtree(self.home)

    @rule(owner=st.sampled_from(OWNERS))
    def begin(self, owner: str) -> None:
        new = self.new_id(owner)
        self.run(self.db.create_session(new, "cli", user_id=owner))
        self.titles[new] = None

    @rule(data=st.data(), title=WORDS)
    def name(self, data: st.DataObject, title: str) -> None:
        session_id = self.one(data)
        holder = self.holder(self.owners[session_id], title)
        passes = holder in self.line_before(session_id)
        try:
            assert self.run(self.db.set_session_title(session_id, title, scope=Scope.operator()))
        except TitleTakenError as error:
            assert holder not in (None, session_id)
            assert not passes
            assert error.holder == holder  # noqa: PT017 -- whether it is refused is what the model says
            return
        assert holder in (None, session_id) or passes
        if holder is not None:
            self.titles[holder] = None
        self.titles[session_id] = title

    @rule(data=st.data(), title=WORDS)
    def propose(self, data: st.DataObject, title: str) -> None:
        session_id = self.one(data)
        untitled = self.titles[session_id] is None
        assert self.run(self.db.set_auto_title_if_empty(session_id, title)) is untitled
        if untitled:
            self.learn(session_id, clean_suggested_title(title) or "")

    @rule(data=st.data())
    def clear(self, data: st.DataObject) -> None:
        session_id = self.one(data)
        assert self.run(self.db.set_session_title(session_id, ""))
        self.titles[session_id] = None

    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        session_id = self.one(data)
        there = [child for child, parent in self.parents.items() if parent == session_id]
        new = self.new_id(self.owners[session_id])
        child = self.run(self.db.split_session(session_id, new, SUMMARY))
        if there:
            assert [child] == there
            del self.owners[new]
            return
        assert child == new
        self.parents[new] = session_id
        self.follow(new, session_id)

    @rule(data=st.data())
    def branch(self, data: st.DataObject) -> None:
        session_id = self.one(data)
        new = self.new_id(self.owners[session_id])
        assert self.run(self.db.branch_session(session_id, new)) == new
        self.follow(new, session_id)

    @precondition(lambda self: len(self.titles) > 3)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A session that ended otherwise is not split any more; it is of no use to the model then."""
        session_id = self.one(data)
        if self.run(self.db.end_session(session_id, "user_exit")):
            try:
                self.run(self.db.split_session(session_id, "never", SUMMARY))
            except SessionEndedError:
                self.run(self.db.reopen_session(session_id))
            else:
                raise AssertionError

    @invariant()
    def every_title_is_as_it_should_be_and_unique_for_its_owner(self) -> None:
        stored = self.stored()
        assert {one: title for one, (_, title) in stored.items()} == self.titles
        held = [pair for pair in stored.values() if pair[1] is not None]
        assert len(held) == len(set(held))

    @invariant()
    def every_title_leads_its_owner_to_the_tip_of_a_session_of_that_lineage(self) -> None:
        for session_id, title in self.titles.items():
            if title is not None:
                mine = Scope(owners=frozenset({f"main:cli:user:{self.owners[session_id]}"}))
                found = self.run(self.db.resolve_session_by_title(title, scope=mine))
                assert self.owners[found] == self.owners[session_id]
                assert self.run(self.db.get_compression_tip(found)) == found

    def one(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.titles)))

    def new_id(self, owner: str) -> str:
        new = f"s{len(self.owners):03}"
        self.owners[new] = owner
        return new

    def holder(self, owner: str, title: str) -> str | None:
        found = [one for one, held in self.titles.items() if held == title and self.owners[one] == owner]
        return found[0] if found else None

    def line_before(self, session_id: str) -> list[str]:
        line = []
        while (parent := self.parents.get(session_id)) is not None:
            line.append(parent)
            session_id = parent
        return line

    def follow(self, new: str, parent: str) -> None:
        """What comes from a session is called after it."""
        title = self.titles[parent]
        self.titles[new] = None
        if title is not None:
            self.learn(new, title)

    def learn(self, session_id: str, wanted: str) -> None:
        """A title was made: of the lineage that was wanted, and new to its owner."""
        title = self.stored()[session_id][1]
        assert title is not None
        assert self.holder(self.owners[session_id], title) is None
        stem, wanted_stem = split_numbered_title(title)[0], split_numbered_title(wanted)[0]
        assert stem == wanted_stem or wanted_stem.startswith(stem[:80])
        assert len(title) <= 100
        self.titles[session_id] = title

    def stored(self) -> dict[str, tuple[str, str | None]]:
        rows = execute_sql(self.home / "sessions.db", "SELECT session_id, owner, title FROM sessions")
        return {session_id: (owner, title) for session_id, owner, title in rows}


TestTitles = TitleMachine.TestCase
TestTitles.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
