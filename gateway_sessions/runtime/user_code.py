"""User code: checks of what a program hands over, and calls of it in a fresh context and in time.

Nobody waits for user code without end: a task that does not let itself be stopped is left alone, and nobody
hears of it any more.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import Context
from datetime import timedelta
from typing import Any, Final, Generic, NoReturn, TypeVar, cast

import anyio

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.errors import CancelledItselfError, InvalidInputError
from gateway_sessions.ports import Clock

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

MAX_PROBLEM: Final = 500
"""Characters of what foreign code says of its own failure."""
GRACE: Final = timedelta(seconds=5)
CANCEL_AGAIN_EVERY: Final = timedelta(seconds=0.1)
"""The pause between cancellations of work that goes on after its grace."""
PATIENCE: Final = timedelta(seconds=1)
"""The time for which such work is cancelled; work that has not ended by then is left alone."""

_left_alone: Final[set[asyncio.Task[None]]] = set()
"""Work that goes on although it was stopped: asyncio itself keeps no task alive."""

_ADAPTER_DOES: Final = ("connect", "send", "edit", "typing")
_ADAPTER_SAYS: Final = {"platform": str, "name": str, "capabilities": AdapterCapabilities}


def kind_in_words(given: object) -> str:
    """Return the kind of a value in words, without its content."""
    if given is None:
        return "None"
    return (
        f"the class {given.__qualname__}" if inspect.isclass(given) else f"a value of {type(given).__name__}"
    )


def raise_invalid_input(what: str, given: object, rule: str) -> NoReturn:
    """Raise `InvalidInputError`: *what*, a subject and its verb, is something else than the *rule* says."""
    if inspect.iscoroutine(given):
        given.close()  # nobody will ever await it
    problem = f"{what} {kind_in_words(given)}; {rule}"
    raise InvalidInputError(problem)


def check_instance(what: str, given: object, kind: type, rule: str) -> None:
    """Raise `InvalidInputError` unless the value is of that kind."""
    if not isinstance(given, kind):
        raise_invalid_input(f"{what} is", given, rule)


def check_function(what: str, given: object, rule: str, *, or_class: bool = False) -> None:
    """Raise `InvalidInputError` unless the value is a function; a class is none, unless *or_class*."""
    if not callable(given) or (inspect.isclass(given) and not or_class):
        raise_invalid_input(f"{what} is", given, rule)


def tuple_of(what: str, given: Iterable[T], kind: type, rule: str) -> tuple[T, ...]:
    """Return the given values as a tuple, each checked. A text is refused: it would be its letters."""
    several = cast("object", given)
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise_invalid_input(f"{what} is", several, rule)
    each = tuple(given)
    for one in each:
        check_instance(f"one of {what}", one, kind, rule)
    return each


def check_adapters(given: Iterable[Adapter]) -> tuple[Adapter, ...]:
    """Return the adapters as a tuple; `InvalidInputError` names what one of them lacks."""
    each = tuple_of("adapters", given, object, "give a list of adapters")
    for one in cast("tuple[object, ...]", each):
        lacks = [name for name in _ADAPTER_DOES if not callable(getattr(one, name, None))]
        lacks += [
            name for name, kind in _ADAPTER_SAYS.items() if not isinstance(getattr(one, name, None), kind)
        ]
        if inspect.isclass(one) or lacks:
            rule = f"it lacks {', '.join(lacks)}" if lacks else "give an object of it"
            raise_invalid_input("one of adapters is", one, f"{rule}; see gateway_sessions.adapters.Adapter")
    return each


async def await_user_code(what: str, answer: Awaitable[T]) -> T:
    """Await the answer of user code; `InvalidInputError` if *what* has answered cannot be awaited."""
    if not inspect.isawaitable(answer):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"{what} returned {kind_in_words(answer)} at once: write `async def`"
        raise InvalidInputError(problem)
    return await answer


def check_message(given: object) -> None:
    """Raise `InvalidInputError` unless the value is a message."""
    check_instance(
        "what came in", given, InboundMessage, "give an InboundMessage, with its source and its text"
    )


def check_text(what: str, given: object) -> None:
    """Raise `InvalidInputError` unless the value is a text."""
    check_instance(what, given, str, "give a str")


def call_user_code(what: str, function: Callable[..., T], *given: object) -> T:
    """Call a plain function at once; it sees no context variable of the caller.

    A cancellation that comes out of it is one of its own: nobody can cancel a plain function.
    """
    try:
        return Context().run(function, *given)
    except asyncio.CancelledError:
        raise CancelledItselfError(what) from None


async def run_in_fresh_context(
    what: str, work: Callable[[], Awaitable[T]], clock: Clock, *, grace: timedelta = GRACE
) -> T:
    """Run *work* in a task of its own that sees no context variable of the caller.

    If the caller is cancelled, *work* is cancelled once, and may clean up for as long as *grace*; then all
    that it awaits is cancelled, for as long as `PATIENCE`. *what* names it in `CancelledItselfError`, which
    is raised if it ends by a cancellation of its own.
    """
    outcome = _WorkOutcome[T]()
    task = _begin_outside_groups(outcome.run(work))
    try:
        await asyncio.wait({task})
    finally:
        await _stop_or_leave_alone(what, task, clock, grace)
    _raise_fatal(task)
    return outcome.result(what)


async def problem_within(
    limit: timedelta, clock: Clock, work: Callable[[], Awaitable[object]], *, grace: timedelta = GRACE
) -> str | None:
    """Run *work* in such a task, no longer than *limit*; return what went wrong, or None."""
    outcome = _WorkOutcome[object]()
    in_time = await _run_within(
        limit, f"work of at most {_limit_in_words(limit)}", outcome.run(work), clock, grace
    )
    return outcome.problem if in_time else f"took longer than {_limit_in_words(limit)}"


async def answer_within(
    limit: timedelta, what: str, work: Callable[[], Awaitable[T]], clock: Clock, *, grace: timedelta = GRACE
) -> T:
    """Run *work* in such a task, and return its answer; `TimeoutError` if it takes longer than *limit*."""
    outcome = _WorkOutcome[T]()
    if not await _run_within(limit, what, outcome.run(work), clock, grace):
        problem = f"{what} took longer than {_limit_in_words(limit)}"
        raise TimeoutError(problem)
    return outcome.result(what)


async def _run_within(
    limit: timedelta, what: str, work: Coroutine[Any, Any, None], clock: Clock, grace: timedelta
) -> bool:
    """Run *work* in a task of its own, and stop it at *limit*; return whether it ended by itself."""
    task = _begin_outside_groups(work)
    try:
        await _wait_for_first(task, clock.sleep(limit.total_seconds()))
        in_time = task.done()
    finally:
        await _stop_or_leave_alone(what, task, clock, grace)
    _raise_fatal(task)
    return in_time


def _limit_in_words(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"


def is_task_cancelled() -> bool:
    """Return whether the running task was cancelled; if not, a cancellation leaked out of what it called."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _WorkOutcome(Generic[T]):
    """The outcome of some work: none yet, and none for ever if the work cancels itself."""

    __slots__ = ("failure", "returned")

    def __init__(self) -> None:
        self.returned: list[T] = []
        self.failure: Exception | None = None

    async def run(self, work: Callable[[], Awaitable[T]]) -> None:
        """Do the work and note its end."""
        try:
            self.returned.append(await work())
        except Exception as error:  # noqa: BLE001 -- raised or told to whoever waits for the outcome
            self.failure = error

    def result(self, what: str) -> T:
        """Return the result of the work, or raise its failure, once."""
        if self.failure is not None:
            try:
                raise self.failure
            finally:
                self.failure = None  # or it would keep itself alive, by its traceback
        if not self.returned:
            raise CancelledItselfError(what)
        return self.returned[0]

    @property
    def problem(self) -> str | None:
        """The failure of the work in words; None if it ended well."""
        if self.failure is not None:
            return f"{type(self.failure).__name__}: {self.failure}"[:MAX_PROBLEM]
        return None if self.returned else "cancelled itself"


def _begin_outside_groups(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    # Not in a group of anyio's: it would cancel every await of a clean-up from the beginning. Nor in one of
    # asyncio's: it would wait for work that never ends.
    return asyncio.create_task(work, context=Context())  # noqa: TID251 -- waited for, or left alone on purpose


async def _stop_or_leave_alone(what: str, task: asyncio.Task[None], clock: Clock, grace: timedelta) -> None:
    """Stop a task that has not ended, first kindly; one that does not end even so is left alone."""
    if task.done():
        return
    interrupted: asyncio.CancelledError | None = None
    task.cancel()
    with anyio.CancelScope(shield=True):
        try:
            await _cancel_until_done(task, clock, grace)
        except asyncio.CancelledError as stopped_twice:  # then nobody has time for a clean-up
            interrupted = stopped_twice
            task.cancel()
            await _cancel_until_done(task, clock, timedelta())
    if not task.done():
        _leave_alone(what, task)
    if interrupted is not None:
        raise interrupted


async def _cancel_until_done(task: asyncio.Task[None], clock: Clock, grace: timedelta) -> None:
    """Wait for the end of a cancelled task; after its *grace* cancel it again and again, for a while."""

    async def cancel_again() -> None:
        await clock.sleep(grace.total_seconds())
        for _ in range(PATIENCE // CANCEL_AGAIN_EVERY):
            task.cancel()
            await clock.sleep(CANCEL_AGAIN_EVERY.total_seconds())

    await _wait_for_first(task, cancel_again())


async def _wait_for_first(task: asyncio.Task[None], ours: Coroutine[Any, Any, None]) -> None:
    """Wait until the task or something of our own has ended; ours is called off then."""
    async with asyncio.TaskGroup() as tasks:
        timer = tasks.create_task(ours)
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()


def _leave_alone(what: str, task: asyncio.Task[None]) -> None:
    _left_alone.add(task)
    task.add_done_callback(_left_alone.discard)
    logger.error("foreign code does not end and is left alone", extra={"action": "left_alone", "what": what})


def _raise_fatal(task: asyncio.Task[None]) -> None:
    """Raise an error of the task that is to end the whole program."""
    if task.done() and not task.cancelled() and (fatal := task.exception()) is not None:
        raise fatal
