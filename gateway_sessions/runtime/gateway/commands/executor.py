"""Execution of slash commands: noted in the queue, run at once, and settled together with the answer.

A noted command is a duplicate when the platform delivers it again, so no command is carried out twice. A
command that a crash cut off is not repeated either, because nobody knows how far it came; people are told at
the next start.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway_sessions._process.background import start_task_in
from gateway_sessions._process.failpoints import failpoint
from gateway_sessions._process.retry import PASSING_FAULTS, Backoff, retry
from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.notices.command_replies import not_allowed, took_too_long, went_wrong
from gateway_sessions.core.notices.error_replies import error_reply
from gateway_sessions.core.notices.notice import notice_message
from gateway_sessions.core.notices.notice_texts import acknowledgement_notice
from gateway_sessions.core.queue.busy_modes import BusyBook
from gateway_sessions.core.queue.inbound import Accepted, Disposition, InboundMessage, Receipt, Rejected
from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    StorageError,
    StoreStoppedError,
)
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.delivery.delivery import Delivery, expecting_replies
from gateway_sessions.runtime.gateway.commands.protocol import AT_ONCE, Command, CommandCall, CommandHost
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.runtime.queue.admission import DRAINING, OVERLOADED
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.runtime.user_code import MAX_PROBLEM, problem_within
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.transactions.queue import slash_commands as transactions
from gateway_sessions.storage.transactions.queue.admit import NotedItem
from gateway_sessions.storage.transactions.queue.outbox import Owed

logger: Final = logging.getLogger(__name__)

SETTLE_BACKOFF: Final = Backoff(timedelta(seconds=0.5), timedelta(seconds=30))
"""The pauses between tries to store the end of a command."""


LEAST_OF_ONE: Final = 8
"""The least limit by owner. A short queue limits turns; commands are done in a moment."""


class CommandPlaces:
    """Counts the commands that run at the same time. A place is freed by closing it."""

    def __init__(self, most: int) -> None:
        """*most* is the number of places for all owners together."""
        self._most = most
        self._taken = 0
        self._of_owners: Counter[str] = Counter()
        self._urgent: set[tuple[str, str]] = set()

    def reserve_place(
        self, command: Command, session_key: str, owner: str, most_of_one: int
    ) -> ExitStack | None:
        """Return a place for a command; None if too many of that owner, or of all owners, are under way.

        An owner has *most_of_one* places, at least `LEAST_OF_ONE`. Each lane has one more place for each
        urgent command, because that command may end a flood.
        """
        place = ExitStack()
        if self._taken < self._most and self._of_owners[owner] < max(most_of_one, LEAST_OF_ONE):
            self._taken += 1
            self._of_owners[owner] += 1
            place.callback(self._free_place, owner)
            return place
        urgent = (session_key, command.name)
        if not command.urgent or urgent in self._urgent:
            return None
        self._urgent.add(urgent)
        place.callback(self._urgent.remove, urgent)
        return place

    def _free_place(self, owner: str) -> None:
        self._taken -= 1
        self._of_owners[owner] -= 1
        if not self._of_owners[owner]:
            del self._of_owners[owner]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asker:
    """The person who gets an answer, and the message that it answers."""

    message: InboundMessage
    session_key: str
    owner: str
    seq: int


@dataclass(slots=True, eq=False, kw_only=True)
class _Job:
    """A noted command, and what becomes of it."""

    command: Command
    message: InboundMessage
    noted: NotedItem
    aloud: bool
    """Whether the answer is sent to the place of the command."""
    answer: str | None = None
    problem: str | None = None
    """Why the command was not carried out, or failed."""
    done: anyio.Event = field(default_factory=anyio.Event)
    """Set when nobody need wait for the command any more."""
    held: ExitStack = field(default_factory=ExitStack)
    """The place that the command takes."""

    @property
    def lane_and_command(self) -> tuple[str, str]:
        """The lane and the command."""
        return self.noted.session_key, self.command.name

    @property
    def asker(self) -> _Asker:
        """The person who gets the answer."""
        noted = self.noted
        return _Asker(message=self.message, session_key=noted.session_key, owner=noted.owner, seq=noted.seq)

    def log_facts(self, action: str) -> dict[str, object]:
        """Return the facts of the command for the log."""
        return {"action": action, "command": self.command.name, "session_key": self.noted.session_key}


class CommandExecutor:
    """Carries out the commands of one gateway."""

    def __init__(
        self,
        host: CommandHost,
        tasks: TaskGroup,
        deliveries: Mapping[tuple[str, str], Delivery],
        tell: Callable[[InboundMessage, Receipt], object],
        on_done: Callable[[], object],
        busy: BusyBook,
    ) -> None:
        """*tell* lets people know of refused commands; *on_done* is called whenever a command was done."""
        self._host = host
        self._tasks = tasks
        self._deliveries = deliveries
        self._tell = tell
        self._clock = host.store.clock
        self._places = CommandPlaces(host.config.gateway.max_waiting)
        self._in_background: set[tuple[str, str]] = set()
        self.under_way: int = 0
        """The number of commands that are being noted or carried out."""
        self.draining = False
        """Whether the gateway is about to end and carries out no more commands."""
        self._on_done = on_done
        self._busy = busy

    async def run_command(self, message: InboundMessage) -> Receipt:
        """Carry a command out and owe its answer; return when it is done, or begun if it takes long."""
        command = self._host.commands[message.command or ""]
        if self.draining:
            return await self._refuse_command(message, DRAINING)
        if (place := self._reserve_place(command, message)) is None:
            return await self._refuse_command(message, OVERLOADED)
        with place:
            if (queued := await self._message_to_queue(command, message)) is not None:
                return await self._queue_message(message, queued)
            job = await self._note_command(command, message, aloud=True)
            if isinstance(job, Rejected):
                return await self._refuse_command(message, job)
            if not isinstance(job, _Job):
                self._tell(message, job)
                return job
            self._start_job(job, place)
        if command.begun is None:
            await job.done.wait()
        return await self._receipt_of_job(job)

    async def run_for_program(self, source: SessionSource, text: str) -> str | None:
        """Carry a command out for a program, as if that person had typed it, and return the answer."""
        message = InboundMessage(source=source, text=text)
        if not self._host.commands.is_command(message):
            problem = f"{text[:80]!r} is no command"
            raise InvalidInputError(problem)
        command = self._host.commands[message.command or ""]
        if self.draining:
            return DRAINING.text
        if (place := self._reserve_place(command, message)) is None:
            return OVERLOADED.text
        with place:
            if (queued := await self._message_to_queue(command, message)) is not None:
                return _acknowledgement_text(await self._host.admit(queued, solo=True))
            job = await self._note_command(command, message, aloud=False)
            if not isinstance(job, _Job):
                return job.text if isinstance(job, Rejected) else None
            self._start_job(job, place)
        await job.done.wait()
        return job.answer

    async def _refuse_command(self, message: InboundMessage, why: Rejected) -> Receipt:
        """Refuse a command and tell the person, unless it is a duplicate of a command that was noted."""
        refused = await queue_of(self._host.store).answer_refusal(message, why)
        self._tell(message, refused)
        return refused

    def _reserve_place(self, command: Command, message: InboundMessage) -> ExitStack | None:
        """Return a place for a command; None if too many are under way."""
        store = self._host.store
        key = store.key_for(message.source)
        owner = queue_of(store).routing.owner_of_lane(key, message.source)
        rules = self._busy.rules_for(message.source.platform, message.source.chat_type)
        return self._places.reserve_place(command, key, owner, rules.max_queued)

    # A message that a command brings

    async def _message_to_queue(self, command: Command, message: InboundMessage) -> InboundMessage | None:
        """Return the message that a command brings for the agent, if its sender may use the command."""
        queued = command.queued(message) if command.queued is not None else None
        if queued is None:
            return None
        session_key, owner = await queue_of(self._host.store).routing.lane_of(message.source)
        allowed = await self._is_permitted(await self._make_call(command, message, session_key, owner))
        return queued if allowed else None

    async def _queue_message(self, message: InboundMessage, queued: InboundMessage) -> Receipt:
        """Admit a message that a command brought, and tell its sender in any case what becomes of it."""
        receipt = await self._host.admit(queued, solo=True)
        if isinstance(receipt, Accepted) and (text := _acknowledgement_text(receipt)) is not None:
            _, owner = await queue_of(self._host.store).routing.lane_of(message.source)
            key = receipt.session_key
            asker = _Asker(message=message, session_key=key, owner=owner, seq=receipt.seq)
            await self._owe_answer(asker, text, partial(transactions.owe_answers, key))
        return receipt

    # A command

    async def _note_command(
        self, command: Command, message: InboundMessage, *, aloud: bool
    ) -> _Job | Receipt:
        # If a crash cuts a program's command off, no person is told: the program knows.
        stored = message if aloud else msgspec.structs.replace(message, internal=True)
        if self.draining:
            return DRAINING
        job: _Job | None = None
        self.under_way += 1  # from here on a drain waits for it
        try:
            noted = await queue_of(self._host.store).record_arrival(stored, ItemKind.COMMAND)
            if not isinstance(noted, NotedItem):
                return noted
            failpoint("command_noted")
            job = _Job(command=command, message=message, noted=noted, aloud=aloud)
            return job
        finally:
            if job is None:
                self._count_as_done()

    def _start_job(self, job: _Job, place: ExitStack) -> None:
        """Carry the command out in a task of its own, even if its sender is cancelled."""
        job.held = place.pop_all()
        try:
            start_task_in(self._tasks, "gateway", self._do_and_settle, job)
        except StoreStoppedError:  # the gateway has crashed: people are told at the next start
            job.held.close()
            self._count_as_done()
            raise

    def _count_as_done(self) -> None:
        self.under_way -= 1
        self._on_done()

    async def _do_and_settle(self, job: _Job) -> None:
        try:
            await self._carry_out_job(job)
            failpoint("command_carried_out")
            await self._settle_job(job)
        except StoreStoppedError:
            return  # people are told at the next start
        except Exception:  # a fault of ours, or of the database: it must not end the gateway
            logger.exception("a command was not settled", extra=job.log_facts("command_unsettled"))
        finally:
            job.done.set()
            job.held.close()
            self._count_as_done()

    async def _carry_out_job(self, job: _Job) -> None:
        """Run the handler, in the background if the command takes long; the job gets the answer."""
        if job.command.begun is None:
            await self._run_in_time(job)
        elif job.lane_and_command in self._in_background:
            job.answer = job.command.begun
        else:
            self._in_background.add(job.lane_and_command)
            job.held.close()  # only one of them runs at a time, so it need not take a place
            try:
                if job.aloud:
                    told = partial(transactions.owe_answers, job.noted.session_key)
                    await self._owe_answer(job.asker, job.command.begun, told)
                await self._run_in_time(job)
            finally:
                self._in_background.discard(job.lane_and_command)

    async def _run_in_time(self, job: _Job) -> None:
        late = await problem_within(job.command.limit, self._clock, partial(self._call_handler, job))
        if late is not None and job.answer is None:
            job.problem, job.answer = late, took_too_long(job.command.name)
            logger.error("a command was cut off", extra=job.log_facts("command_cut_off"))

    async def _call_handler(self, job: _Job) -> None:
        command, noted = job.command, job.noted
        try:
            call = await self._make_call(command, job.message, noted.session_key, noted.owner)
            if await self._is_permitted(call):
                job.answer = await command.handler(call)
            else:
                job.problem, job.answer = "it was not allowed", not_allowed(command.name)
        except GatewaySessionsError as error:
            job.problem, job.answer = _error_text(error), error_reply(error)
        except Exception as error:  # foreign code: whoever asked is told that it failed
            job.problem, job.answer = _error_text(error), went_wrong(command.name)
            logger.exception("a command failed", extra=job.log_facts("command_failed"))

    async def _make_call(
        self, command: Command, message: InboundMessage, session_key: str, owner: str
    ) -> CommandCall:
        store = self._host.store
        entry = await store.get_session(session_key)
        return CommandCall(
            gateway=self._host,
            command=command,
            name=message.command or command.name,
            arguments=message.arguments,
            message=message,
            session_key=session_key,
            owner=owner,
            entry=entry,
            scope=await store.scope_of(message.source),
        )

    async def _is_permitted(self, call: CommandCall) -> bool:
        """Return whether the person may use the command; False if `allowed` fails."""
        answers: list[bool] = []

        async def ask() -> None:
            answers.append(await self._host.commands.is_permitted(call))

        problem = await problem_within(AT_ONCE, self._clock, ask)
        if problem is not None:
            facts = {"command": call.command.name, "session_key": call.session_key, "problem": problem}
            logger.error(
                "nobody knows who may use a command", extra={"action": "command_veto_failed", **facts}
            )
        return answers == [True]

    async def _receipt_of_job(self, job: _Job) -> Accepted:
        key, session_id = job.noted.session_key, None
        with suppress(StorageError):  # the command is noted, even if nothing can be read now
            session_id = await self._host.store.peek_session_id(key)
        return Accepted(
            seq=job.noted.seq, session_key=key, session_id=session_id, disposition=Disposition.COMMAND
        )

    async def _settle_job(self, job: _Job) -> None:
        """Store the end of the command and owe the answer; try again as long as the database fails."""
        outcome = Outcome.COMMAND if job.problem is None else Outcome.CANCELLED
        settle = partial(transactions.settle_command, job.noted, outcome, job.problem)
        owe = partial(self._owe_answer, job.asker, job.answer if job.aloud else None, settle)

        def failed(_: StorageError) -> None:
            logger.exception("a command is settled later", extra=job.log_facts("command_delayed"))
            job.done.set()

        await retry(owe, PASSING_FAULTS, backoff=SETTLE_BACKOFF, sleep=self._clock.sleep, failed=failed)
        name, problem = job.command.name, job.problem
        self._host.events.emit(EventKind.COMMAND, job.noted.session_key, name=name, problem=problem)

    async def _owe_answer(
        self,
        asker: _Asker,
        text: str | None,
        transaction: Callable[[Sequence[Owed], Change], Transaction[tuple[int, ...]]],
    ) -> None:
        """Run a transaction that owes the answer, if there is one; it is sent after the commit."""
        message, target = asker.message, ReplyTarget.answering(asker.message)
        texts = [] if text is None else [notice_message(text)]
        answers = [Owed(target=target, message=one, owner=asker.owner, seq=asker.seq) for one in texts]
        delivery = self._deliveries.get((message.source.platform, message.account))
        with expecting_replies(delivery, asker.session_key, answers) as owed:
            apply = queue_of(self._host.store).apply
            ids = await apply(lambda change: transaction(owed.replies, change))
            owed.note_committed(ids, None)


def _acknowledgement_text(receipt: Receipt) -> str | None:
    """Return the answer to a person whose message was to wait."""
    match receipt:
        case Accepted():
            return acknowledgement_notice(receipt.disposition, receipt.depth)
        case Rejected():
            return receipt.text
        case _:
            return None


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_PROBLEM]
