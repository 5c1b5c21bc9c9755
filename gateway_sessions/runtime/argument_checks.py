"""Checks of arguments from untyped callers: each error says what was given and what is needed."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable
from typing import Final, NoReturn, TypeVar, cast

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery.outbound import AdapterCapabilities
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.errors import InvalidInputError

T = TypeVar("T")

_ADAPTER_DOES: Final = ("connect", "send", "edit", "typing")
_ADAPTER_SAYS: Final = {"platform": str, "name": str, "capabilities": AdapterCapabilities}


def shown(given: object) -> str:
    """What something is, without what is in it."""
    if given is None:
        return "None"
    return (
        f"the class {given.__qualname__}" if inspect.isclass(given) else f"a value of {type(given).__name__}"
    )


def refuse(what: str, given: object, rule: str) -> NoReturn:
    """Raise `InvalidInputError`: *what*, a subject and its verb, is something else than the *rule* says."""
    if inspect.iscoroutine(given):
        given.close()  # nobody will ever await it
    problem = f"{what} {shown(given)}; {rule}"
    raise InvalidInputError(problem)


def check_is(what: str, given: object, kind: type, rule: str) -> None:
    """Look whether it is of that kind; `InvalidInputError` if not."""
    if not isinstance(given, kind):
        refuse(f"{what} is", given, rule)


def check_function(what: str, given: object, rule: str, *, or_class: bool = False) -> None:
    """Look whether it can be called; a class can be as well, which makes one of it and does not do it."""
    if not callable(given) or (inspect.isclass(given) and not or_class):
        refuse(f"{what} is", given, rule)


def each_of(what: str, given: Iterable[T], kind: type, rule: str) -> tuple[T, ...]:
    """What was given of something of which there may be several. A text is none: it would be its letters."""
    several = cast("object", given)
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        refuse(f"{what} is", several, rule)
    each = tuple(given)
    for one in each:
        check_is(f"one of {what}", one, kind, rule)
    return each


def adapters_of(given: Iterable[Adapter]) -> tuple[Adapter, ...]:
    """The adapters that were given; `InvalidInputError` names what one of them lacks."""
    each = each_of("adapters", given, object, "give a list of adapters")
    for one in cast("tuple[object, ...]", each):
        lacks = [name for name in _ADAPTER_DOES if not callable(getattr(one, name, None))]
        lacks += [
            name for name, kind in _ADAPTER_SAYS.items() if not isinstance(getattr(one, name, None), kind)
        ]
        if inspect.isclass(one) or lacks:
            rule = f"it lacks {', '.join(lacks)}" if lacks else "give an object of it"
            refuse("one of adapters is", one, f"{rule}; see gateway_sessions.adapters.Adapter")
    return each


async def awaited(what: str, answer: Awaitable[T]) -> T:
    """The answer of foreign code; `InvalidInputError` if *what* it was of does not let itself be awaited."""
    if not inspect.isawaitable(answer):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        problem = f"{what} returned {shown(answer)} at once: write `async def`"
        raise InvalidInputError(problem)
    return await answer


def check_message(given: object) -> None:
    """Look whether it is a message."""
    check_is("what came in", given, InboundMessage, "give an InboundMessage, with its source and its text")


def check_text(what: str, given: object) -> None:
    """Look whether it is a text."""
    check_is(what, given, str, "give a str")
