"""`AdapterSettings`: what a configuration says of one adapter, for the function that makes the adapter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

from gateway_sessions.adapters.group_talk import GroupRules, GroupTalk
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.config.kinds import AdapterConfig
from gateway_sessions.errors import ConfigError, ConfigProblem

E = TypeVar("E", bound=StrEnum)

UNSET: Final = "needs {0}: write `{0}: ${{{1}}}`, and set that variable"
"""What is said of a key that an adapter cannot do without."""


class AdapterSettings:
    """The settings of one adapter. Each key is asked for by name; what nobody asks for is a mistake."""

    def __init__(self, config: AdapterConfig, place: int = 0, home: Path | None = None) -> None:
        """*place* is that of the adapter in its list, *home* the directory of the store, if there is one."""
        self.platform: str = config.platform
        self.name: str = config.name
        self.home: Path | None = home
        self._settings = config.settings
        self._path = f"serve.adapters[{place}]"
        self._asked: set[str] = set()
        self._problems: list[ConfigProblem] = []
        self._closers: list[Callable[[], Awaitable[object]]] = []

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return a text; the default if the key is not set."""
        found = self._value_of(key)
        if found is None:
            return default
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)  # an id, which people may write as a number
        if isinstance(found, str) and found.strip():
            return found
        self.refuse(key, "must be text")
        return default

    def required_text(self, key: str) -> str:
        """Return a text that the adapter cannot do without; empty after the problem was noted."""
        if (found := self.text(key)) is not None:
            return found
        if self._settings.get(key) is None:
            variable = f"{self.platform}_{key}".upper().replace("-", "_")
            self._problems.append(ConfigProblem(self._path, UNSET.format(key, variable)))
        return ""

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return a flag."""
        found = self._value_of(key)
        if found is None:
            return default
        if isinstance(found, bool):
            return found
        self.refuse(key, "must be true or false")
        return default

    def number(
        self, key: str, default: int | None = None, *, least: int = 0, most: int = 1 << 31
    ) -> int | None:
        """Return a whole number within bounds."""
        found = self._value_of(key)
        if found is None:
            return default
        if isinstance(found, int) and not isinstance(found, bool) and least <= found <= most:
            return found
        self.refuse(key, f"must be a whole number from {least} to {most}")
        return default

    def choice(self, key: str, choices: type[E], default: E) -> E:
        """Return one of some words."""
        found = self._value_of(key)
        if found is None:
            return default
        if isinstance(found, str) and found in set(choices):
            return choices(found)
        self.refuse(key, f"must be one of {', '.join(choices)}", _closest(str(found), [*map(str, choices)]))
        return default

    def group_rules(self) -> GroupRules[Any]:
        """Return which messages of groups are for the bot, and whether the others are observed."""
        groups = self.choice("groups", GroupTalk, GroupTalk.MENTION)
        return GroupRules(groups, observe=self.flag("observe"))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text alone is a list as well."""
        found = self._value_of(key)
        if found is None:
            return ()
        listed = cast("list[object]", found) if isinstance(found, list) else [found]
        texts = tuple(one for one in listed if isinstance(one, str) and one)
        if len(texts) == len(listed):
            return texts
        self.refuse(key, "must be a list of texts")
        return ()

    def folder(self, key: str) -> Path | None:
        """Return the path of a folder; a relative one lies in the directory of the store."""
        found = self.text(key)
        if found is None:
            return None
        return Path(found).expanduser() if self.home is None else self.home / Path(found).expanduser()

    def refuse(self, key: str, message: str, suggestion: str | None = None) -> None:
        """Note that the value of a key cannot be used. No message may show the value, which may be secret."""
        self._problems.append(ConfigProblem(f"{self._path}.{key}", message, None, suggestion))

    def check(self) -> None:
        """Raise `ConfigError` for all problems so far, keys that nobody asked for among them."""
        for key in self._settings:
            if key not in self._asked:
                known = sorted(self._asked)
                self.refuse(key, f"is not a key of {self.platform}", _closest(key, known))
        if self._problems:
            raise ConfigError("configuration", self._problems)

    def on_close(self, close: Callable[[], Awaitable[object]]) -> None:
        """Call *close* when the gateway has ended, for example to close connections."""
        self._closers.append(close)

    async def aclose(self) -> None:
        """Close what was made for the adapter."""
        while self._closers:
            await self._closers.pop()()

    def _value_of(self, key: str) -> object:
        self._asked.add(key)
        return self._settings.get(key)

    @property
    def path(self) -> str:
        """The place in the configuration, for messages."""
        return self._path


AdapterFactory: TypeAlias = Callable[[AdapterSettings], Adapter]
"""Makes an adapter from its settings: it asks for its keys, calls `check`, and connects to nothing yet."""


def _closest(word: str, choices: list[str]) -> str | None:
    return next(iter(get_close_matches(word.lower(), choices, n=1)), None)
