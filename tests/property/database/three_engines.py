"""Three stores that are used as if they were one, and have to answer alike at every step.

Ids and the names of sessions differ by chance: they are called by the order in which each store first told
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from functools import partial
from inspect import iscoroutine
from typing import Any

import msgspec

from gateway_sessions import SessionStore, Turn
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Transaction
from gateway_sessions.storage.transactions.upkeep import copy_store

IDS_BEGIN = 1 << 60
"""Above all numbers that mean something."""
SESSION_ID = re.compile(r"\b\d{8}_\d{6}_[0-9a-f]+\b")
TABLES = ("inbox", "lanes", "entries", "clocks", "transitions", "messages", "message_versions", "outbox")
"""What is compared whole, in an order in which ids are first seen."""
NAMED_BY_SESSION = ("sessions", "totals")
"""What stands in the order of ids that differ."""
OF_A_TURN = ("session_key", "seqs", "messages", "attempt", "waiting", "entry")
MANY = 10_000


class Together:
    """What three stores have given for one question, if it is not the same value."""

    __slots__ = ("_each",)

    def __init__(self, each: Sequence[Any]) -> None:
        self._each = tuple(each)

    @property  # type: ignore[misc]  # so that it counts as what it stands for
    def __class__(self) -> type:
        return type(self._each[0])

    def __getattr__(self, name: str) -> Any:
        return combine_answers([getattr(one, name) for one in self._each])

    def __call__(self, *given: Any, **named: Any) -> Any:
        answers = [
            one(
                *(argument_for(it, at) for it in given),
                **{name: argument_for(it, at) for name, it in named.items()},
            )
            for at, one in enumerate(self._each)
        ]
        return Calls(answers) if all(map(iscoroutine, answers)) else combine_answers(answers)

    def __getitem__(self, key: Any) -> Any:
        return combine_answers([one[argument_for(key, at)] for at, one in enumerate(self._each)])

    def __iter__(self) -> Iterator[Any]:
        return map(combine_answers, zip(*self._each, strict=True))

    def __len__(self) -> int:
        (length,) = {len(one) for one in self._each}
        return length

    def __bool__(self) -> bool:
        (answer,) = {bool(one) for one in self._each}
        return answer

    def __eq__(self, other: object) -> bool:
        return all(one == argument_for(other, at) for at, one in enumerate(self._each))

    def __hash__(self) -> int:
        return hash(self._each)


class Calls:
    """The same call to three stores, which nobody has awaited yet."""

    def __init__(self, each: Sequence[Coroutine[Any, Any, Any]]) -> None:
        self.each = each


def argument_for(given: Any, at: int) -> Any:
    """What one of the stores is given."""
    if type(given) is partial:
        return partial(given.func, *(argument_for(one, at) for one in given.args))
    return object.__getattribute__(given, "_each")[at] if type(given) is Together else given


def combine_answers(each: Sequence[Any]) -> Any:
    """Three values as one."""
    first = each[0]
    same = all(type(one) is type(first) and one == first for one in each)
    return first if same else Together(each)


class Names:
    """What a store calls something, and what all of them call it."""

    def __init__(self) -> None:
        self._known: dict[object, str] = {}

    def without_chance(self, told: object) -> Any:
        """An answer without what differs by chance, and without types."""
        match told:
            case int() if told >= IDS_BEGIN:
                return self._name("id", told)
            case str():
                return SESSION_ID.sub(lambda found: self._name("session", found[0]), told)
            case GatewaySessionsError():
                return type(told).__name__
            case None | bool() | int() | float() | datetime() | timedelta():
                return told
            case _:
                return self._plain_parts(told)

    def _plain_parts(self, told: object) -> Any:
        match told:
            case Mapping():
                return {self.without_chance(name): self.without_chance(one) for name, one in told.items()}
            case Set():
                return sorted(map(repr, map(self.without_chance, told)))
            case Sequence():
                return [self.without_chance(one) for one in told]
            case _:
                return {name: self.without_chance(getattr(told, name)) for name in _fields_of(told)}

    def _name(self, kind: str, told: object) -> str:
        return self._known.setdefault(told, f"<{kind} {len(self._known)}>")


def _fields_of(told: object) -> Sequence[str]:
    if isinstance(told, Turn):
        return OF_A_TURN
    if isinstance(told, msgspec.Struct):
        return told.__struct_fields__
    if is_dataclass(told):
        return [one.name for one in fields(told) if one.compare]
    return ()


class Compared:
    """Lets three stores do the same, one after the other, and finds where they differ."""

    def __init__(self, engines: Sequence[str]) -> None:
        self.engines = engines
        self.names = [Names() for _ in engines]

    def forget_names(self) -> None:
        """Call everything anew from here on.

        A process on a clock that was set back may give the id of a row that was removed to another one.
        """
        self.names = [Names() for _ in self.engines]

    async def answer(self, calls: Calls) -> Any:
        """What all of them answer, or the error that all of them raise."""
        answers = [await _outcome_of(call) for call in calls.each]
        told = [names.without_chance(one) for names, one in zip(self.names, answers, strict=True)]
        self._check_same("answer", told)
        if isinstance(answers[0], GatewaySessionsError):
            raise answers[0]
        return combine_answers(answers)

    async def compare_stored_rows(self, stores: Together) -> None:
        """See that all that is stored is the same."""
        for table in (*TABLES, *NAMED_BY_SESSION):
            rows = [await _rows_of(argument_for(stores, at), table) for at, _ in enumerate(self.engines)]
            told = [names.without_chance(one) for names, one in zip(self.names, rows, strict=True)]
            if table in NAMED_BY_SESSION:
                told = [sorted(one, key=repr) for one in told]
            self._check_same(f"have stored {table}", told)

    def _check_same(self, what: str, told: Sequence[Any]) -> None:
        for engine, one in zip(self.engines[1:], told[1:], strict=True):
            if one == told[0]:
                continue
            pairs = zip(one, told[0], strict=False) if isinstance(one, list) else [(one, told[0])]
            first = next((pair for pair in pairs if pair[0] != pair[1]), (one, told[0]))
            problem = f"{engine} and {self.engines[0]} {what} differently: {first[0]!r} and {first[1]!r}"
            raise AssertionError(problem)


async def _outcome_of(call: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await call
    except GatewaySessionsError as error:
        return error


async def _rows_of(store: SessionStore, table: str) -> list[tuple[Any, ...]]:
    page: Callable[[], Transaction[copy_store.TablePage]] = partial(
        copy_store.load_table_page, table, copy_store.BEGINNINGS[table], MANY
    )
    return [tuple(row) for row in (await store.db.read(page)).rows]
