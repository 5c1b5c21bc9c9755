"""Observers of the embedding program: asked before a message and a turn, called after a turn.

An observer is foreign code. It runs in a fresh context, for five seconds at most, and delays only the message
or turn that it is asked about. A failure is logged and counts as consent; the failure of an observer that
`fails_closed` counts as a refusal.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any, Final, Generic, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.core.notices.notice_texts import refusal_notice
from gateway_sessions.core.queue.inbound import InboundMessage, Rejected, RejectReason
from gateway_sessions.core.queue.state_machine import TurnOutcome
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.protocol import display_name_of
from gateway_sessions.runtime.gateway.running_turn import TurnAdmission
from gateway_sessions.runtime.keyed_locks import KeyedLocks
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.runtime.user_code import await_user_code, check_function, check_instance, problem_within

logger: Final = logging.getLogger(__name__)

TIMEOUT: Final = timedelta(seconds=5)
GRACE: Final = timedelta(seconds=1)
"""The time that an observer which took too long gets for its clean-up."""
AT_ONCE: Final = 64
"""The most calls of `after_turn` at the same time; for turns beyond that, the observer is not called."""

_AN_OBSERVER: Final = "give an async function of what is observed"

T = TypeVar("T")

Verdict: TypeAlias = str | bool | None
"""None or True: go on. A text: refuse, and say this. False: refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTurn:
    """A turn as observers see it."""

    entry: SessionEntry
    """The entry of the session as it was when the turn began."""
    messages: tuple[InboundMessage, ...]
    seq: int
    """The place of the turn on its lane."""
    attempt: int
    outcome: TurnOutcome | None = None
    """How the turn ended; None before its end."""


@dataclass(frozen=True, slots=True)
class Observer(Generic[T]):
    """An observer with a timeout of its own."""

    ask: Callable[[T], Awaitable[Any]]
    """The function that is called."""
    _: KW_ONLY
    timeout: timedelta = TIMEOUT
    fails_closed: bool = False
    """Whether its failure counts as a refusal."""

    def __post_init__(self) -> None:
        check_function("ask of an observer", self.ask, _AN_OBSERVER)
        check_instance("timeout of an observer", self.timeout, timedelta, "give a timedelta")
        if self.timeout <= timedelta():
            problem = "the timeout of an observer must be more than nothing"
            raise InvalidInputError(problem)


OnMessage: TypeAlias = (
    Callable[[InboundMessage], Awaitable[InboundMessage | Verdict]] | Observer[InboundMessage]
)
"""May also return another message of the same person in the same place, which is taken in instead."""
OnTurn: TypeAlias = Callable[[ObservedTurn], Awaitable[Verdict]] | Observer[ObservedTurn]
AfterTurn: TypeAlias = Callable[[ObservedTurn], Awaitable[object]] | Observer[ObservedTurn]


class Observers:
    """The observers of a gateway; each of them may be missing."""

    def __init__(
        self,
        clock: Clock,
        *,
        on_message: OnMessage | None = None,
        on_turn: OnTurn | None = None,
        after_turn: AfterTurn | None = None,
    ) -> None:
        self._clock = clock
        self._on_message: Observer[InboundMessage] | None = _as_observer("on_message", on_message)
        self._on_turn: Observer[ObservedTurn] | None = _as_observer("on_turn", on_turn)
        self._after_turn: Observer[ObservedTurn] | None = _as_observer("after_turn", after_turn)
        self._lines = KeyedLocks()
        self._tasks: TaskGroup | None = None
        self._deliveries = 0
        self._told = anyio.Event()

        self.see_messages: bool = on_message is not None
        """Whether an observer is asked about each message."""
        self.see_turns: bool = on_turn is not None
        """Whether an observer is asked about each turn."""
        self.see_endings: bool = after_turn is not None
        """Whether an observer is told of each turn that has ended."""

    @asynccontextmanager
    async def keep_order(self, session_key: str, message: InboundMessage) -> AsyncGenerator[None]:
        """Keep messages of one lane in order while the observer is asked; a command waits for nobody."""
        if message.command is not None:
            yield
            return
        async with self._lines.hold(session_key):
            yield

    async def ask_about_message(self, message: InboundMessage, session_key: str) -> InboundMessage | Rejected:
        """Return the message to take in, or the refusal."""
        observer = self._on_message
        if observer is None:
            return message
        verdict = await self._ask_in_time("on_message", observer, message, _check_message)
        if isinstance(verdict, InboundMessage):
            return verdict
        text = _refusal_text(verdict)
        if text is None:
            return message
        return Rejected(reason=RejectReason.NOT_ALLOWED, text=text, session_key=session_key)

    async def ask_about_turn(self, turn: Turn) -> TurnAdmission:
        """Return whether a turn may run."""
        if self._on_turn is None:
            return TurnAdmission()
        text = _refusal_text(
            await self._ask_in_time("on_turn", self._on_turn, _as_observed_turn(turn), _check_verdict)
        )
        return TurnAdmission() if text is None else TurnAdmission(allowed=False, notice=text)

    def attach_tasks(self, tasks: TaskGroup) -> None:
        """Call `after_turn` in *tasks* from now on."""
        self._tasks = tasks

    def tell_of_turn_end(self, turn: Turn, outcome: TurnOutcome) -> None:
        """Call `after_turn` for a turn that has ended, without waiting for it."""
        if self._after_turn is None or self._tasks is None:
            return
        if self._deliveries >= AT_ONCE:
            _report_failure("after_turn", f"{AT_ONCE} ended turns are being told of already")
            return
        self._deliveries += 1
        self._tasks.start_soon(self._tell_of_one, self._after_turn, _as_observed_turn(turn, outcome))

    async def wait_until_told(self) -> None:
        """Wait for all calls of `after_turn` that are under way."""
        while self._deliveries:
            self._told = anyio.Event()
            await self._told.wait()

    async def _tell_of_one(self, observer: Observer[ObservedTurn], turn: ObservedTurn) -> None:
        try:
            await self._ask_in_time("after_turn", observer, turn, _check_nothing)
        finally:
            self._deliveries -= 1
            self._told.set()

    async def _ask_in_time(
        self, what: str, observer: Observer[T], about: T, check: Callable[[T, Any], object]
    ) -> Any:
        """Return the answer of an observer; after a failure, the answer that a failure counts as."""
        answers: list[Any] = []

        async def ask() -> None:
            answer = await await_user_code(f"{what}, {display_name_of(observer.ask)},", observer.ask(about))
            check(about, answer)
            answers.append(answer)

        problem = await problem_within(observer.timeout, self._clock, ask, grace=GRACE)
        if problem is None:
            return answers[0]
        _report_failure(what, problem)
        return False if observer.fails_closed else None


def _as_observer(what: str, given: Callable[[T], Awaitable[Any]] | Observer[T] | None) -> Observer[T] | None:
    if given is None or isinstance(given, Observer):
        return given  # pyright: ignore[reportUnknownVariableType]  # it loses T, which `given` has
    check_function(what, given, f"{_AN_OBSERVER}, or an Observer")
    return Observer(given)


def _as_observed_turn(turn: Turn, outcome: TurnOutcome | None = None) -> ObservedTurn:
    return ObservedTurn(
        entry=turn.entry, messages=turn.messages, seq=turn.seq, attempt=turn.attempt, outcome=outcome
    )


def _refusal_text(verdict: Verdict) -> str | None:
    """Return the text of a refusal; None if nothing is refused."""
    if verdict is None or verdict is True:
        return None
    return verdict or refusal_notice(RejectReason.NOT_ALLOWED)


def _check_verdict(_: object, answer: object) -> None:
    if answer is not None and not isinstance(answer, bool | str):
        problem = f"an observer answered a value of {type(answer).__name__}"
        raise InvalidInputError(problem)


def _check_message(message: InboundMessage, answer: object) -> None:
    if not isinstance(answer, InboundMessage):
        _check_verdict(message, answer)
    elif (answer.source, answer.account, answer.idempotency_key) != (
        message.source,
        message.account,
        message.idempotency_key,
    ):
        problem = "an observer may change what was said, but not who said it where, nor its name"
        raise InvalidInputError(problem)


def _check_nothing(_: object, __: object) -> None:
    """Accept every answer: nobody reads what `after_turn` returns."""


def _report_failure(what: str, problem: str) -> None:
    logger.warning(
        "an observer failed", extra={"action": "observer_failed", "observer": what, "problem": problem}
    )
