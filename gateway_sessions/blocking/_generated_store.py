"""The store for callers without a loop.

Made by docs/reference/make_blocking.py from the asynchronous classes: run that, and change nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gateway_sessions.blocking._generated_database import BlockingSessionDB
from gateway_sessions.blocking._loop_thread import BlockingPart, BlockingResource, BlockingScope
from gateway_sessions.config import Config
from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.core.export.transfer_reports import ImportReport, Progress
from gateway_sessions.core.identity.account_lane_assignment import LanesReport
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.progress import OnProgress
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage, Receipt
from gateway_sessions.core.queue.items import DeadLetter, QueuedMessage
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.erasure import ErasureReceipt
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.transcript.messages import Message, Rewind
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.core.usage.usage_events import Usage
from gateway_sessions.ports import AliasResolver, Clock, HasActiveProcesses
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher, Sweep
from gateway_sessions.runtime.duties.restart_recovery import StartReport
from gateway_sessions.runtime.duties.session_hooks import Hook, Hooks
from gateway_sessions.runtime.duties.titles import Titler, plain_titler
from gateway_sessions.runtime.observability.explain import Explanation
from gateway_sessions.runtime.observability.incidents import Incident
from gateway_sessions.runtime.queue.turn import EndedTurn, Turn
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts
from gateway_sessions.storage.transactions.queue.claim import TranscriptVersion
from gateway_sessions.storage.transactions.queue.outbox import Owed, OwedReply
from gateway_sessions.storage.transactions.queue.waiting import Overtaken
from gateway_sessions.storage.transactions.sessions.hooks import HookCall


class BlockingHooks(BlockingPart[Hooks]):
    """The hooks of a store, and what became of their calls."""

    def register(self, hook: Hook, *, name: str | None = None, once_within: timedelta | None = None) -> None:
        """Call *hook* for every session that ends from now on.

        The name is stored with each owed call; keep it when the function is renamed. Two hooks of one name
        are refused with `InvalidInputError`. With *once_within*, the time that a call may take, each call is
        made at most once: a call that fails or is cut off is given up.
        """
        self._call_on_loop(lambda: self._target.register(hook, name=name, once_within=once_within))

    def unregister(self, name: str) -> None:
        """Call that hook no more, and wait for its calls under way; owed calls stay owed."""
        self._run_and_wait(lambda: self._target.unregister(name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the registered hooks."""
        return self._call_on_loop(lambda: self._target.names)

    def hear_news(self, news: Sequence[CommittedChange]) -> None:
        """Hear of a commit: the end of a session owes calls."""
        self._call_on_loop(lambda: self._target.hear_news(news))

    def dead_letters(self, limit: int = 100) -> list[HookCall]:
        """Return calls that were given up, the newest first."""
        return self._run_and_wait(lambda: self._target.dead_letters(limit))

    def requeue(self, idempotency_key: str) -> None:
        """Owe a given-up call again, with all its attempts."""
        self._run_and_wait(lambda: self._target.requeue(idempotency_key))

    def sweep(self) -> int:
        """Make every due call and wait for the outcomes; return the number of successes."""
        return self._run_and_wait(self._target.sweep)


class BlockingExpiryWatcher(BlockingPart[ExpiryWatcher]):
    """The duty that ends sessions nobody writes to."""

    def sweep(self) -> Sweep:
        """End or reschedule the session of every entry whose instant has come."""
        return self._run_and_wait(self._target.sweep)


class BlockingTurn(BlockingScope[Turn]):
    """Somebody's turn on a lane. `with` releases it if nothing else has ended it."""

    @property
    def entry(self) -> SessionEntry:
        """The same as that of the Turn."""
        return self._target.entry

    @property
    def messages(self) -> tuple[InboundMessage, ...]:
        """The messages of the turn: one, or several that were merged."""
        return self._call_on_loop(lambda: self._target.messages)

    @property
    def session_key(self) -> str:
        """The lane."""
        return self._call_on_loop(lambda: self._target.session_key)

    @property
    def token(self) -> int:
        """Rises with every turn of the lane; what an older one writes is refused."""
        return self._call_on_loop(lambda: self._target.token)

    @property
    def seq(self) -> int:
        """The place of the first message among all that was ever accepted on the lane."""
        return self._call_on_loop(lambda: self._target.seq)

    @property
    def seqs(self) -> tuple[int, ...]:
        """The places of all messages."""
        return self._call_on_loop(lambda: self._target.seqs)

    @property
    def attempt(self) -> int:
        """1 for the first try; more if earlier ones were cut off."""
        return self._call_on_loop(lambda: self._target.attempt)

    @property
    def recorded(self) -> bool:
        """Return True if an earlier try has put the turn's messages into the transcript, and perhaps more."""
        return self._call_on_loop(lambda: self._target.recorded)

    @property
    def admitted_at(self) -> datetime:
        """The instant at which the first message was accepted."""
        return self._call_on_loop(lambda: self._target.admitted_at)

    @property
    def version(self) -> TranscriptVersion:
        """The state of the transcript when the turn began."""
        return self._call_on_loop(lambda: self._target.version)

    @property
    def waiting(self) -> int:
        """The number of turns that waited behind this one when it began."""
        return self._call_on_loop(lambda: self._target.waiting)

    @property
    def ended(self) -> bool:
        """Whether the turn has come to its end."""
        return self._call_on_loop(lambda: self._target.ended)

    def transcript(self, limit: int | None = None) -> list[Chat]:
        """Return the conversation for a model, with the messages of the turn at its end."""
        return self._run_and_wait(lambda: self._target.transcript(limit))

    def append(self, *messages: Message | Mapping[str, Any]) -> list[int]:
        """Add to the transcript at once, behind what the turn is about; returns the ids."""
        return self._run_and_wait(lambda: self._target.append(*messages))

    def commit(
        self,
        messages: Iterable[Message | Mapping[str, Any]] = (),
        *,
        usages: Sequence[Usage] = (),
        replies: Sequence[Owed] = (),
        last_prompt_tokens: int | None = None,
    ) -> EndedTurn:
        """Complete the turn: transcript, use, entry, queue and replies change together or not at all.

        If *go_on*, the lane's next turn begins in the same commit. The key of another lane lets the next one
        of that lane begin, where no other node uses the database.
        """
        return self._run_and_wait(
            lambda: self._target.commit(
                messages, usages=usages, replies=replies, last_prompt_tokens=last_prompt_tokens
            )
        )

    def fail(self, problem: str, *, usages: Sequence[Usage] = (), replies: Sequence[Owed] = ()) -> EndedTurn:
        """Give the turn up: its messages become dead letters, which can be tried again."""
        return self._run_and_wait(lambda: self._target.fail(problem, usages=usages, replies=replies))

    def interrupt(
        self,
        by: str,
        messages: Iterable[Message | Mapping[str, Any]] = (),
        *,
        usages: Sequence[Usage] = (),
        replies: Sequence[Owed] = (),
    ) -> EndedTurn:
        """Stop the turn: what it has done stands, and nobody does the rest."""
        return self._run_and_wait(
            lambda: self._target.interrupt(by, messages, usages=usages, replies=replies)
        )

    def roll_back(self, by: str, *, usages: Sequence[Usage] = (), replies: Sequence[Owed] = ()) -> EndedTurn:
        """Stop the turn and take back all that it has put into the transcript."""
        return self._run_and_wait(lambda: self._target.roll_back(by, usages=usages, replies=replies))

    def release(self, *, retry_at: datetime | None = None, counted: bool = False) -> None:
        """Let the messages wait again in their old place; if *counted*, this was a try that failed."""
        self._run_and_wait(lambda: self._target.release(retry_at=retry_at, counted=counted))


class BlockingSessionStore(BlockingResource[SessionStore]):
    """`SessionStore` for callers without a loop. Open it with `with BlockingSessionStore.open(path)`."""

    @property
    def home(self) -> Path:
        """The same as that of the SessionStore."""
        return self._target.home

    @property
    def config(self) -> Config:
        """The same as that of the SessionStore."""
        return self._target.config

    @classmethod
    def open(
        cls,
        path: str | Path,
        config: Config | None = None,
        *,
        has_active_processes: HasActiveProcesses | None = None,
        clock: Clock | None = None,
        hooks: Mapping[str, Hook] | Iterable[Hook] = (),
        aliases: AliasResolver | None = None,
        titler: Titler | None = plain_titler,
        wait: float = 0.0,
        pool: object | None = None,
        upkeep: bool = True,
    ) -> BlockingSessionStore:
        """Return a store in a directory, made if need be. Another owner is waited for up to *wait* seconds.

        It is told so: its `drain_requested` is set, and it decides itself when it ends. A server that is away
        is waited for as long. *path* may also be
        an address of a server; the directory is then one among what programs keep. A *pool* of asyncpg that
        the program made for that address is used, and never closed. *hooks* are called for each session that
        ends; a mapping gives them names that outlive a refactoring. Without *upkeep* no session is ended or
        forgotten because its time has come: for programs that only visit, and have not those hooks.
        """
        return cls(
            SessionStore.open(
                path,
                config,
                has_active_processes=has_active_processes,
                clock=clock,
                hooks=hooks,
                aliases=aliases,
                titler=titler,
                wait=wait,
                pool=pool,
                upkeep=upkeep,
            )
        )

    def get_or_create_session(
        self, source: SessionSource, force_new: bool = False, touch: bool = True
    ) -> SessionEntry:
        """The session that a message from *source* belongs to: the current one, or a new one in its place.

        *touch* is False for heartbeats and cron jobs, which must not keep a session alive.
        """
        return self._run_and_wait(lambda: self._target.get_or_create_session(source, force_new, touch))

    def update_session(
        self,
        session_key: str,
        last_prompt_tokens: int | None = None,
        *,
        session_id: str | None = None,
        touch: bool = True,
    ) -> SessionEntry | None:
        """Note the end of a turn: the person was answered now, and has been told of a reset.

        With *session_id*, a turn that ended after its session was replaced changes nothing. *touch* is False
        for the turn of a heartbeat or cron job, which answered nobody and must not keep a session alive.
        """
        return self._run_and_wait(
            lambda: self._target.update_session(
                session_key, last_prompt_tokens, session_id=session_id, touch=touch
            )
        )

    def suspend_session(self, session_key: str, reason: str = "suspended") -> bool:
        """Make the next message start afresh, whatever the policy says; False if the lane has no session."""
        return self._run_and_wait(lambda: self._target.suspend_session(session_key, reason))

    def mark_resume_pending(self, session_key: str, reason: str = ResumeReason.RESTART_TIMEOUT) -> bool:
        """Note that a turn was cut off; False if there is no session, or it may not go on."""
        return self._run_and_wait(lambda: self._target.mark_resume_pending(session_key, reason))

    def clear_resume_pending(self, session_key: str) -> bool:
        """Note that a turn succeeded; False if no cut-off turn was waiting."""
        return self._run_and_wait(lambda: self._target.clear_resume_pending(session_key))

    def suspend_recently_active(self, max_age_seconds: float = 120) -> int:
        """Treat sessions used lately as cut off by a crash: for gateways that do not lease lanes."""
        return self._run_and_wait(lambda: self._target.suspend_recently_active(max_age_seconds))

    def prune_old_entries(self, max_age_days: float | None) -> int:
        """Forget lanes not written to for that long; their next message starts without any history."""
        return self._run_and_wait(lambda: self._target.prune_old_entries(max_age_days))

    def set_model_override(
        self, session_key: str, override: Mapping[str, object] | None
    ) -> SessionEntry | None:
        """Choose a model for this session; credentials are left out."""
        return self._run_and_wait(lambda: self._target.set_model_override(session_key, override))

    def set_reset_policy(self, session_key: str, policy: SessionResetPolicy | None) -> SessionEntry | None:
        """Give this session a policy of its own."""
        return self._run_and_wait(lambda: self._target.set_reset_policy(session_key, policy))

    def set_zone(self, session_key: str, zone: str | None) -> SessionEntry | None:
        """Tell in which time zone the people of this chat live."""
        return self._run_and_wait(lambda: self._target.set_zone(session_key, zone))

    def list_sessions(
        self,
        active_minutes: float | None = None,
        *,
        scope: Scope,
        limit: int = 100,
        after: SessionEntry | None = None,
    ) -> list[SessionEntry]:
        """Return the entries that *scope* may see, the latest written first; *after* is the last one read."""
        return self._run_and_wait(
            lambda: self._target.list_sessions(active_minutes, scope=scope, limit=limit, after=after)
        )

    def lookup_by_session_id(self, session_id: str, *, scope: Scope) -> SessionEntry | None:
        """The entry that holds a session now, if *scope* may see it."""
        return self._run_and_wait(lambda: self._target.lookup_by_session_id(session_id, scope=scope))

    def get_session(self, session_key: str) -> SessionEntry | None:
        """The lane's entry as it is, without judging it."""
        return self._run_and_wait(lambda: self._target.get_session(session_key))

    def peek_session_id(self, session_key: str) -> str | None:
        """The id of the lane's session, without touching it."""
        return self._run_and_wait(lambda: self._target.peek_session_id(session_key))

    def has_any_sessions(self) -> bool:
        """Return whether there has ever been a session."""
        return self._run_and_wait(self._target.has_any_sessions)

    def explain(self, session_key: str) -> Explanation:
        """Why the lane has the session it has, and what its next message will do."""
        return self._run_and_wait(lambda: self._target.explain(session_key))

    def session_prompt(
        self,
        source: SessionSource,
        entry: SessionEntry | None = None,
        *,
        connected: Collection[str] | None = None,
    ) -> str:
        """Return the block of a system prompt that says where the agent talks; it is stable between turns.

        *connected* names the platforms that are; without it, those that the configuration enables. With
        `privacy.redact_pii`, pseudonyms made with this store's own secret stand for names and ids. A first
        turn after an automatic reset has one more line at the end, which says so.
        """
        return self._call_on_loop(lambda: self._target.session_prompt(source, entry, connected=connected))

    def reset_session(self, session_key: str, display_name: str | None = None) -> SessionEntry | None:
        """Start afresh because a person asked for it; None if the lane has no session.

        It overtakes what runs or waits on the lane: the running turn can write nothing any more.
        """
        return self._run_and_wait(lambda: self._target.reset_session(session_key, display_name))

    def undo_reset(self, session_key: str) -> SessionEntry | None:
        """Bring back the session that the last reset took away; `NothingToUndoError` if there is none."""
        return self._run_and_wait(lambda: self._target.undo_reset(session_key))

    def switch_session(
        self, session_key: str, target_session_id: str, *, scope: Scope, move: bool = False
    ) -> SessionEntry | None:
        """Go on with another session here; *scope* says who asks.

        A session of the lane's owner leaves the lane it is on. That of another owner stays theirs: a fork of
        it goes on here, which has an id of its own and the session as its parent. With *move* the session
        leaves its lane and belongs to the owner of this one; each message keeps its author.
        """
        return self._run_and_wait(
            lambda: self._target.switch_session(session_key, target_session_id, scope=scope, move=move)
        )

    def split_session(
        self,
        session_key: str,
        session_id: str,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> SessionEntry | None:
        """Go on with *messages*, a summary of the session, in a new one; the old one stays readable.

        One step; it changes nothing about when the lane is reset. Of several callers one does it, and all get
        the entry as it is then. `SessionEndedError` if the lane has gone on with something else,
        `SessionNotFoundError` if there is no such session.
        """
        return self._run_and_wait(
            lambda: self._target.split_session(
                session_key, session_id, messages, model=model, system_prompt=system_prompt
            )
        )

    def branch_session(
        self, session_key: str, *, at_message_id: int | str | None = None
    ) -> SessionEntry | None:
        """Go on in a copy of the session, up to and with that message; the session can be resumed."""
        return self._run_and_wait(
            lambda: self._target.branch_session(session_key, at_message_id=at_message_id)
        )

    def resume_session(
        self, session_key: str, text: str, *, scope: Scope, move: bool = False
    ) -> SessionEntry | None:
        """Go on with the session that a person means by an id, the beginning of one, or a title.

        `SessionNotFoundError` if nothing in *scope* fits, `AmbiguousSessionError` if several do. A session of
        another owner goes on as a fork, unless it shall *move*: see `switch_session`.
        """
        return self._run_and_wait(
            lambda: self._target.resume_session(session_key, text, scope=scope, move=move)
        )

    def set_busy_mode(self, session_key: str, mode: BusyMode | None) -> SessionEntry | None:
        """Choose what a message does while a turn of this session runs; None: what the configuration says."""
        return self._run_and_wait(lambda: self._target.set_busy_mode(session_key, mode))

    def append_to_transcript(
        self,
        session_id: str,
        message: Message | Mapping[str, Any],
        skip_db: bool = False,
        *,
        source: SessionSource | None = None,
    ) -> int | None:
        """Add a message; returns its id. With *skip_db* nothing happens: the agent has stored it itself.

        *source* tells who said it, and where: in a room, only then is it known to be theirs.
        """
        return self._run_and_wait(
            lambda: self._target.append_to_transcript(session_id, message, skip_db, source=source)
        )

    def rewrite_transcript(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> bool:
        """Put messages in the place of the conversation, all or none; what is hidden stays. Always True."""
        return self._run_and_wait(lambda: self._target.rewrite_transcript(session_id, messages))

    def load_transcript(self, session_id: str, *, limit: int | None = None) -> list[Chat]:
        """Return the conversation for a model, always valid, from its last *limit* messages."""
        return self._run_and_wait(lambda: self._target.load_transcript(session_id, limit=limit))

    def rewind_session(self, session_id: str, n: int = 1) -> Rewind | None:
        """Take back the last *n* turns; None if there is none. `db.restore_rewound` brings them back."""
        return self._run_and_wait(lambda: self._target.rewind_session(session_id, n))

    def enqueue(
        self,
        message: InboundMessage,
        *,
        rules: BusyRules | None = None,
        solo: bool = False,
        running: RunningTurnFacts = NO_TURN,
    ) -> Receipt:
        """Take a message in: after `Accepted` it is durable, and will be turned or kept as a dead letter.

        An edit or a deletion is carried out at once, wherever the message is by now that it changes.
        *solo* gives it a turn of its own, whatever comes after it. *running* says what only the caller knows
        of the turn that runs on the lane.
        """
        return self._run_and_wait(
            lambda: self._target.enqueue(message, rules=rules, solo=solo, running=running)
        )

    def claim(self, session_key: str | None = None) -> BlockingTurn | None:
        """Claim the next turn of a lane, or of the longest waiting lane; None if no turn may begin now.

        Use it with `with`, and end it with `commit`. Until then nobody else writes to the session.
        """
        return self._run_for_part(BlockingTurn, lambda: self._target.claim(session_key))

    def stop_turn(self, session_key: str, *, by: str = "person") -> Overtaken:
        """End the lane's turn and empty its queue; what the turn still writes is refused."""
        return self._run_and_wait(lambda: self._target.stop_turn(session_key, by=by))

    def queue_depth(self, session_key: str) -> int:
        """Return the number of turns that wait on a lane."""
        return self._run_and_wait(lambda: self._target.queue_depth(session_key))

    def list_queued(self, session_key: str) -> list[QueuedMessage]:
        """Return all messages that wait or run on a lane, in the order of its turns."""
        return self._run_and_wait(lambda: self._target.list_queued(session_key))

    def cancel_queued(self, session_key: str, seq: int, *, by: str = "person") -> int:
        """Take a waiting message out, with what became part of its turn; return the number of messages."""
        return self._run_and_wait(lambda: self._target.cancel_queued(session_key, seq, by=by))

    def clear_queue(self, session_key: str, *, by: str = "person") -> int:
        """Take all waiting messages out; return their number. A running turn goes on."""
        return self._run_and_wait(lambda: self._target.clear_queue(session_key, by=by))

    def move_queued(self, session_key: str, seq: int, to: int) -> list[int]:
        """Let a waiting turn begin as the *to*-th, counted from 1; return the new order."""
        return self._run_and_wait(lambda: self._target.move_queued(session_key, seq, to))

    def dead_letters(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        """Return messages whose turns failed for good, newest first; *before* is the last id of a page."""
        return self._run_and_wait(lambda: self._target.dead_letters(limit=limit, before=before))

    def requeue(self, item_id: int | str) -> str:
        """Let a dead letter wait again, behind all that waits; return its lane."""
        return self._run_and_wait(lambda: self._target.requeue(item_id))

    def dead_replies(self, *, limit: int = 100, before: int | None = None) -> list[OwedReply]:
        """Return replies that were given up, newest first; *before* is the last id of a page."""
        return self._run_and_wait(lambda: self._target.dead_replies(limit=limit, before=before))

    def retry_reply(self, reply_id: int | str) -> None:
        """Let a reply that was given up be sent again; a gateway that runs is told with `look_again`."""
        self._run_and_wait(lambda: self._target.retry_reply(reply_id))

    def import_hermes(
        self, path: str | Path, *, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        """Bring a Hermes home along: sessions, messages, use, and lanes that go on with them.

        The home is only read, Hermes may be running. An import that was cut off is simply begun again. See
        the report for what could not be taken in as it was.
        """
        return self._run_and_wait(
            lambda: self._target.import_hermes(path, dry_run=dry_run, progress=progress)
        )

    def erase(
        self, subject: SessionSource | str, *, keep_copies: bool = False, progress: OnProgress | None = None
    ) -> ErasureReceipt:
        """Forget a person: nothing of them is left in this home when the receipt is there.

        The person is the one who wrote from a source, or an owner as entries and sessions name it.
        `SessionBusyError` while a turn of theirs runs. Once begun, it is finished in the background, even if
        the call fails or is cancelled. See `SessionDB.erase` for what happens to copies.
        """
        return self._run_and_wait(
            lambda: self._target.erase(subject, keep_copies=keep_copies, progress=progress)
        )

    def export_person(self, subject: SessionSource | str) -> Iterator[dict[str, Any]]:
        """All that is known of a person: first their lanes with what happened there, then every session."""
        return self._iterate(lambda: self._target.export_person(subject))

    def was_erased(self, source: SessionSource, sent_at: object) -> bool:
        """Return whether a message was sent before its sender was erased, and must be dropped."""
        return self._run_and_wait(lambda: self._target.was_erased(source, sent_at))

    def assign_lanes(
        self, accounts: Mapping[str, str] | None = None, *, unnamed_too: bool = False, dry_run: bool = False
    ) -> LanesReport:
        """Give lanes that named accounts used before they had lanes of their own to those accounts.

        *accounts* says by platform which one gets lanes of which nobody knows who used them; *unnamed_too*,
        also those of the account without a name, which is called so from now on.
        """
        return self._run_and_wait(
            lambda: self._target.assign_lanes(accounts, unnamed_too=unnamed_too, dry_run=dry_run)
        )

    def adopt_lanes(self, serving: Collection[tuple[str, str]]) -> None:
        """Do so for the accounts that a gateway serves, once for each platform; a gateway calls it itself."""
        self._run_and_wait(lambda: self._target.adopt_lanes(serving))

    @property
    def db(self) -> BlockingSessionDB:
        """The database."""
        return BlockingSessionDB(self._target.db, self._loop)

    @property
    def hooks(self) -> BlockingHooks:
        """The hooks, and what became of their calls."""
        return BlockingHooks(self._target.hooks, self._loop)

    @property
    def watcher(self) -> BlockingExpiryWatcher:
        """The duty that ends sessions nobody writes to."""
        return BlockingExpiryWatcher(self._target.watcher, self._loop)

    @property
    def clock(self) -> Clock:
        """The time that this store goes by."""
        return self._call_on_loop(lambda: self._target.clock)

    @property
    def isolation(self) -> Isolation:
        """Who shares a lane with whom."""
        return self._call_on_loop(lambda: self._target.isolation)

    @property
    def drain_requested(self) -> bool:
        """Set when another process would like to take over; this one ends when it sees fit."""
        return self._call_on_loop(self._target.drain_requested.is_set)

    @property
    def started(self) -> StartReport:
        """The state in which the store was found when it was opened."""
        return self._call_on_loop(lambda: self._target.started)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The damage and faults that were found and dealt with since the store was opened."""
        return self._call_on_loop(lambda: self._target.incidents)

    def key_for(self, source: SessionSource) -> str:
        """The plain key of the lane a message of that origin belongs to, if nobody has another name."""
        return self._call_on_loop(lambda: self._target.key_for(source))

    def should_notify(self, entry: SessionEntry) -> bool:
        """Return True if people should be told that this session replaced one that nobody asked to end."""
        return self._call_on_loop(lambda: self._target.should_notify(entry))

    def scope_of(self, source: SessionSource) -> Scope:
        """The scope of the person who wrote, under the rules of this store and all of their names."""
        return self._run_and_wait(lambda: self._target.scope_of(source))

    def flush(self) -> None:
        """Return when sessions.json shows all that was changed before, else raise `SnapshotError`."""
        self._run_and_wait(self._target.flush)
