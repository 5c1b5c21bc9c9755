"""`Draft`: a configuration while it is read, with its plain values, their lines, and the problems so far."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, TypeAlias, cast

from gateway_sessions.errors import ConfigError, ConfigProblem

KeyPath: TypeAlias = tuple[str | int, ...]

MAX_DEPTH: Final = 32
MAX_VALUES: Final = 20_000
MAX_PROBLEMS: Final = 100
MAX_KEY_SHOWN: Final = 160
MAX_NUMBER: Final = 2**63
ROOT_NAME: Final = "configuration"

_PLAIN_KEY = re.compile(r"[\w-]+", re.ASCII)
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(slots=True)
class Draft:
    """Collects problems instead of raising them, so that all are told at once."""

    origin: str
    values: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    variables: dict[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    """The environment variable that has set the value at a path, in words."""
    problems: list[ConfigProblem] = field(default_factory=list[ConfigProblem])
    unresolved: dict[KeyPath, ConfigProblem] | None = None
    """Problems of values that name variables that are not set, to be reported where the values are used. With
    None, they are reported at once."""
    set_aside: set[KeyPath] = field(default_factory=set[KeyPath])
    """Paths of refused values: further problems there would only follow from the first."""

    def add_problem_at(self, path: KeyPath, message: str, suggestion: str | None = None) -> None:
        """Add a problem of the value at that path. No message may show a value, which may be a secret."""
        self.add_problem(self.problem_at(path, message, suggestion))

    def problem_at(self, path: KeyPath, message: str, suggestion: str | None = None) -> ConfigProblem:
        """Return a problem of the value at that path, with the line or variable that has set the value."""
        where, line = dotted_path(path), None
        for length in range(len(path), 0, -1):
            place = path[:length]
            if place in self.variables:
                where = self.variables[place]
                break
            if place in self.lines:
                line = self.lines[place]
                break
        return ConfigProblem(where, message, line if path else self.lines.get(()), suggestion)

    def add_problem(self, problem: ConfigProblem) -> None:
        """Add a problem, unless it is there already or there are too many."""
        if len(self.problems) < MAX_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def reject_value(self, path: KeyPath, message: str) -> None:
        """Add a problem of a value that cannot be read, and refuse the value."""
        self.add_problem_at(path, message)
        self.set_aside.add(path)

    def remove_value(self, path: KeyPath) -> None:
        """Remove the value at that path, if it is there; a list is removed as a whole."""
        path = tuple(takewhile(lambda key: isinstance(key, str), path))
        self.set_aside.add(path)
        with suppress(KeyError, TypeError):
            block = self.values
            for key in path[:-1]:
                block = block[key]
            del block[path[-1]]

    def raise_problems(self) -> None:
        """Raise `ConfigError` if anything is wrong, in the order of the file."""
        if self.problems:
            ordered = sorted(self.problems, key=lambda one: (one.line is None, one.line or 0))
            raise ConfigError(self.origin, ordered)


def dotted_path(path: KeyPath) -> str:
    """Return the path as people write it: `platforms.telegram.chat_types`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            shown = key[:MAX_KEY_SHOWN]
            text += ("." if text else "") + (shown if _PLAIN_KEY.fullmatch(shown) else json.dumps(shown))
    return text or ROOT_NAME


def copy_to_plain_values(draft: Draft) -> None:
    """Replace the draft's values by a bounded copy of plain dicts, lists and scalars."""
    copied = _Copier(draft).copy(draft.values, ())
    if copied is None or () in draft.set_aside:
        copied = {}
    if not isinstance(copied, dict):
        draft.add_problem_at((), "must be a block of keys")
        copied = {}
    draft.values = copied


class _Copier:
    """Copies values within bounds: YAML aliases may nest values without end, or multiply them."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._left = MAX_VALUES

    def copy(self, value: object, path: KeyPath) -> Any:
        self._left -= 1
        if self._left < 0:
            self._draft.reject_value((), f"holds more than {MAX_VALUES} values")
        elif len(path) > MAX_DEPTH:
            self._draft.reject_value(path[:1], f"is nested more than {MAX_DEPTH} levels deep")
        elif isinstance(value, Mapping):
            return self._copy_block(cast("Mapping[object, object]", value), path)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            sequence = cast("Sequence[object]", value)
            return [self.copy(one, (*path, index)) for index, one in enumerate(sequence)]
        elif isinstance(value, str) and _UNUSABLE.search(value):
            self._draft.reject_value(path, "must be text of one line without control characters")
        elif isinstance(value, int) and abs(value) >= MAX_NUMBER:
            self._draft.reject_value(path, "is too large a number")
        else:
            return value
        return None

    def _copy_block(self, block: Mapping[object, object], path: KeyPath) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, value in block.items():
            if not isinstance(key, str) or not key or _UNUSABLE.search(key):
                self._draft.add_problem_at(path, "holds a key that is no text of one line")
            else:
                copied[key] = self.copy(value, (*path, key))
        return copied
