"""`Gateway`: takes messages from adapters, runs an agent for each turn, and sends replies."""

from __future__ import annotations

import logging
import signal
from collections.abc import Awaitable, Iterable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Final, Self

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._process.background import OpenCalls, Resource
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.config import Config, UnknownCommands
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import InboundMessage, Receipt
from gateway_sessions.runtime.agents.cache import AgentCache, AgentSettings
from gateway_sessions.runtime.agents.protocol import Agent, AgentFactory, AgentFunction, AgentSource
from gateway_sessions.runtime.delivery.delivery import NoticeWords
from gateway_sessions.runtime.delivery.notice_wording import Wording
from gateway_sessions.runtime.gateway.assembly import GatewayOptions, GatewayParts
from gateway_sessions.runtime.gateway.commands import built_in_commands
from gateway_sessions.runtime.gateway.commands.compression import Compressor
from gateway_sessions.runtime.gateway.commands.help import UNKNOWN
from gateway_sessions.runtime.gateway.commands.protocol import Allowed, Command, CommandSet
from gateway_sessions.runtime.gateway.connections import adapters_by_account
from gateway_sessions.runtime.gateway.observers import AfterTurn, Observers, OnMessage, OnTurn
from gateway_sessions.runtime.gateway.running_turn import RunningTurn, StopReason
from gateway_sessions.runtime.gateway.unprompted.questions import TurnAnswer
from gateway_sessions.runtime.gateway.unprompted.schedules import Schedules
from gateway_sessions.runtime.gateway.unprompted.speaking import SayReceipt, Target, Words
from gateway_sessions.runtime.observability.event_stream import Events
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.runtime.user_code import (
    GRACE,
    PATIENCE,
    check_adapters,
    check_function,
    check_instance,
    check_message,
    tuple_of,
)
from gateway_sessions.storage.files.threads import in_thread

logger: Final = logging.getLogger(__name__)

_NO_STORE: Final = "open one first: `async with SessionStore.open(path) as store`"
_NO_LANES: Final = "give a list of the keys of lanes, as `store.key_for` tells them"
TO_STOP: Final = GRACE + PATIENCE + timedelta(seconds=1)
"""The time in which stopped turns must end: that of their agents, and that of what is stored."""
LAST_WORDS: Final = timedelta(seconds=1)
"""The time that a gateway which ends gives to replies on their way."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a gateway in order.

    A lost terminal is one of them, unless the program was told to outlive it, as by `nohup`.
    """
    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return tuple(one for one in ending if signal.getsignal(one) is not signal.SIG_IGN)


def _checked_settings(agent_settings: AgentSettings | None) -> AgentSettings | None:
    if agent_settings is not None:
        check_function("agent_settings", agent_settings, "give a function of a session's entry")
    return agent_settings


class Gateway(Resource):
    """Runs agents for conversations. `async with Gateway(store, agent=answer, adapters=[…])`.

    *agent* serves all sessions: an async function of one turn, or an object with `run_turn`. *agent_factory*
    makes an agent for each session, which is kept warm between turns. With *lanes*, the gateway answers on
    these lanes only, and leaves all others to the gateway that serves them: what waits there, what is owed
    there, and turns that were cut off. *wording* gives notices other words, such as translations: it is
    called with a `Notice` and the `ReplyTarget` whom it goes to, and returns a text, or None for ours.
    """

    commands: CommandSet

    def __init__(  # noqa: PLR0913 -- a program names the few options that it needs
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
        wording: Wording | None = None,
    ) -> None:
        super().__init__("gateway")
        check_instance("store", store, SessionStore, _NO_STORE)
        self.store = store
        self.config: Config = store.config
        unknown = UNKNOWN if self.config.gateway.unknown_commands is UnknownCommands.ANSWER else None
        self.commands = CommandSet(built_in_commands(compressor), commands, allowed=allowed, unknown=unknown)
        """All slash commands."""
        self._observers = Observers(
            store.clock, on_message=on_message, on_turn=on_turn, after_turn=after_turn
        )
        self._options = GatewayOptions(
            source=AgentSource(agent=agent, agent_factory=agent_factory),
            settings=_checked_settings(agent_settings),
            adapters=adapters_by_account(check_adapters(adapters)),
            observers=self._observers,
            lanes=None if lanes is None else frozenset(tuple_of("lanes", lanes, str, _NO_LANES)),
            words=NoticeWords(wording=wording, command_names=self.commands.names),
        )
        self.draining: bool = False
        """Whether the gateway is about to end and begins no more turns."""
        self._calls = OpenCalls("gateway")
        self.events: Events = store.events
        """The events of the gateway and its store."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self._parts.connections.wait_until_tried()
        return self

    # What comes in

    async def submit(self, message: InboundMessage) -> Receipt:
        """Take a message in. Once this returns `Accepted`, the message is durable and will be answered.

        The lane's busy mode decides what the message does to a turn that runs already.
        """
        self._check_running()
        check_message(message)
        with self._calls.count_call():
            return await self._parts.intake.submit(message)

    async def admit(self, message: InboundMessage, *, solo: bool = False) -> Receipt:
        """Take a message in for the agent, even if it looks like a command; *solo*: for a turn of its own."""
        self._check_running()
        check_message(message)
        with self._calls.count_call():
            return await self._parts.intake.admit(message, solo=solo)

    async def command(self, source: SessionSource, text: str) -> str | None:
        """Carry out a command as if that person had typed it; return the answer, which is sent to nobody."""
        self._check_running()
        with self._calls.count_call():
            return await self._parts.commands.run_for_program(source, text)

    async def ask(
        self,
        message: InboundMessage,
        *,
        timeout: timedelta | None = None,  # noqa: ASYNC109 -- by the clock of the store, which a scope is not
    ) -> TurnAnswer:
        """Submit a message and wait for the answer of its turn, which is also sent to its place.

        A message that was asked before waits for the same answer, or gets it. `NotAcceptedError` if it is
        refused, `UnansweredError` if its turn fails, is stopped or is cancelled, and `TimeoutError` after
        *timeout*: the turn goes on all the same.
        """
        self._check_running()
        check_message(message)
        return await self._parts.unprompted.questions.ask(message, self.submit, within=timeout)

    # What the gateway says by itself

    async def say(
        self,
        target: Target,
        message: Words,
        *,
        when: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> SayReceipt:
        """Say something that answers no message. Once this returns, it is durable and will be sent.

        *target* is a name as a session's prompt gives it (`origin`, a platform with a home channel,
        `platform:chat_id`), the source of messages, or a reply's target; `UnknownTargetError` says what can
        be addressed. The session there, if there is one, remembers what was said. With *when* it waits for
        that time, through restarts as well. What was said under an *idempotency_key* is not said again.
        """
        self._check_running()
        with self._calls.count_call():
            return await self._parts.unprompted.speaker.say(
                target, message, when=when, idempotency_key=idempotency_key
            )

    async def cancel_said(self, said_id: str) -> bool:
        """Cancel a message that waits for its time, by the id of its receipt; False if its time has come."""
        self._check_running()
        with self._calls.count_call():
            return await self._parts.unprompted.speaker.cancel(said_id)

    @property
    def schedules(self) -> Schedules:
        """The schedules: what the gateway says or begins by itself, again and again or at a time."""
        self._check_running()
        return self._parts.unprompted.schedules

    # Its end

    async def drain(self, within: timedelta | None = None) -> bool:
        """Begin no more turns; wait for running turns and replies on their way. False if that took too long.

        Turns that take longer than *within* (else the configured time) are stopped, and go on after the next
        start; each such stop counts as a try. An agent that resists is abandoned after a few seconds.
        """
        self._check_running()
        self.draining = self._parts.commands.draining = True
        lanes = self._parts.lanes
        lanes.stop_beginning()
        limit = self.config.gateway.drain_timeout if within is None else within
        in_time = await lanes.wait_until_met(limit, self._is_at_rest)
        why = StopReason.HANDOVER if self.store.drain_requested.is_set() else StopReason.SHUTDOWN
        for running in list(lanes.running.values()):
            running.stop(why)
        await lanes.wait_until_met(TO_STOP, lambda: not lanes.running)
        if not in_time:
            await self._send_last_words()
        return in_time

    async def _send_last_words(self) -> None:
        """Let replies that are on their way be sent: else nobody would know whether they were.

        In real time, because platforms live in it, and a clock that stands still must not keep a process.
        """
        with anyio.move_on_after(LAST_WORDS.total_seconds()):
            while not self._has_sent_everything():
                await self._parts.lanes.wait_for_an_end()

    async def run(self, *, until: Awaitable[object] | None = None) -> bool:
        """Serve until SIGTERM, SIGINT or SIGHUP, or until another process wants the store; then drain.

        When *until* is done, for example at the end of all input, waiting messages are still answered.
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
        return bool(self._parts.lanes.waiting_turns) or not self._is_at_rest()

    async def settled(self) -> None:
        """Wait until no turn runs or waits here and no reply is being sent."""
        while self.busy:
            await self._parts.lanes.wait_for_an_end()

    def look_again(self) -> None:
        """Look for due turns and replies at once, for example after the clock was set."""
        self._check_running()
        self._parts.lanes.look_for_ready_turns()
        for delivery in self._parts.deliveries:
            delivery.look_for_due_replies()
        self._parts.unprompted.schedules.look_soon()

    def running_turn(self, session_key: str) -> RunningTurn | None:
        """Return the turn that runs on a lane in this process; None if none runs."""
        self._check_running()
        return self._parts.lanes.running.get(session_key)

    def is_connected(self, adapter: Adapter) -> bool:
        """Return whether an adapter is connected at this moment; one that is not connects again by itself."""
        self._check_running()
        return (adapter.platform, adapter.name) in self._parts.connections.accounts

    # Inside

    def _is_at_rest(self) -> bool:
        lanes = self._parts.lanes
        working = lanes.running or lanes.is_beginning or self._parts.commands.under_way
        return not working and self._has_sent_everything()

    def _has_sent_everything(self) -> bool:
        return all(delivery.is_idle for delivery in self._parts.deliveries)

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        store, queue, only = self.store, queue_of(self.store), self._options.lanes
        if only is None:
            await store.adopt_lanes(self._options.adapters)
        policies = await in_thread(self.config.policy_book)
        parts = self._parts = GatewayParts(self, self._options, policies, tasks)
        self.agents: AgentCache = parts.agents
        store.control.agents.attach(parts.agents)
        queue.attach_listener(parts.listener)
        self._observers.attach_tasks(tasks)
        if only is None:  # else this agent would get the farewells of sessions that others serve
            parts.farewells.register_hook()
        cleanup.push_async_callback(parts.farewells.unregister_hook)  # also if the gateway ends by a crash
        cleanup.callback(parts.lanes.notify_watchers)  # for tasks that wait for an end
        await queue.put_stale_turns_aside(only)
        parts.start_duties()
        # Nothing is awaited from here on: an adapter that connects finds the gateway running.
        parts.connections.connect_all(
            tasks, self._options.adapters.values(), self.submit, self.commands.help_entries
        )

    async def _finish(self) -> None:
        if not self.draining:
            await self.drain()
        await self._calls.close(LAST_WORDS)
        await self._observers.wait_until_told()
        await self._parts.farewells.unregister_hook()
        await self.agents.aclose()
        self._parts.listener.want_versions()
        self.store.control.agents.detach()
