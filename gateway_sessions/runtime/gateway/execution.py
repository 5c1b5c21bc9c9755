"""The execution of one turn: lend the agent, run it, and commit its messages, use and replies at once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions._process.retry import (
    MOST_TRIES,
    PASSING_FAULTS,
    Backoff,
    SpoiltTries,
    is_passing_fault,
    retry,
)
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, Reply, ReplyTarget
from gateway_sessions.core.notices.notice import notice_message
from gateway_sessions.core.notices.notice_texts import (
    FAILED,
    GIVEN_UP,
    INTERRUPTED,
    NO_SIGN_OF_LIFE,
    TOOK_TOO_LONG,
    reset_notice,
)
from gateway_sessions.core.queue.state_machine import TurnOutcome
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.transcript.messages import Message, Role
from gateway_sessions.core.usage.usage_events import Usage
from gateway_sessions.errors import (
    FencedError,
    GatewaySessionsError,
    StorageError,
    StoreStoppedError,
)
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.cache import (
    AgentCache,
    AgentLoan,
    AgentSettings,
    lend_agent,
    validity_of,
)
from gateway_sessions.runtime.agents.protocol import Agent, AgentSource, run_turn
from gateway_sessions.runtime.agents.turn_context import (
    TurnContext,
    TurnControl,
    TurnPorts,
    control_of,
    fetch_nowhere,
    recovery_note,
)
from gateway_sessions.runtime.delivery.delivery import Delivery, ExpectedReplies, expecting_replies
from gateway_sessions.runtime.delivery.receipt_notices import Hints
from gateway_sessions.runtime.gateway.running_turn import PUT_OFF, RunningTurn, StopReason, TurnAdmission
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.gateway.streaming import GrowingTurn, Streaming
from gateway_sessions.runtime.gateway.watchdog import Watchdog
from gateway_sessions.runtime.queue.turn import EndedTurn, GatewayTurn, Turn
from gateway_sessions.runtime.session_prompt import SystemPrompts
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.storage.transactions.queue.outbox import Owed
from gateway_sessions.storage.transactions.transcripts import usage as uses

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

COMMIT_BACKOFF: Final = Backoff(timedelta(seconds=0.5), timedelta(seconds=2))
"""The pauses between tries to commit the work of an agent. They stay short, because the lane waits until the
database is back."""
TURN_BACKOFF: Final = Backoff(timedelta(seconds=0.5), timedelta(seconds=8))
"""The pauses between tries of a turn that the database has spoilt; the agent works in each try."""
MAX_PROBLEM: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """The parts of a gateway that each turn uses."""

    store: SessionStore
    clock: Clock
    source: AgentSource
    cache: AgentCache
    lanes: LaneScheduler
    deliveries: Mapping[tuple[str, str], Delivery]
    """By platform and account."""
    hints: Hints
    gates: Sequence[Callable[[Turn], Awaitable[TurnAdmission]]]
    """Asked one after another whether a turn may run; the first refusal stands."""
    on_ended: Sequence[Callable[[Turn, TurnOutcome], object]]
    """Told how each turn ended."""
    platforms: Collection[str] = ()
    """The platforms that are connected, as they are at any moment."""
    settings: AgentSettings | None = None
    timeout: timedelta | None = None
    watchdog: Watchdog
    prompts: SystemPrompts
    spoilt: SpoiltTries = field(default_factory=SpoiltTries)
    """The tries of turns that the database has spoilt."""


@dataclass(slots=True)
class _AgentWork:
    """The result of an agent's work: a reply or an error, or neither if it was stopped."""

    reply: Reply | None = None
    error: Exception | None = None
    loan: AgentLoan | None = None
    """The agent as it was lent; None for an agent that all sessions share."""


class TurnExecution:
    """Executes one turn."""

    def __init__(self, parts: TurnParts, turn: GatewayTurn, running: RunningTurn) -> None:
        self._parts = parts
        self._turn = turn
        self._running = running
        self._usages: list[Usage] = []
        self._notice: str | None = None
        last = turn.messages[-1]
        self._target = ReplyTarget.answering(last)
        self._delivery = parts.deliveries.get((last.source.platform, last.account))
        growing = GrowingTurn.of_turn(turn, parts.lanes.is_trusted)
        self._streaming = Streaming(self._delivery, parts.hints, self._target, parts.clock, growing)
        self.outcome: TurnOutcome = TurnOutcome.UNKNOWN
        """How the turn ended, as far as is known."""
        self.settled: bool = False
        """Whether the end of the turn is stored."""

    async def execute(self) -> EndedTurn | None:
        """Run the turn; return its end, or None if the lane was lost or the turn waits again."""
        try:
            ended = await self._pass_gates_and_run()
        except Exception:
            await self._count_unsettled_use()
            raise
        await self._count_unsettled_use()
        if self.settled and not self._running.is_leaving:
            await self._parts.prompts.store_once(self._turn.entry.session_id, self._session_prompt)
        return ended

    async def _pass_gates_and_run(self) -> EndedTurn | None:
        try:
            for gate in self._parts.gates:
                admission = await gate(self._turn)
                self._notice = admission.notice
                if not admission.allowed:
                    return await self._commit_refusal()
        except StorageError as error:
            return await self._retry_or_fail(error)
        return await self._run_and_end()

    # The agent

    async def _run_and_end(self) -> EndedTurn | None:
        """Run the agent and end the turn; an agent that is not shared is lent for that and kept warm."""
        if (shared := self._parts.source.shared) is not None:
            return await self._end_turn(await self._run_agent(shared))
        with ExitStack() as lent:
            work = await self._run_agent(lent)
            ended = await self._end_turn(work)
            if work.loan is not None and ended is not None:
                self._keep_agent_warm(work.loan, ended)
            return ended

    def _keep_agent_warm(self, loan: AgentLoan, ended: EndedTurn) -> None:
        """Keep the agent warm if it has seen all that the transcript says.

        The agent has not seen what was edited or deleted since the turn began, on any node.
        """
        as_begun = ended.version.edit_count == self._turn.version.edit_count
        moved = ended.entry is not None and ended.entry.session_id != self._turn.entry.session_id
        if ended.entry is not None and self.outcome is TurnOutcome.TURNED and (as_begun or moved):
            seen = replace(loan.asked, session_id=ended.entry.session_id, transcript_version=ended.version)
            loan.keep_agent(seen)

    # Its work

    async def _run_agent(self, agent: Agent | ExitStack) -> _AgentWork:
        """Run a shared agent, or one that is lent until the stack is closed.

        A factory that makes the agent is part of the turn: it takes of the same time, and is stopped with it.
        """
        work, running = _AgentWork(), self._running
        if running.stop_reason is not None:
            return work
        running.context = context = self._make_context()
        adapter = self._delivery.adapter if self._delivery is not None else None
        self._parts.watchdog.watch(running, context, adapter, self._target)
        with running.scope:
            try:
                if isinstance(agent, ExitStack):
                    work.loan = agent.enter_context(await self._borrow_agent())
                    agent = work.loan.agent
                    context.progress()
                failpoint("turn_working")
                work.reply = await run_turn(agent, context, begins=partial(running.begin_agent, agent))
            except Exception as error:  # noqa: BLE001 -- foreign code: its failure is the turn's
                work.error = error
        self._parts.watchdog.unwatch(running)
        control_of(context).end()
        failpoint("turn_answered")
        return work

    async def _borrow_agent(self) -> AgentLoan:
        parts, entry = self._parts, self._turn.entry
        validity = validity_of(entry, self._turn.version, parts.settings)
        return await lend_agent(parts.source, parts.cache, entry, self._turn.transcript, validity)

    def _make_context(self) -> TurnContext:
        turn, now, timeout = self._turn, self._parts.clock.now(), self._parts.timeout
        attempt = turn.attempt + self._parts.spoilt.count_of(turn.session_key, turn.seq)
        ports = TurnPorts(
            append=lambda rows: turn.append(*rows),
            say=self._say_before_reply,
            read=turn.transcript,
            show=self._streaming.show,
            fetch=(self._delivery and self._delivery.fetch) or fetch_nowhere,
            db=self._parts.store.db,
            scope_of=self._parts.store.scope_of,
            usage=self._usages.append,
            prompt=self._session_prompt,
        )
        return TurnContext(
            entry=turn.entry,
            messages=turn.messages,
            seq=turn.seq,
            token=turn.token,
            clock=self._parts.clock,
            control=TurnControl(ports),
            attempt=attempt,
            recovered=recovery_note(attempt, turn.admitted_at, now, begun=turn.recorded),
            deadline=None if timeout is None else now + timeout,
        )

    def _session_prompt(self) -> str:
        store, source = self._parts.store, self._turn.messages[0].source
        return store.session_prompt(source, self._turn.entry, connected=self._parts.platforms)

    async def _say_before_reply(self, reply: Reply) -> None:
        message = reply.message
        if message is None:
            return
        await self._streaming.wait_until_shown()
        messages = self._streaming.replace_shown([message])
        growing = self._streaming.last_grown if messages[0].replaces is not None else None
        with self._expecting_replies(messages) as owed:
            try:
                ids = await self._turn.owe(*owed.replies, growing=growing)
            except GatewaySessionsError as error:
                in_doubt = isinstance(error, StorageError) and error.in_doubt
                if not in_doubt:  # else the message may be sent all the same
                    self._streaming.restore_shown(messages)
                raise
            owed.note_committed(ids, self._turn.entry.session_id)

    # Its end

    async def _end_turn(self, work: _AgentWork) -> EndedTurn | None:
        try:
            return await self._end_by_result(work)
        except (FencedError, StoreStoppedError, *PASSING_FAULTS):
            raise
        except Exception as error:  # the transaction refuses what the agent left
            if self._turn.ended:
                raise
            return await self._retry_or_fail(error)

    async def _end_by_result(self, work: _AgentWork) -> EndedTurn | None:
        await self._streaming.wait_until_shown()  # else a late update of a task of the agent would stay
        reason = self._running.stop_reason
        if reason is StopReason.OVERTAKEN or isinstance(work.error, FencedError):
            self.outcome = TurnOutcome.OVERTAKEN
            self._turn.abandon()
            return None
        if reason is StopReason.ROLLBACK:
            return await self._end_stopped(TurnOutcome.ROLLED_BACK, self._turn.roll_back)
        if work.reply is not None:
            return await self._commit_reply(work.reply)
        if reason is not None and reason in PUT_OFF:
            await self._put_off_until_restart(PUT_OFF[reason])
            return None
        return await self._end_without_reply(reason, work.error)

    async def _end_without_reply(
        self, reason: StopReason | None, error: Exception | None
    ) -> EndedTurn | None:
        match reason:
            case StopReason.MESSAGE:
                return await self._end_stopped(
                    TurnOutcome.INTERRUPTED, self._turn.interrupt, self._interrupted_rows()
                )
            case StopReason.DEADLINE:
                return await self._fail_turn("took too long", TOOK_TOO_LONG)
            case StopReason.INACTIVE:
                return await self._fail_turn("showed no sign of life", NO_SIGN_OF_LIFE)
            case _:
                return await self._retry_or_fail(error)

    async def _commit_reply(self, reply: Reply) -> EndedTurn:
        self.outcome = TurnOutcome.TURNED
        rows = [reply.row] if reply.row is not None else []
        said = reply.message
        return await self._settle_turn(
            self._due_notices()
            if said is None
            else self._streaming.replace_shown([*self._due_notices(), said]),
            lambda owed, go_on: self._turn.commit(
                rows,
                usages=self._usages,
                replies=owed,
                last_prompt_tokens=self._last_prompt_tokens(),
                go_on=go_on,
            ),
        )

    async def _commit_refusal(self) -> EndedTurn:
        """End a turn that may not run: the gateway answers its messages by a notice."""
        self.outcome = TurnOutcome.REFUSED
        row = Message(str(Role.ASSISTANT), self._notice or "", finish_reason="refused")
        return await self._settle_turn(
            self._due_notices(), lambda owed, go_on: self._turn.commit([row], replies=owed, go_on=go_on)
        )

    async def _end_stopped(
        self,
        outcome: TurnOutcome,
        end: Callable[..., Awaitable[EndedTurn]],
        rows: Sequence[Message] | None = None,
    ) -> EndedTurn:
        self.outcome = outcome
        given = {} if rows is None else {"messages": rows}
        return await self._settle_turn(
            (), lambda owed, go_on: end("message", usages=self._usages, replies=owed, go_on=go_on, **given)
        )

    async def _retry_or_fail(self, error: Exception | None) -> EndedTurn | None:
        if self._may_try_again(error):
            await self._release_for_retry(error)
            return None
        problem = f"{type(error).__name__}: {error}" if error is not None else "the agent was stopped"
        facts = {"action": "turn_failed", "session_key": self._turn.session_key, "seq": self._turn.seq}
        logger.error("a turn failed", exc_info=error, extra=facts)
        return await self._fail_turn(problem[:MAX_PROBLEM], FAILED)

    async def _fail_turn(self, problem: str, notice: str) -> EndedTurn:
        self.outcome = TurnOutcome.DEAD
        told = notice_message(notice)
        return await self._settle_turn(
            [*self._due_notices(), told],
            lambda owed, go_on: self._turn.fail(problem, usages=self._usages, replies=owed, go_on=go_on),
        )

    def _may_try_again(self, error: Exception | None) -> bool:
        """Return whether the database failed and not the agent, in a way that may pass."""
        if is_passing_fault(error):
            return self._parts.spoilt.count_of(self._turn.session_key, self._turn.seq) < MOST_TRIES
        within_limit = self._turn.attempt < self._parts.store.config.agent.max_restart_attempts
        return within_limit and isinstance(error, PASSING_FAULTS)

    async def _release_for_retry(self, error: Exception | None) -> None:
        """Let the turn wait in its place for another try; a passing fault does not count as a try."""
        self.outcome = TurnOutcome.PUT_OFF
        passing = is_passing_fault(error)
        spoilt = self._parts.spoilt.count_one(self._turn.session_key, self._turn.seq) if passing else 0
        pause = TURN_BACKOFF.after(spoilt or self._turn.attempt)
        facts = {"action": "turn_delayed", "session_key": self._turn.session_key, "seq": self._turn.seq}
        logger.warning("a turn is tried again, as the database failed", exc_info=error, extra=facts)
        retry_at = self._parts.clock.now() + pause
        await self._retry_until_done(lambda: self._turn.release(retry_at=retry_at, counted=not passing))

    async def _put_off_until_restart(self, why: ResumeReason) -> None:
        """Let the turn go on after the next start of the gateway, with its transcript so far.

        The stop counts as a try. A turn with too many tries becomes a dead letter, and people are told.
        """
        self.outcome = TurnOutcome.PUT_OFF
        told = notice_message(GIVEN_UP)
        with self._expecting_replies([*self._streaming.unfinished_notice(), told]) as owed:
            cut = await self._turn.cut_short(why, owed.replies)
            if cut.given_up:
                self.outcome = TurnOutcome.DEAD
                owed.note_committed(cut.notice_ids, cut.entry.session_id if cut.entry is not None else None)

    async def _count_unsettled_use(self) -> None:
        """Count the use of a turn whose end is not stored, because it was spent all the same."""
        if self.settled or not self._usages:
            return
        spent = partial(
            uses.record_turn_usage, self._turn.entry.session_id, self._usages, self._parts.clock.now()
        )
        try:
            await self._retry_until_done(lambda: self._parts.store.db.write(spent))
        except StorageError:
            facts = {"action": "usage_lost", "session_key": self._turn.session_key, "seq": self._turn.seq}
            logger.exception("what a turn has used could not be counted", extra=facts)

    def _interrupted_rows(self) -> list[Message]:
        """Return the transcript row for an interrupted turn: the reply as far as it was shown."""
        context = self._running.context
        shown = control_of(context).shown if context is not None else None
        return [Message(str(Role.ASSISTANT), shown or INTERRUPTED, finish_reason="interrupted")]

    def _due_notices(self) -> list[OutboundMessage]:
        entry = self._turn.entry
        # An internal turn tells nobody of the reset: people hear of it in their own next turn.
        to_tell = not self._turn.is_internal and self._parts.store.should_notify(entry)
        told: list[str] = [reset_notice(entry)] if to_tell else []
        told += [self._notice] if self._notice is not None else []
        return [notice_message(text) for text in told]

    def _last_prompt_tokens(self) -> int | None:
        if not self._usages:
            return None
        last = self._usages[-1]
        return last.input_tokens + last.cache_read_tokens + last.cache_write_tokens

    async def _settle_turn(
        self,
        messages: Sequence[OutboundMessage],
        end: Callable[[Sequence[Owed], bool | str], Awaitable[EndedTurn]],
    ) -> EndedTurn:
        """End the turn with these replies; try again as long as the database cannot be written.

        A growing message without an end is ended first.
        """
        messages = [*self._streaming.unfinished_notice(), *messages]
        with self._expecting_replies(messages) as owed:
            try:
                ended = await self._retry_until_done(
                    lambda: end(owed.replies, self._parts.lanes.plan_following(self._running))
                )
            except GatewaySessionsError:
                self._streaming.restore_shown(messages)  # other messages may replace the growing one
                raise
            self.settled = True
            self._parts.spoilt.forget(self._turn.session_key, self._turn.seq)
            failpoint("after_commit_before_deliver")
            owed.note_committed(ended.reply_ids, ended.entry.session_id if ended.entry is not None else None)
        return ended

    async def _retry_until_done(self, end: Callable[[], Awaitable[T]]) -> T:
        def failed(error: StorageError) -> None:
            if self._running.is_leaving:
                raise error  # the next start finds the turn cut off and tries it again
            facts = {"action": "commit_delayed", "session_key": self._turn.session_key}
            logger.exception("a turn could not be committed and is tried again", extra=facts)

        async def sleep(seconds: float) -> None:
            await self._running.sleep_unless_leaving(timedelta(seconds=seconds), self._parts.clock)

        return await retry(end, PASSING_FAULTS, backoff=COMMIT_BACKOFF, sleep=sleep, failed=failed)

    def _expecting_replies(
        self, messages: Sequence[OutboundMessage]
    ) -> AbstractContextManager[ExpectedReplies]:
        owner, seq = self._turn.entry.owner, self._turn.seq
        owed = [Owed(target=self._target, message=one, owner=owner, seq=seq) for one in messages]
        return expecting_replies(self._delivery, self._turn.session_key, owed)
