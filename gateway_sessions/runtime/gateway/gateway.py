"""`Gateway`: takes messages from adapters, runs an agent for each turn, and sends replies."""

from __future__ import annotations

import logging
import signal
from collections.abc import Awaitable, Iterable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, Self

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._process.background import Resource
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.config import Config, UnknownCommands
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind
from gateway_sessions.core.queue.receipts import Accepted, Duplicate, Receipt, Rejected, RejectReason
from gateway_sessions.core.queue.state_machine import TurnOutcome
from gateway_sessions.runtime.agents.cache import AgentCache, AgentSettings
from gateway_sessions.runtime.agents.protocol import Agent, AgentFactory, AgentFunction, AgentSource
from gateway_sessions.runtime.agents.system_prompts import SystemPrompts
from gateway_sessions.runtime.argument_checks import (
    adapters_of,
    check_function,
    check_is,
    check_message,
    each_of,
)
from gateway_sessions.runtime.delivery.delivery import Delivery, Patience
from gateway_sessions.runtime.delivery.durable_notices import Answers
from gateway_sessions.runtime.delivery.notices import Hints, Notices
from gateway_sessions.runtime.delivery.pauses import Pauses
from gateway_sessions.runtime.gateway.assembly import TurnAdmission, TurnParts
from gateway_sessions.runtime.gateway.budget_gate import BudgetGate
from gateway_sessions.runtime.gateway.commands import built_in
from gateway_sessions.runtime.gateway.commands.compression import Compressor
from gateway_sessions.runtime.gateway.commands.executor import Commands
from gateway_sessions.runtime.gateway.commands.help import UNKNOWN
from gateway_sessions.runtime.gateway.commands.protocol import Allowed, Command, CommandSet
from gateway_sessions.runtime.gateway.connections import Connections, by_account
from gateway_sessions.runtime.gateway.farewell import Farewells
from gateway_sessions.runtime.gateway.listeners import ClusterNews, QueueNews
from gateway_sessions.runtime.gateway.observers import AfterTurn, Observers, OnMessage, OnTurn
from gateway_sessions.runtime.gateway.remote_turns import RemoteTurns
from gateway_sessions.runtime.gateway.runner import TurnRunner, TurnTasks
from gateway_sessions.runtime.gateway.running_turn import RunningTurn, StopReason
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.gateway.watchdog import Watchdog
from gateway_sessions.runtime.observability.events import EventKind, Events
from gateway_sessions.runtime.open_calls import OpenCalls
from gateway_sessions.runtime.queue.admission import LaneHere
from gateway_sessions.runtime.queue.edits import Changes
from gateway_sessions.runtime.queue.limits import rejected
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.runtime.store.open_store import parts_of, queue_of
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.runtime.user_code import GRACE, PATIENCE
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transactions.queue.admit import NO_TURN
from gateway_sessions.storage.transactions.queue.admit import RunningTurnFacts as LaneTurn
from gateway_sessions.storage.transactions.queue.outbox import OwedReply

logger: Final = logging.getLogger(__name__)

_NO_STORE: Final = "open one first: `async with SessionStore.open(path) as store`"
_NO_LANES: Final = "give a list of the keys of lanes, as `store.key_for` tells them"
TO_STOP: Final = GRACE + PATIENCE + timedelta(seconds=1)
"""How long turns may take to end that were stopped: the agents' time, and that of what is stored."""

LAST_WORDS: Final = timedelta(seconds=1)
"""How long what they have left to say may take to be sent."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a gateway in order.

    A lost terminal is one of them, unless the program was told to outlive it, as by `nohup`.
    """
    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return tuple(one for one in ending if signal.getsignal(one) is not signal.SIG_IGN)


class Gateway(Resource):
    """Runs agents for conversations. `async with Gateway(store, agent=answer, adapters=[…])`.

    *agent* serves all sessions: an async function of one turn, or an object with `run_turn`. *agent_factory*
    makes one for each session, which is kept warm between turns. With *lanes*, it answers on these only: what
    waits on others, is owed there or was cut off is left as it is, for the gateway that serves them.
    """

    commands: CommandSet

    def __init__(
        self,
        store: SessionStore,
        *,
        agent: Agent | AgentFunction | None = None,
        agent_factory: AgentFactory | None = None,
        adapters: Iterable[Adapter] = (),
        agent_settings: AgentSettings | None = None,
        on_message: OnMessage | None = None,
        on_turn: OnTurn | None = None,
        after_turn: AfterTurn | None = None,
        commands: Iterable[Command] = (),
        allowed: Allowed | None = None,
        compressor: Compressor | None = None,
        lanes: Iterable[str] | None = None,
    ) -> None:
        super().__init__("gateway")
        check_is("store", store, SessionStore, _NO_STORE)
        self.store = store
        self.config: Config = store.config
        self._clock = store.clock
        self._source = AgentSource(agent=agent, agent_factory=agent_factory)
        if agent_settings is not None:
            check_function("agent_settings", agent_settings, "give a function of a session's entry")
        self._settings = agent_settings
        self._only = None if lanes is None else frozenset(each_of("lanes", lanes, str, _NO_LANES))
        self._adapters = by_account(adapters_of(adapters))
        self.commands = CommandSet(built_in(compressor), commands, allowed=allowed, unknown=self._unknown())
        """What people can ask for with a slash."""
        self._busy = self.config.busy_book()
        self._observers = Observers(
            self._clock, on_message=on_message, on_turn=on_turn, after_turn=after_turn
        )
        self.draining: bool = False
        """Whether it is about to end: it begins no more turns."""
        self._turn_tasks, self._calls = TurnTasks("gateway"), OpenCalls("gateway")
        self.events: Events = store.events
        """What happens here, for whoever listens."""
        self._connections = Connections(self._clock, self.events)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self._connections.tried()
        return self

    # What comes in

    async def submit(self, message: InboundMessage) -> Receipt:
        """Take a message in. Once this returns `Accepted`, it is durable and will be answered.

        What it does to a turn that runs already is a matter of the lane's busy mode.
        """
        self._check_running()
        check_message(message)
        with self._calls.one():
            return await self._seen(message)

    async def _seen(self, message: InboundMessage) -> Receipt:
        if not self._observers.see_messages:
            return await self._taken(message)
        key = self.store.key_for(message.source)
        async with self._observers.line(key, message):
            seen = await self._observers.seen(message, key)
            if isinstance(seen, InboundMessage):
                return await self._taken(seen)
            receipt = await queue_of(self.store).refuse(message, seen)
            self._tell_of(message, receipt)
            return receipt

    async def _taken(self, message: InboundMessage) -> Receipt:
        if message.kind is not MessageKind.NEW:
            return await self._changes.apply(self.commands.as_meant(message))
        if not self._is_for_us(message):
            return rejected(RejectReason.NOT_ADDRESSED, None, None)
        if self.commands.knows(message):
            return await self._commands.run(message)
        return await self.admit(message)

    def _unknown(self) -> Command | None:
        """What answers for names that no command has; None: they are text for the agent."""
        return UNKNOWN if self.config.gateway.unknown_commands is UnknownCommands.ANSWER else None

    def _is_for_us(self, message: InboundMessage) -> bool:
        """Whether a message is no command for another account, where several are in one chat."""
        adapter = self._adapters.get((message.source.platform, message.account))
        return adapter is None or adapter.capabilities.is_called(message.addressee)

    async def admit(self, message: InboundMessage, *, solo: bool = False) -> Receipt:
        """Take a message in for the agent, even if it looks like a command; *solo*: for a turn of its own."""
        self._check_running()
        check_message(message)
        with self._calls.one():
            receipt = await self._admitted(message, solo=solo)
            self._tell_of(message, receipt, solo=solo)
            return receipt

    async def command(self, source: SessionSource, text: str) -> str | None:
        """Carry out what that person could have typed, and return the answer; it is sent to nobody."""
        self._check_running()
        with self._calls.one():
            return await self._commands.ask(source, text)

    async def drain(self, within: timedelta | None = None) -> bool:
        """Begin no more turns, and wait for those that run and for replies on their way; False if too late.

        Turns that take longer than *within* (else the configuration's) are stopped, and go on after the
        next start; each of these ends counts as a try. An agent that resists is left alone after a few
        seconds, and nobody hears it any more.
        """
        self._check_running()
        self.draining = self._commands.draining = True
        self._lanes.stop()
        limit = self.config.gateway.drain_timeout if within is None else within
        in_time = await self._lanes.calm_within(limit, self._at_rest)
        why = StopReason.HANDOVER if self.store.drain_requested.is_set() else StopReason.SHUTDOWN
        for running in list(self._lanes.running.values()):
            running.stop(why)
        await self._lanes.calm_within(TO_STOP, lambda: not self._lanes.running)
        if not in_time:
            await self._say_last_words()
        return in_time

    async def _say_last_words(self) -> None:
        """Let what is on its way, or stopped turns have left to say, be sent: else nobody knows if it was.

        In real time: that is what platforms take, and a clock that stands still must not keep a process.
        """
        with anyio.move_on_after(LAST_WORDS.total_seconds()):
            while not all(delivery.idle for delivery in self._deliveries.values()):
                await self._lanes.calmer()

    async def run(self, *, until: Awaitable[object] | None = None) -> bool:
        """Serve until SIGTERM, SIGINT or SIGHUP, or until another process wants the store; then drain.

        When *until* is done, as at the end of all input, what was said is still answered.
        """
        self._check_running()
        async with anyio.create_task_group() as tasks:

            async def until_signal() -> None:
                with anyio.open_signal_receiver(*ending_signals()) as signals:
                    async for received in signals:
                        logger.info("asked to end", extra={"action": "signal", "signal": received.name})
                        tasks.cancel_scope.cancel()

            async def until_wanted() -> None:
                await self.store.drain_requested.wait()
                tasks.cancel_scope.cancel()

            async def until_done(awaited: Awaitable[object]) -> None:
                await awaited
                await self.settled()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_signal)
            tasks.start_soon(until_wanted)
            if until is not None:
                tasks.start_soon(until_done, until)
        return await self.drain()

    @property
    def busy(self) -> bool:
        """Whether a turn runs or waits here, or a reply is being sent."""
        self._check_running()
        return bool(self._lanes.waiting) or not self._at_rest()

    async def settled(self) -> None:
        """Wait until no turn runs or waits here and nothing is being sent, as when all input has ended."""
        while self.busy:
            await self._lanes.calmer()

    def look_again(self) -> None:
        """Look at once for turns and replies that are due, as after the clock was set."""
        self._check_running()
        self._lanes.wake()
        self._wake_deliveries()

    def running_turn(self, session_key: str) -> RunningTurn | None:
        """The turn that runs on a lane in this process."""
        self._check_running()
        return self._lanes.running.get(session_key)

    def rules_for(self, message: InboundMessage) -> BusyRules:
        """The configuration's rules for a message that finds its lane busy; its session may have a mode."""
        return self._busy.rules_for(message.source.platform, message.source.chat_type)

    # Inside

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        config = self.config
        ledger = queue_of(self.store)
        self._cluster = parts_of(self.store).cluster
        if self._only is None:
            await self.store.adopt_lanes(self._adapters)
        self._lanes = self._scheduler()
        self._remote_turns = RemoteTurns(self._lanes, ledger, self.store.db, self._cluster)
        self.agents: AgentCache = AgentCache(tasks, self._clock, config.agent_cache)
        self.store.control.agents.attach(self.agents)
        self._hints = Hints(self._clock, Pauses(self._clock))
        self._deliveries = {account: self._delivery(adapter) for account, adapter in self._adapters.items()}
        self._queue_news = QueueNews(
            self._lanes,
            self._deliveries.values(),
            self._cluster,
            wants_versions=self._source.shared is None,
        )
        ledger.attach(self._queue_news)
        self._notices = Notices(tasks, self._clock, self._adapters, self._hints)
        await self._start_those_who_ask(tasks, cleanup)
        watchdog = Watchdog(tasks, self._clock, config.gateway.inactivity_timeout, self._hints)
        parts = self._turn_parts(watchdog)
        answers = Answers(ledger, parts.delivery_for)
        self._commands = Commands(self, tasks, answers, self._tell_of, self._lanes.wake_watchers)
        self._changes = Changes(ledger, tell_running=self._remote_turns.tell, on_rewritten=self.agents.evict)
        self._runner = TurnRunner(parts, self._lanes, self.events)
        cleanup.callback(self._lanes.wake_watchers)  # whoever waits for calm learns that it has ended
        await ledger.put_aside_stale(self._only)
        deliveries = [delivery.run for delivery in self._deliveries.values()]
        # The crew comes first: all others may begin turns.
        for duty in (self._turn_tasks.run, self._lanes.run, self.agents.run, watchdog.run, *deliveries):
            tasks.start_soon(duty)
        if self._cluster is not None:
            self._cluster.attach(ClusterNews(self._lanes, self._remote_turns, self._deliveries.values()))
            tasks.start_soon(self._remote_turns.run)
        # Nothing is awaited from here on: an adapter that connects finds the gateway running.
        self._connections.start(tasks, self._adapters.values(), self.submit)

    def _scheduler(self) -> LaneScheduler:
        return LaneScheduler(
            queue_of(self.store),
            self._clock,
            max_turns=self.config.gateway.max_turns,
            max_turns_per_owner=self.config.gateway.max_turns_per_owner,
            start=self._begin,
            may_begin=self._is_trusted,
            only=self._only,
        )

    def _wake_deliveries(self) -> None:
        for delivery in self._deliveries.values():
            delivery.wake()

    async def _start_those_who_ask(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Whatever is asked before a turn, or tells of its end and that of its session."""
        self._budgets = BudgetGate(self.store, self.config.budgets, await in_thread(self.config.policy_book))
        self._observers.start(tasks)
        self._farewells = Farewells(
            store=self.store,
            source=self._source,
            cache=self.agents,
            budgets=self._budgets,
            settings=self._settings,
            limit=self.config.agent.farewell,
        )
        if self._only is None:  # else the last words to other people's agents would be said to this one
            self._farewells.start()
        cleanup.push_async_callback(self._farewells.finish)  # also if the gateway ends by a crash

    def _turn_parts(self, watchdog: Watchdog) -> TurnParts:
        return TurnParts(
            store=self.store,
            clock=self._clock,
            source=self._source,
            cache=self.agents,
            delivery_for=lambda platform, account: self._deliveries.get((platform, account)),
            goes_on=lambda running: not self.draining and self._lanes.goes_on(running),
            gate=self._may_run,
            over=self._turn_over,
            platforms=self._connections.platforms,
            settings=self._settings,
            timeout=self.config.agent.gateway_timeout,
            watchdog=watchdog,
            prompts=SystemPrompts(self.store),
            is_trusted=self._is_trusted,
        )

    async def _finish(self) -> None:
        if not self.draining:
            await self.drain()
        await self._calls.close(LAST_WORDS)
        await self._observers.finish()
        await self._farewells.finish()
        await self.agents.aclose()
        self._queue_news.end()
        self.store.control.agents.detach()

    async def _admitted(self, message: InboundMessage, *, solo: bool) -> Receipt:
        if self.draining:
            # What is durable is answered after the next start: a gateway that ends loses nothing.
            logger.debug("a message came while draining", extra={"action": "late_message"})
        with ExitStack() as held:
            receipt, turn = await queue_of(self.store).enqueue(
                message, None, solo=solo, here=self._lane_here(message, held)
            )
            if turn is not None and self.draining:  # since this was asked for
                await turn.release()
            elif turn is not None:
                self._begin(turn)
        if isinstance(receipt, Accepted):
            await self._remote_turns.follow_up(message, receipt)
        return receipt

    def _lane_here(self, message: InboundMessage, held: ExitStack) -> LaneHere:
        """What this process knows of a message's lane; *held* keeps the place of a turn that may begin."""
        ledger, key = queue_of(self.store), self.store.key_for(message.source)

        def running() -> LaneTurn:
            found = self._lanes.running.get(key)
            return found.facts if found is not None else NO_TURN

        def begins() -> bool:
            if key in self._lanes.running:
                return False
            elsewhere = self._cluster is not None and not self._cluster.begins_here(key)
            free = held.enter_context(self._lanes.place(ledger.owner_on(key, message.source)))
            return free and self._lanes.may_begin_on(key, elsewhere=elsewhere)

        return LaneHere(running, begins, partial(self._lanes.in_line_since, key))

    async def _may_run(self, turn: Turn) -> TurnAdmission:
        passage = await self._observers.gate(turn)
        return await self._budgets(turn) if passage.allowed else passage

    def _turn_over(self, turn: Turn, outcome: TurnOutcome) -> None:
        self._budgets.over(turn, outcome)
        self._observers.over(turn, outcome)

    def _is_trusted(self) -> bool:
        """Whether no other node can have taken this one's turns over."""
        return self._cluster is None or self._cluster.trusted

    def _begin(self, turn: Turn) -> None:
        running = self._runner.begin(turn)
        self._turn_tasks.start(self._runner.run(running))

    def _tell_of(self, message: InboundMessage, receipt: Receipt, *, solo: bool = False) -> None:
        """Events, and what people are told at once; who wants a turn of its own is told by the command."""
        match receipt:
            case Duplicate():
                self.events.emit(EventKind.MESSAGE_DUPLICATE, receipt.session_key, seq=receipt.seq)
            case Rejected():
                self.events.emit(EventKind.MESSAGE_REJECTED, receipt.session_key, reason=str(receipt.reason))
                if receipt.reason is not RejectReason.ERASED:
                    self._notices.refused(message, receipt)
            case Accepted():
                kind = (
                    EventKind.MESSAGE_MERGED
                    if receipt.merged_into is not None
                    else EventKind.MESSAGE_ACCEPTED
                )
                where = (receipt.session_key, receipt.session_id)
                self.events.emit(kind, *where, seq=receipt.seq, disposition=str(receipt.disposition))
                for seq in receipt.dropped:
                    self.events.emit(EventKind.MESSAGE_DROPPED, *where, seq=seq)
                rules = self.rules_for(message)
                self._notices.accepted(message, receipt, replace(rules, acknowledge=False) if solo else rules)

    def _at_rest(self) -> bool:
        working = self._lanes.running or self._lanes.beginning or self._commands.under_way
        return not working and all(delivery.idle for delivery in self._deliveries.values())

    def _delivery(self, adapter: Adapter) -> Delivery:
        patience = Patience(rules=self.config.delivery.rules, timeout=self.config.delivery.timeout)
        return Delivery(
            self.store.db,
            adapter,
            self._clock,
            patience,
            self._reply_settled,
            self._hints,
            lanes=self._only,
            alone=self._cluster is None,
            on_idle=self._lanes.wake_watchers,
            command_names=self.commands.names,
        )

    def _reply_settled(self, reply: OwedReply, how: str) -> None:
        kind = EventKind.REPLY_SENT if how == "sent" else EventKind.REPLY_GIVEN_UP
        self.events.emit(kind, reply.session_key, reply.session_id, reply_id=reply.reply_id)
