"""No sequence of calls, times, crashes and configurations makes a store differ from a few plain rules.

The model below is those rules, written down a second time over dictionaries. It shares with the package only
the instants at which a policy is due (`next_reset`, `reset_due`, `missed_boundary`), which have tests of
their own, and the words for states and reasons.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway_sessions import (
    Config,
    EndReason,
    Scope,
    SessionBusyError,
    SessionFinalized,
    SessionNotFoundError,
    SessionResetPolicy,
    SessionState,
    build_session_key,
)
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.sessions.reset_policy import DueReset, missed_boundary
from gateway_sessions.errors import NothingToUndoError
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.sessions import next_reset, reset_due
from gateway_sessions.testing import FakeClock
from tests.property.machines import StepRunner, machine_test
from tests.property.store import store_strategies as given
from tests.property.store.store_invariants import StoredRows, check_stored_rows

ACTIVE, PENDING = SessionState.ACTIVE, SessionState.RESUME_PENDING
EXPIRED, SUSPENDED = SessionState.EXPIRED, SessionState.SUSPENDED
TICK = timedelta(microseconds=1)
KEYS = [build_session_key(source) for source in given.SOURCES]


@dataclass(kw_only=True)
class Live:
    """The current session of a lane."""

    session_id: str
    last: datetime
    written: datetime
    previous: str | None = None
    opened_by: str | None = None
    state: SessionState = ACTIVE
    why: str | None = None
    since: datetime | None = None
    deferred: datetime | None = None
    tokens: int = 0

    @property
    def was_used_since_its_mark(self) -> bool:
        return self.state is PENDING and self.since is not None and self.last > self.since

    @property
    def last_interaction_at(self) -> datetime:
        return self.last

    @property
    def deferred_boundary(self) -> datetime | None:
        return self.deferred


@dataclass(kw_only=True)
class Past:
    """What is known of a session for ever."""

    lane: str
    parent: str | None = None
    reason: str | None = None
    ends: int = 0
    record: Live | None = None
    """As it was at its end."""


@dataclass
class Model:
    """The rules of a store, over dictionaries."""

    config: Config
    now: datetime
    lanes: dict[str, Live] = field(default_factory=dict)
    sessions: dict[str, Past] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    working: set[str] = field(default_factory=set)

    # What counts

    def policy(self, key: str) -> SessionResetPolicy:
        special = self.config.platforms["irc"].session_reset
        return special if special is not None and ":irc:" in key else self.config.session_reset

    @property
    def zone(self) -> ZoneInfo:
        assert self.config.timezone is not None
        return ZoneInfo(self.config.timezone)

    @property
    def freshness(self) -> timedelta | None:
        return self.config.agent.gateway_auto_continue_freshness

    # What ends a session by itself

    def ending(self, key: str, now: datetime) -> EndReason | None:
        """Why the lane's session has to end now; None if it goes on."""
        live, policy = self.lanes[key], self.policy(key)
        if live.state in (SUSPENDED, EXPIRED):
            return EndReason.SUSPENDED if live.state is SUSPENDED else EndReason(live.why)
        if live.state is PENDING and self.is_fresh(live, now):
            return None
        due = reset_due(policy, live, now, self.zone)
        if due is None:
            return None
        return None if self.waits(key, due, now) else due.reason

    def waits(self, key: str, due: DueReset, now: datetime) -> bool:
        """Whether a reset that is due is put off."""
        live, policy = self.lanes[key], self.policy(key)
        grace = timedelta(minutes=policy.grace_minutes)
        patience = timedelta(hours=policy.bg_process_max_age_hours)
        works = key in self.working | self.running
        return now - live.last < grace or (works and now - due.at < patience)

    def is_fresh(self, live: Live, now: datetime) -> bool:
        assert live.since is not None
        return self.freshness is None or now <= live.since + self.freshness

    def next_end(self, key: str) -> datetime | None:
        """The first instant at which the lane's session may end by itself."""
        live, policy = self.lanes[key], self.policy(key)
        if live.state is EXPIRED or self.sessions[live.session_id].reason is not None:
            return None
        due = next_reset(policy, live, self.zone)
        if due is None or live.state is not PENDING:
            return due.at if due is not None else None
        assert live.since is not None
        return None if self.freshness is None else max(due.at, live.since + self.freshness + TICK)

    # What happens

    def end(self, key: str, reason: EndReason) -> None:
        live = self.lanes[key]
        past = self.sessions[live.session_id]
        if past.reason is None:
            past.reason, past.record = str(reason), replace(live)
            past.ends += 1

    def put_new(self, key: str, new_id: str, *, previous: str | None, opened_by: str | None) -> None:
        assert new_id not in self.sessions, "an id was given twice"
        self.attempts.pop(key, None)
        self.sessions[new_id] = Past(lane=key, parent=previous)
        self.lanes[key] = Live(
            session_id=new_id, last=self.now, written=self.now, previous=previous, opened_by=opened_by
        )

    def replaced(self, key: str, new_id: str, reason: EndReason, *, opened_by: str | None) -> None:
        old = self.lanes[key].session_id
        self.end(key, reason)
        self.put_new(key, new_id, previous=old, opened_by=opened_by)

    def interacted(self, key: str) -> None:
        """A person wrote or was answered. The clock of a policy never runs backwards."""
        live = self.lanes[key]
        moment = max(self.now, live.last)
        live.deferred = missed_boundary(self.policy(key), live, moment, self.zone)
        live.last, live.written = moment, self.now

    def moves(self, key: str, state: SessionState, why: str | None) -> None:
        live = self.lanes[key]
        live.state, live.why, live.written = state, why, self.now
        live.since = self.now if why is not None else None

    def cut_off(self, key: str) -> None:
        """A turn was interrupted once more."""
        self.attempts[key] = self.attempts.get(key, 0) + 1
        if self.attempts[key] >= self.config.agent.max_restart_attempts:
            self.moves(key, SUSPENDED, "crash_loop")
        else:
            self.moves(key, PENDING, "restart_interrupted")

    def taken_back(self, key: str, session_id: str, was: Live, **kept: object) -> None:
        """A session that exists goes on here."""
        self.attempts.pop(key, None)
        past = self.sessions[session_id]
        past.lane, past.reason, past.record = key, None, None
        self.lanes[key] = Live(
            session_id=session_id,
            last=self.now,
            written=self.now,
            previous=was.previous,
            tokens=was.tokens,
        )

    def overtaken(self, key: str) -> None:
        """What a person asks for at once ends the turn that runs."""
        if key in self.running:
            self.running.discard(key)
            self.attempts.pop(key, None)

    def restarted(self) -> None:
        for key in sorted(self.running):
            if key in self.lanes and self.lanes[key].state in (ACTIVE, PENDING):
                self.cut_off(key)
        self.running.clear()

    def swept(self) -> None:
        for key, live in self.lanes.items():
            at = self.next_end(key)
            if key in self.running or at is None or at > self.now:
                continue
            reason = self.ending(key, self.now)
            due = reset_due(self.policy(key), live, self.now, self.zone)
            if reason is None or (
                live.state is SUSPENDED and (due is None or self.waits(key, due, self.now))
            ):
                continue
            self.end(key, reason)
            if live.state is not SUSPENDED:
                self.moves(key, EXPIRED, str(reason))

    def pruned(self, days: int) -> list[str]:
        before = self.now - timedelta(days=days)
        gone = [
            key
            for key, live in self.lanes.items()
            if live.written < before
            and live.state is not SUSPENDED
            and key not in self.running | self.working
        ]
        for key in gone:
            self.end(key, EndReason.PRUNED)
            del self.lanes[key]
            self.attempts.pop(key, None)
            self.moved.pop(key, None)
        return gone


class StoreMachine(RuleBasedStateMachine):
    """Does the same to a store and to the model, and compares them after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="store-model-"))
        self.runner = StepRunner()
        self.refusing = False
        self.heard: dict[str, set[str]] = {}
        """By session, the keys of the calls that a hook has taken."""
        self.freshness_is_known = True
        """Whether the watcher has looked since the freshness of resume marks was changed."""

    @initialize(config=given.configs, start=given.starts)
    def begin(self, config: Config, start: str) -> None:
        self.clock = FakeClock(start)
        self.model = Model(config, self.clock.now())
        self.open()

    def open(self) -> None:
        self.store = SessionStore.open(
            self.home,
            self.model.config,
            clock=self.clock,
            hooks=[self.hear],
            has_active_processes=lambda key: key in self.model.working,
        )
        self.runner.run(self.store.__aenter__())

    def close(self) -> None:
        self.runner.run(self.store.__aexit__(None, None, None))

    async def hear(self, event: SessionFinalized) -> None:
        if self.refusing:
            raise ConnectionError("refused")
        self.heard.setdefault(event.session_id, set()).add(event.idempotency_key)

    def teardown(self) -> None:
        self.close()
        self.runner.close()
        shutil.rmtree(self.home)

    # Messages and turns

    @rule(lane=given.lanes, touch=st.booleans(), force_new=st.integers(0, 5).map(lambda one: one == 0))
    def a_message(self, lane: int, touch: bool, force_new: bool) -> None:
        key, model = KEYS[lane], self.model
        live = model.lanes.get(key)
        entry = self.runner.run(
            self.store.get_or_create_session(given.SOURCES[lane], force_new=force_new, touch=touch)
        )
        if live is None:
            moved = model.moved.pop(key, None)
            model.put_new(key, entry.session_id, previous=moved, opened_by=moved and "moved")
            return
        reason = EndReason.SESSION_RESET if force_new else model.ending(key, max(model.now, live.last))
        if reason is None:
            assert entry.session_id == live.session_id
            if touch:
                model.interacted(key)
        else:
            model.replaced(key, entry.session_id, reason, opened_by=None if force_new else str(reason))

    @rule(lane=given.lanes, tokens=st.none() | st.integers(0, 9), late=st.booleans())
    def a_turn_ends(self, lane: int, tokens: int | None, late: bool) -> None:
        key = KEYS[lane]
        live = self.model.lanes.get(key)
        session_id = None if live is None else live.previous if late else live.session_id
        entry = self.runner.run(self.store.update_session(key, tokens, session_id=session_id))
        assert (entry is None) == (live is None)
        if live is None or session_id not in (None, live.session_id):
            return
        self.model.interacted(key)
        live.opened_by = None
        live.tokens = live.tokens if tokens is None else tokens

    @rule(lane=given.lanes)
    def a_turn_runs_from_now_on(self, lane: int) -> None:
        if KEYS[lane] in self.model.lanes:
            self.model.running.add(KEYS[lane])
            self.lease(KEYS[lane], self.store.db.ownership.opening.epoch)

    @rule(lane=given.lanes)
    def no_turn_runs_any_more(self, lane: int) -> None:
        if KEYS[lane] in self.model.running:
            self.model.running.discard(KEYS[lane])
            self.lease(KEYS[lane], None)

    @rule(lane=given.lanes, works=st.booleans())
    def work_begins_or_ends(self, lane: int, works: bool) -> None:
        (self.model.working.add if works else self.model.working.discard)(KEYS[lane])

    # What people do

    @rule(lane=given.lanes)
    def a_reset(self, lane: int) -> None:
        key = KEYS[lane]
        entry = self.runner.run(self.store.reset_session(key))
        assert (entry is None) == (key not in self.model.lanes)
        if entry is not None:
            self.model.overtaken(key)
            self.model.replaced(
                key, entry.session_id, EndReason.SESSION_RESET, opened_by=str(EndReason.SESSION_RESET)
            )

    @rule(lane=given.lanes)
    def an_undo(self, lane: int) -> None:
        key, model = KEYS[lane], self.model
        live = model.lanes.get(key)
        if live is None:
            assert self.runner.run(self.store.undo_reset(key)) is None
            return
        past = model.sessions[live.previous] if live.previous is not None else None
        if past is None or past.record is None or past.lane != key:
            with pytest.raises(NothingToUndoError):
                self.runner.run(self.store.undo_reset(key))
            return
        entry = self.runner.run(self.store.undo_reset(key))
        assert entry is not None
        assert entry.session_id == live.previous
        model.overtaken(key)
        model.end(key, EndReason.RESET_UNDONE)
        model.taken_back(key, entry.session_id, past.record)

    @rule(lane=given.lanes, which=st.integers(0, 30), known=st.integers(0, 9).map(bool))
    def a_switch(self, lane: int, which: int, known: bool) -> None:
        key, model = KEYS[lane], self.model
        ids = sorted(model.sessions)
        target = ids[which % len(ids)] if ids and known else "nobody"
        switching = self.store.switch_session(key, target, scope=Scope.operator(), move=True)
        live = model.lanes.get(key)
        if live is None or live.session_id == target:
            entry = self.runner.run(switching)
            assert (entry and entry.session_id) == (live and target)
            model.overtaken(key)
            return
        if target == "nobody":
            with pytest.raises(SessionNotFoundError):
                self.runner.run(switching)
            return
        holder = next((one for one, other in model.lanes.items() if other.session_id == target), None)
        if holder in model.running:
            with pytest.raises(SessionBusyError):
                self.runner.run(switching)
            return
        entry = self.runner.run(switching)
        assert entry is not None
        model.overtaken(key)
        was = model.sessions[target].record if holder is None else model.lanes[holder]
        assert was is not None
        if holder is not None:
            del model.lanes[holder]
            model.attempts.pop(holder, None)
            model.moved[holder] = target
        model.end(key, EndReason.SESSION_SWITCH)
        model.taken_back(key, target, was)

    @rule(lane=given.lanes)
    def a_suspension(self, lane: int) -> None:
        live = self.model.lanes.get(KEYS[lane])
        assert self.runner.run(self.store.suspend_session(KEYS[lane], "stop")) == (live is not None)
        if live is not None and live.state is not SUSPENDED:
            self.model.moves(KEYS[lane], SUSPENDED, "stop")

    @rule(lane=given.lanes)
    def a_resume_mark(self, lane: int) -> None:
        live = self.model.lanes.get(KEYS[lane])
        marked = live is not None and live.state in (ACTIVE, PENDING)
        assert self.runner.run(self.store.mark_resume_pending(KEYS[lane])) == marked
        if marked:
            self.model.moves(KEYS[lane], PENDING, "restart_timeout")

    @rule(lane=given.lanes)
    def a_recovery(self, lane: int) -> None:
        live = self.model.lanes.get(KEYS[lane])
        cleared = live is not None and live.state is PENDING
        assert self.runner.run(self.store.clear_resume_pending(KEYS[lane])) == cleared
        self.model.attempts.pop(KEYS[lane], None)
        if cleared:
            self.model.moves(KEYS[lane], ACTIVE, None)

    @rule(minutes=st.integers(1, 90))
    def everything_recent_counts_as_cut_off(self, minutes: int) -> None:
        since = self.model.now - timedelta(minutes=minutes)
        recent = [
            key
            for key, live in self.model.lanes.items()
            if live.written >= since and (live.state is ACTIVE or live.was_used_since_its_mark)
        ]
        assert self.runner.run(self.store.suspend_recently_active(60 * minutes)) == len(recent)
        for key in recent:
            self.model.cut_off(key)

    # Time and its duties

    @rule(span=given.spans)
    def time_passes(self, span: timedelta) -> None:
        self.clock.step(span)
        self.model.now += span

    @rule(span=given.spans)
    def time_passes_and_the_watcher_looks(self, span: timedelta) -> None:
        self.time_passes(span)
        self.the_watcher_looks()

    @rule(span=given.steps_back)
    def the_clock_is_set_back(self, span: timedelta) -> None:
        self.clock.step(-span)
        self.model.now -= span

    @rule()
    def the_watcher_looks(self) -> None:
        self.runner.run(self.store.watcher.sweep())
        self.freshness_is_known = True
        self.model.swept()

    @rule(days=st.integers(1, 20))
    def old_lanes_are_forgotten(self, days: int) -> None:
        pruned = self.runner.run(self.store.prune_old_entries(days))
        assert pruned == len(self.model.pruned(days))

    @rule(refusing=st.booleans())
    def hooks_are_called(self, refusing: bool) -> None:
        self.refusing = refusing
        self.runner.run(self.store.hooks.sweep())

    # Ends and beginnings

    @rule(clean=st.booleans(), keep_file=st.booleans())
    def a_restart(self, clean: bool, keep_file: bool) -> None:
        self.close()
        if not clean:
            (self.home / ".clean_shutdown").unlink()
        if not keep_file:
            (self.home / "sessions.json").unlink(missing_ok=True)
        self.model.restarted()
        self.open()
        assert self.store.started.clean == clean

    @rule(config=given.configs)
    def a_restart_with_another_configuration(self, config: Config) -> None:
        self.close()
        self.freshness_is_known = False
        self.model.config = config
        self.model.restarted()
        self.open()

    def lease(self, key: str, epoch: int | None) -> None:
        """What the beginning and the end of a turn write."""
        with closing(sqlite3.connect(self.home / "sessions.db", isolation_level=None)) as raw:
            raw.execute(
                "INSERT INTO lanes (session_key, lease_epoch) VALUES (?, ?)"
                " ON CONFLICT (session_key) DO UPDATE SET lease_epoch = excluded.lease_epoch",
                (key, epoch),
            )

    # What is true after each step

    @invariant()
    @precondition(lambda self: hasattr(self, "store"))
    def the_store_is_as_the_model_says(self) -> None:
        truth, model = StoredRows(self.home / "sessions.db"), self.model
        check_stored_rows(truth)
        assert truth.entries.keys() == model.lanes.keys()
        assert truth.sessions.keys() == model.sessions.keys()
        for key, live in model.lanes.items():
            self.compare(key, live, truth)
        for session_id, past in model.sessions.items():
            row = truth.sessions[session_id]
            assert row["session_key"] == past.lane
            assert (row["parent_session_id"], row["end_reason"], row["ends"]) == (
                past.parent,
                past.reason,
                past.ends,
            )
        attempts = {key: row["attempts"] for key, row in truth.lanes.items() if row["attempts"]}
        assert attempts == model.attempts
        moved = {key: row["moved_session_id"] for key, row in truth.lanes.items() if row["moved_session_id"]}
        assert moved == model.moved
        self.hooks_are_owed_once_for_each_end(truth)

    def compare(self, key: str, live: Live, truth: StoredRows) -> None:
        entry = self.runner.run(self.store.get_session(key))
        assert entry is not None
        row = truth.entries[key]
        assert (entry.session_id, entry.version) == (row["session_id"], row["version"])
        assert to_micros(entry.last_interaction_at) == row["interaction_at"]
        found = Live(
            session_id=entry.session_id,
            last=entry.last_interaction_at,
            written=entry.updated_at,
            previous=entry.previous_session_id,
            opened_by=entry.opened_by and str(entry.opened_by),
            state=entry.state,
            why=entry.state_reason,
            since=entry.state_since,
            deferred=entry.deferred_boundary,
            tokens=entry.last_prompt_tokens,
        )
        assert found == live
        # Rescheduling alone does not make a new version, so only the database knows the newest instant.
        policy = self.store.config.policy_book().resolve(entry.platform, entry.chat_type)
        at = self.model.next_end(key)
        is_scheduled = row["policy_fingerprint"] == policy.fingerprint and (
            entry.state is not PENDING or self.freshness_is_known
        )
        if at is not None and is_scheduled:
            assert row["due_at"] is not None
            assert from_micros(row["due_at"]) <= at, "the watcher would come too late"

    def hooks_are_owed_once_for_each_end(self, truth: StoredRows) -> None:
        keys = {session_id: set(heard) for session_id, heard in self.heard.items()}
        for row in truth.hook_calls:
            keys.setdefault(row["session_id"], set()).add(row["idempotency_key"])
        ends = {session_id: past.ends for session_id, past in self.model.sessions.items() if past.ends}
        assert {session_id: len(found) for session_id, found in keys.items()} == ends


TestStore = machine_test(StoreMachine, soak=(2000, 80))
