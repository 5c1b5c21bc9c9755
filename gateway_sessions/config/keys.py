"""The declaration of keys: each one stands on the field of the record that holds its value.

The field gives the name, the default and, in the docstring below it, the description; `key` adds the kind of
value. Reading, typed errors, `config explain`, the example and the reference are made from these
declarations. A program that reads no file loads neither YAML nor a validator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast

from msgspec import Struct

from gateway_sessions.config.kinds import Kind
from gateway_sessions.errors import ConfigError, ConfigProblem

T = TypeVar("T")
Contradiction: TypeAlias = tuple[str, str]
"""A key, and the reason why its value contradicts others; the reason names the other keys."""

_KIND: Final = "kind"


class ConfigKey(Struct, frozen=True):
    """One key of a block."""

    name: str
    """The name in a file."""
    field: str
    """The name of the record's field."""
    kind: Kind
    required: bool = False


class Block(Kind, frozen=True):
    """A kind of value: the keys that make one record together."""

    record: Callable[..., Any]
    keys: tuple[ConfigKey, ...] = ()
    words: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    """Words that may replace the block, and the keys that each stands for."""
    word_of: str | None = None
    """The key whose value alone may replace the block."""
    inherits: bool = False
    """Whether keys that the block does not set come from the same block of the level above."""

    def _reference_name(self) -> str:
        return "block or word" if self.words else "block"

    def keys_for_word(self, word: object) -> Mapping[str, object] | None:
        """Return the keys that a word stands for; None if it stands for none."""
        if not isinstance(word, str):
            return None
        return {self.word_of: word} if self.word_of else self.words.get(word)

    def find_key(self, name: object) -> ConfigKey | None:
        """Return the key of that name."""
        return next((one for one in self.keys if one.name == name), None)


class NamedBlocks(Kind, frozen=True):
    """A kind of value: blocks under names that people choose."""

    block: Block


def key(kind: Kind, default: T) -> T:
    """Declare the field of a record as a key: its name is the field's name with the unit of the kind."""
    return field(default=default, repr=not kind.secret, metadata={_KIND: kind})


def block(record: type[T], kind: Block | None = None) -> T:
    """Declare the field of a record as a block; without *kind*, the fields of its record declare its keys."""
    return field(default_factory=record, metadata={_KIND: kind or block_of_record(record)})


def named_blocks(record: type[T]) -> Mapping[str, T]:
    """Declare the field of a record as blocks under names that people choose."""
    return field(default_factory=dict[str, T], metadata={_KIND: NamedBlocks(block_of_record(record))})


@cache
def keys_of_record(record: Callable[..., object]) -> tuple[ConfigKey, ...]:
    """Return the keys that the fields of a record declare."""
    declared = [(one.name, one.metadata[_KIND]) for one in fields(cast("Any", record)) if one.metadata]
    return tuple(ConfigKey(f"{name}{kind.suffix}", name, kind) for name, kind in declared)


def block_of_record(record: Callable[..., object], *, word_of: str | None = None) -> Block:
    """Return the block of a record whose fields declare its keys."""
    return Block(record, keys_of_record(record), word_of=word_of)


def kind_below(kind: Kind | None, name: object) -> Kind | None:
    """Return the kind of values under a name; None if there can be none."""
    match kind:
        case Block():
            found = kind.find_key(name)
            return found.kind if found else None
        case NamedBlocks():
            return kind.block if name else None
        case _:
            return None


def value_paths(kind: Kind, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every value, in the order of the reference; `*` stands for any name."""
    match kind:
        case Block():
            for one in kind.keys:
                yield from value_paths(one.kind, (*above, one.name))
        case NamedBlocks():
            yield from value_paths(kind.block, (*above, "*"))
        case _:
            yield above


class Section:
    """A record of a configuration, which checks each of its values and that they fit together."""

    __slots__ = ()
    section: ClassVar[str] = ""
    """The key of the block; empty for the whole configuration."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for values that a file could not set."""
        above = f"{self.section}." if self.section else ""
        wrong = [
            (one.name, one.kind.check_value(getattr(self, one.field)))
            for one in keys_of_record(cast("Any", type(self)))
        ]
        problems = [
            ConfigProblem(f"{above}{name}", one.message, None, one.suggestion) for name, one in wrong if one
        ]
        if not problems:
            problems = [ConfigProblem(f"{above}{name}", why) for name, why in self.contradictions()]
        if problems:
            raise ConfigError(self.section or "configuration", problems)

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield the values that contradict others."""
        return iter(())
