"""The assembly of a gateway: it makes all parts in one place, each before those that are given it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from anyio.abc import TaskGroup

from gateway_sessions.adapters.protocol import Adapter, RememberingAdapter
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.runtime.agents.cache import AgentCache, AgentSettings
from gateway_sessions.runtime.agents.protocol import AgentSource
from gateway_sessions.runtime.delivery.adapter_memory import StoredMemory
from gateway_sessions.runtime.delivery.delivery import Delivery, NoticeWords, Patience, Pauses
from gateway_sessions.runtime.delivery.receipt_notices import Hints, ReceiptNotices
from gateway_sessions.runtime.gateway.budget_gate import BudgetGate
from gateway_sessions.runtime.gateway.commands.executor import CommandExecutor
from gateway_sessions.runtime.gateway.commands.protocol import CommandHost
from gateway_sessions.runtime.gateway.connections import Connections
from gateway_sessions.runtime.gateway.execution import TurnParts
from gateway_sessions.runtime.gateway.farewell import Farewells
from gateway_sessions.runtime.gateway.gateway_listener import GatewayListener
from gateway_sessions.runtime.gateway.intake import MessageIntake
from gateway_sessions.runtime.gateway.observers import Observers
from gateway_sessions.runtime.gateway.runner import TurnRunner, TurnTasks
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.gateway.turn_signals import TurnSignals
from gateway_sessions.runtime.gateway.unprompted.parts import UnpromptedParts
from gateway_sessions.runtime.gateway.watchdog import Watchdog
from gateway_sessions.runtime.queue.edits import EditListener
from gateway_sessions.runtime.queue.turn import GatewayTurn
from gateway_sessions.runtime.session_prompt import SystemPrompts
from gateway_sessions.runtime.store.open_store import parts_of, queue_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """The checked arguments of a gateway."""

    source: AgentSource
    settings: AgentSettings | None
    adapters: Mapping[tuple[str, str], Adapter]
    """By platform and account."""
    observers: Observers
    lanes: Collection[str] | None
    """The only lanes that the gateway answers on; None: all."""
    words: NoticeWords
    """The choice of words for notices."""


class GatewayParts:
    """All parts of an open gateway, each made after those that it is given; none works before `start`."""

    def __init__(
        self, host: CommandHost, options: GatewayOptions, policies: PolicyBook, tasks: TaskGroup
    ) -> None:
        store, config, clock = host.store, host.config, host.store.clock
        self._queue = queue = queue_of(store)
        self._cluster = parts_of(store).cluster
        self._host = host
        self._options = options
        self._tasks = tasks
        self.lanes: LaneScheduler = self._make_scheduler()
        self.turn_signals: TurnSignals = TurnSignals(self.lanes, queue, store.db, clock, self._cluster)
        self.agents: AgentCache = AgentCache(tasks, clock, config.agent_cache)
        self.connections: Connections = Connections(clock, host.events)
        self._pauses = Pauses(clock)
        self._hints = Hints(clock, self._pauses)
        self._watchdog = Watchdog(tasks, clock, config.gateway.inactivity_timeout, self._hints)
        for adapter in options.adapters.values():
            if isinstance(adapter, RememberingAdapter):
                adapter.remember_in(StoredMemory(store.db, adapter))
        self._by_account = {account: self._make_delivery(one) for account, one in options.adapters.items()}
        self.deliveries: Collection[Delivery] = self._by_account.values()
        self._budgets = BudgetGate(store, config.budgets, policies)
        self.turn_tasks: TurnTasks = TurnTasks("gateway")
        self._runner = TurnRunner(self._make_turn_parts(), host.events, self.turn_tasks)
        busy = config.busy_book()
        notices = ReceiptNotices(tasks, clock, self._by_account, self._hints, host.events, busy)
        self.commands: CommandExecutor = CommandExecutor(
            host, tasks, self._by_account, notices.tell_of_receipt, self.lanes.notify_watchers, busy
        )
        self.intake: MessageIntake = self._make_intake(notices)
        self.unprompted: UnpromptedParts = self._make_unprompted()
        self.farewells: Farewells = self._make_farewells()
        self.listener: GatewayListener = GatewayListener(
            self.lanes,
            self.deliveries,
            self.turn_signals,
            self._cluster,
            wants_versions=options.source.shared is None,
        )

    def start_duties(self) -> None:
        """Begin all duties. The tasks of turns come first, because every other duty may begin turns."""
        deliveries = [delivery.run for delivery in self.deliveries]
        own = [self.turn_tasks.run, self.lanes.run, self.agents.run, self._watchdog.run]
        duties = [*own, *deliveries, self.unprompted.schedules.run]
        for duty in duties:
            self._tasks.start_soon(duty)
        if self._cluster is not None:
            self._cluster.attach_listener(self.listener)
            self._tasks.start_soon(self.turn_signals.run)

    def _make_scheduler(self) -> LaneScheduler:
        options = self._host.config.gateway
        return LaneScheduler(
            self._queue,
            self._host.store.clock,
            max_turns=options.max_turns,
            max_turns_per_owner=options.max_turns_per_owner,
            start=self._start_turn,
            cluster=self._cluster,
            only=self._options.lanes,
        )

    def _start_turn(self, turn: GatewayTurn) -> None:
        self._runner.start_turn(turn)  # the runner needs the scheduler, so it is made after that

    def _make_delivery(self, adapter: Adapter) -> Delivery:
        store, rules = self._host.store, self._host.config.delivery
        return Delivery(
            store.db,
            adapter,
            store.clock,
            Patience(rules=rules.rules, timeout=rules.timeout),
            self._host.events,
            self._pauses,
            lanes=self._options.lanes,
            alone=self._cluster is None,
            on_idle=self.lanes.notify_watchers,
            words=self._options.words,
        )

    def _make_turn_parts(self) -> TurnParts:
        store, config = self._host.store, self._host.config
        observers, budgets = self._options.observers, self._budgets
        gates = [(observers.see_turns, observers.ask_about_turn), (budgets.has_limits, budgets.admit_turn)]
        listeners = [
            (budgets.has_limits, budgets.note_turn_end),
            (observers.see_endings, observers.tell_of_turn_end),
        ]
        return TurnParts(
            store=store,
            clock=store.clock,
            source=self._options.source,
            cache=self.agents,
            lanes=self.lanes,
            deliveries=self._by_account,
            hints=self._hints,
            gates=[gate for asks, gate in gates if asks],
            on_ended=[over for listens, over in listeners if listens],
            platforms=self.connections.platforms,
            settings=self._options.settings,
            timeout=config.agent.gateway_timeout,
            watchdog=self._watchdog,
            prompts=SystemPrompts(store.db),
        )

    def _make_intake(self, notices: ReceiptNotices) -> MessageIntake:
        return MessageIntake(
            self._host.store,
            self._queue,
            self._options.adapters,
            lanes=self.lanes,
            runner=self._runner,
            observers=self._options.observers,
            command_set=self._host.commands,
            commands=self.commands,
            edits=parts_of(self._host.store).edits,
            edit_listener=EditListener(self.turn_signals.tell_of_edit, self.agents.evict),
            turn_signals=self.turn_signals,
            notices=notices,
        )

    def _make_unprompted(self) -> UnpromptedParts:
        return UnpromptedParts(
            self._host,
            self._by_account,
            self.intake.admit,
            only=self._options.lanes,
            is_leaving=lambda: self.lanes.stopped,
        )

    def _make_farewells(self) -> Farewells:
        return Farewells(
            store=self._host.store,
            source=self._options.source,
            cache=self.agents,
            budgets=self._budgets,
            settings=self._options.settings,
            limit=self._host.config.agent.farewell,
        )
