"""The kinds of values: each reads a value of a file, checks it, writes it, and names itself in the reference.

The limits of a kind also hold for records that a program builds: no record can hold what a file could not
set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from gateway_sessions.config.zones import similar_zone
from gateway_sessions.core.checks import MAX_CONFIGURED_COUNT, duration_problem
from gateway_sessions.core.display_text import mask_url_secrets
from gateway_sessions.core.sessions.reset_times import zone_named
from gateway_sessions.core.usage.budgets import BudgetLimit
from gateway_sessions.errors import InvalidInputError, InvalidPolicyError, InvalidSourceError

_TYPES: Final = MappingProxyType[type, str](
    {
        bool: "true or false",
        int: "a number",
        float: "a decimal number",
        str: "text",
        list: "a list",
        dict: "a block",
        type(None): "null",
    }
)
_FLAGS: Final = MappingProxyType[str, tuple[str, ...]](
    {"true": ("true", "yes", "on", "y", "1"), "false": ("false", "no", "off", "n", "0")}
)
_SUFFIXES: Final = MappingProxyType({"milliseconds": "ms"})
"""Units that keys shorten."""
_LONGEST_WORD: Final = 80
"""The characters of a word that are compared with the choices: comparing takes time, and no choice is
longer."""


class ValueProblem(Struct, frozen=True):
    """A problem of one value. No message shows the value, which may be a secret."""

    message: str
    suggestion: str | None = None
    place: tuple[int, ...] = ()
    """The index of the wrong value in a list."""


def closest_choice(word: object, choices: Iterable[str]) -> str | None:
    """Return the choice that was probably meant, if any."""
    found = get_close_matches(str(word)[:_LONGEST_WORD].lower(), map(str, choices), n=1)
    return found[0] if found else None


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of value."""

    kind_name: str = ""
    """The name of the kind in the reference."""
    null: bool = False
    """Whether null is allowed."""
    secret: bool = False
    """Whether the value must not be shown."""

    def read_value(self, value: object) -> object:
        """Return the field's value for a value of a file, or a `ValueProblem`."""
        if value is None and self.null:
            return None
        found = self._read(value)
        return (
            self._mention_null(found) if isinstance(found, ValueProblem) else self.check_value(found) or found
        )

    def check_value(self, value: object) -> ValueProblem | None:
        """Return the problem of a value of a record's field, if there is one."""
        found = None if value is None and self.null else self._check(value)
        return self._mention_null(found) if found else None

    def as_written(self, value: object) -> object:
        """Return a field's value as a file writes it."""
        return value

    def mask_secrets(self, text: str) -> str:
        """Return the text of a value without secrets."""
        return "***" if self.secret else mask_url_secrets(text)

    @property
    def suffix(self) -> str:
        """The unit that the key has behind the name of the field."""
        return ""

    @property
    def reference_text(self) -> str:
        """The name and the limits of the kind in the reference."""
        name = self._reference_name()
        comma = "," if "," in name else ""
        return f"{name}{comma} or null" if self.null else name

    def _reference_name(self) -> str:
        return self.kind_name

    def _read(self, value: object) -> object:
        raise NotImplementedError  # each kind has a way of its own; `reading` walks blocks

    def _check(self, value: object) -> ValueProblem | None:
        return None

    def _mention_null(self, wrong: ValueProblem) -> ValueProblem:
        told = not self.null or "null" in wrong.message or not wrong.message.startswith("must be ")
        return wrong if told else replace(wrong, message=f"{wrong.message}, or null")

    def wrong_type(self, expected: str, value: object, suggestion: str | None = None) -> ValueProblem:
        """Return the problem that a value has the wrong type."""
        null = " or null" if self.null else ""
        return ValueProblem(f"must be {expected}{null}, not {_TYPES.get(type(value), 'that')}", suggestion)


class Flag(Kind, frozen=True):
    """True or false."""

    kind_name: str = "flag"

    def _read(self, value: object) -> object:
        if isinstance(value, bool):
            return value
        meant = next((flag for flag, words in _FLAGS.items() if str(value).lower() in words), None)
        return self.wrong_type("true or false", value, meant)


class Count(Kind, frozen=True):
    """A whole number. A limit that is None is checked by the record."""

    least: int | None = 1
    most: int | None = MAX_CONFIGURED_COUNT

    def _reference_name(self) -> str:
        if self.least is None:
            return "whole number"
        most = "or more" if self.most in (None, MAX_CONFIGURED_COUNT) else f"to {self.most}"
        return f"whole number, {self.least} {most}"

    def _read(self, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return self.wrong_type("a whole number", value)

    def _check(self, value: object) -> ValueProblem | None:
        if self.least is None or self.most is None or self.least <= cast("int", value) <= self.most:
            return None
        return ValueProblem(f"must be from {self.least} to {self.most}")


class Duration(Kind, frozen=True):
    """A time in the unit that its key names; days are whole numbers."""

    unit: str = "seconds"
    zero: bool = False
    """Whether zero is allowed."""
    off: bool = False
    """Whether 0 means never or no limit; the record then holds None, so that nobody computes with 0."""
    named: bool = True
    """Whether the key names the unit."""

    @property
    def suffix(self) -> str:
        """The unit that the key has behind the name of the field."""
        return f"_{_SUFFIXES.get(self.unit, self.unit)}" if self.named else ""

    def _reference_name(self) -> str:
        whole = self.unit == "days"
        least = "0 or more" if self.zero or self.off else "1 or more" if whole else "more than 0"
        return f"{'whole number of days' if whole else self.unit}, {least}"

    def _read(self, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ValueProblem(f"must be a number of {self.unit}")
        if isinstance(value, float) and self.unit == "days":
            return ValueProblem("must be a whole number of days")
        if self.off and not value:
            return None
        try:
            return timedelta(**{self.unit: value})
        except (OverflowError, ValueError):
            return ValueProblem("must be a century at most")

    def _check(self, value: object) -> ValueProblem | None:
        if value is None and self.off:
            return None
        if self.off and cast("timedelta", value) <= timedelta(0):
            return ValueProblem("must be 0 (off) or more, and a century at most")
        finding = duration_problem("", cast("timedelta", value), zero=self.zero)
        return ValueProblem(finding[1]) if finding else None

    def as_written(self, value: object) -> object:
        """Return the number of units; 0 for None."""
        number = 0 if value is None else cast("timedelta", value) / timedelta(**{self.unit: 1})
        return int(number) if float(number).is_integer() else number


class Choice(Kind, frozen=True):
    """One of some words."""

    words: type[StrEnum]
    flag_is_off: bool = False
    """Whether false means the word `off`, which other readers of YAML turn into false."""

    def _reference_name(self) -> str:
        return ", ".join(f"`{word}`" for word in self.words)

    def _known_words(self) -> Sequence[str]:
        return [*self.words]

    def _read(self, value: object) -> object:
        word = "off" if value is False and self.flag_is_off else value
        return self._check_word(word) or self.words(cast("str", word))

    def _check(self, value: object) -> ValueProblem | None:
        return self._check_word(value)

    def _check_word(self, word: object) -> ValueProblem | None:
        known = self._known_words()
        if isinstance(word, str) and word in known:
            return None
        return ValueProblem(f"must be one of {', '.join(known)}", closest_choice(word, known))

    def as_written(self, value: object) -> object:
        """Return the word."""
        return None if value is None else str(value)


class ProviderChoice(Choice, frozen=True):
    """One of our words, or the name of a provider that a package has installed."""

    def _reference_name(self) -> str:
        return f"{', '.join(f'`{word}`' for word in self.words)}, or {self.kind_name}"

    def _read(self, value: object) -> object:
        # Providers are looked up for other words only: the first look reads all packages from the disk.
        if isinstance(value, str) and value in {*self.words}:
            return value
        return self._check_word(value) or value

    def _known_words(self) -> Sequence[str]:
        from gateway_sessions._process.installed_packages import installed_providers  # noqa: PLC0415 -- loads what reads packages

        return [*self.words, *sorted(installed_providers())]

    def _check(self, value: object) -> ValueProblem | None:
        return None  # a program may bring a provider that no package has installed


class Text(Kind, frozen=True):
    """Text that is not empty."""

    kind_name: str = "text"
    starts: tuple[str, ...] = ()
    """The allowed beginnings of the text."""
    check_with: Callable[[str], object] | None = None
    """Raises one of our errors for a wrong text."""
    similar: Callable[[str], str | None] | None = None
    """Returns the text that was probably meant, if any."""

    def _read(self, value: object) -> object:
        if not isinstance(value, str):
            return self.wrong_type("text", value)
        return value if value.strip() else ValueProblem("must not be empty")

    def _check(self, value: object) -> ValueProblem | None:
        text = cast("str", value)
        if self.starts and not text.startswith(self.starts):
            return ValueProblem(f"must begin with {' or '.join(self.starts)}")
        try:
            if self.check_with:
                self.check_with(text)
        except (InvalidPolicyError, InvalidSourceError) as error:
            return ValueProblem(error.problem, self.similar(text) if self.similar else None)
        return None


ZONE: Final = Text(kind_name="zone name", null=True, check_with=zone_named, similar=similar_zone)


class Identifier(Text, frozen=True):
    """An id of a platform, which people may write as a number."""

    def _read(self, value: object) -> object:
        number = isinstance(value, int) and not isinstance(value, bool)
        return super()._read(str(value) if number else value)


class DatabaseAddress(Text, frozen=True):
    """The address of a database, of which only the beginning is shown."""

    def mask_secrets(self, text: str) -> str:
        """Return the scheme of a server's address, or a path without passwords."""
        server = "://" in text and not text.startswith("sqlite")
        return f"{text.partition('://')[0]}://…" if server else super().mask_secrets(text)


class Texts(Kind, frozen=True):
    """A list of texts."""

    kind_name: str = "list of texts"
    least_bytes: int = 0
    """The least length of each text."""

    def _reference_name(self) -> str:
        return f"{self.kind_name} of {self.least_bytes} bytes or more" if self.least_bytes else self.kind_name

    def _read(self, value: object) -> object:
        if not isinstance(value, list):
            return self.wrong_type("a list", value)
        texts = [Text().read_value(one) for one in cast("list[object]", value)]
        wrong = [
            replace(one, place=(place,)) for place, one in enumerate(texts) if isinstance(one, ValueProblem)
        ]
        return wrong[0] if wrong else tuple(texts)

    def _check(self, value: object) -> ValueProblem | None:
        if all(len(one.encode()) >= self.least_bytes for one in cast("tuple[str, ...]", value)):
            return None
        return ValueProblem(f"must have at least {self.least_bytes} bytes each")

    def as_written(self, value: object) -> object:
        """Return the texts as a list."""
        return [*cast("tuple[str, ...]", value)]


class Amount(Kind, frozen=True):
    """An amount of dollars or of tokens, by the field of a budget that holds it."""

    field: str = "usd"
    kind_name: str = "number of dollars"

    def _reference_name(self) -> str:
        return f"{self.kind_name}, 0 or more"

    def _read(self, value: object) -> object:
        limit: dict[str, Any] = {self.field: value}
        try:
            return getattr(BudgetLimit(**limit), self.field)
        except InvalidInputError:
            return ValueProblem(f"must be a {self.kind_name}, 0 or more")


class AdapterConfig(Struct, frozen=True, kw_only=True):
    """One adapter of `serve`, as the configuration states it."""

    platform: str
    """The platform, by which the adapter is found."""
    name: str = ""
    """The account; empty: the account without a name."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """All other keys, which only the platform's adapter knows: tokens, and how it behaves."""

    def __repr__(self) -> str:
        """Name the adapter without its settings, which may be secrets."""
        return f"<adapter of {self.platform}{f' as {self.name!r}' if self.name else ''}>"


class Adapters(Kind, frozen=True):
    """A list of adapters: blocks with a platform, maybe a name, and the settings of that platform."""

    kind_name: str = "list of blocks with `platform`"
    secret: bool = True

    def _read(self, value: object) -> object:
        if not isinstance(value, list):
            return self.wrong_type("a list of blocks", value)
        found: list[AdapterConfig] = []
        for place, one in enumerate(cast("list[object]", value)):
            adapter = self._read_adapter(one)
            if isinstance(adapter, ValueProblem):
                return replace(adapter, place=(place,))
            found.append(adapter)
        return tuple(found)

    def _read_adapter(self, value: object) -> AdapterConfig | ValueProblem:
        if not isinstance(value, dict):
            return self.wrong_type("a block with a platform", value)
        settings = cast("dict[str, Any]", value)
        texts = {key: settings.get(key, "") for key in ("platform", "name")}
        for key, text in texts.items():
            if not isinstance(text, str):
                return ValueProblem(f"must have text as its {key}")
        if not texts["platform"].strip():
            return ValueProblem("needs a platform, such as `platform: telegram`")
        return AdapterConfig(
            platform=texts["platform"].strip().lower(),
            name=texts["name"],
            settings=MappingProxyType({key: one for key, one in settings.items() if key not in texts}),
        )

    def _check(self, value: object) -> ValueProblem | None:
        adapters = cast("tuple[AdapterConfig, ...]", value)
        accounts = [(one.platform, one.name) for one in adapters]
        twice = next((one for one in accounts if accounts.count(one) > 1), None)
        if twice is None:
            return None
        return ValueProblem(f"has {twice[0]} twice: give each account of it a `name` of its own")

    def as_written(self, value: object) -> object:
        """Return the adapters as blocks."""
        return [
            {"platform": one.platform, **({"name": one.name} if one.name else {}), **one.settings}
            for one in cast("tuple[AdapterConfig, ...]", value)
        ]
