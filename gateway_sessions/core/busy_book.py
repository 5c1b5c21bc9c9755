"""Which rules count for a conversation whose lane is busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from gateway_sessions.core.busy import BusyRules
from gateway_sessions.core.busy_mode import BusyMode


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyBook:
    """All rules of a configuration for busy lanes."""

    default: BusyRules = field(default_factory=BusyRules)
    by_platform: Mapping[str, BusyRules] = field(default_factory=dict[str, BusyRules])
    by_chat_type: Mapping[tuple[str, str], BusyRules] = field(
        default_factory=dict[tuple[str, str], BusyRules]
    )
    """By platform and chat type."""

    def __post_init__(self) -> None:
        platforms = {_platform(name): rules for name, rules in self.by_platform.items()}
        chat_types = {(_platform(name), kind): rules for (name, kind), rules in self.by_chat_type.items()}
        object.__setattr__(self, "by_platform", MappingProxyType(platforms))
        object.__setattr__(self, "by_chat_type", MappingProxyType(chat_types))

    @property
    def longest_debounce(self) -> timedelta:
        """How long a burst may pause where it may pause longest."""
        rules = (self.default, *self.by_platform.values(), *self.by_chat_type.values())
        return max(one.debounce for one in rules)

    def rules_for(
        self, platform: str | None, chat_type: str, override: BusyRules | BusyMode | None = None
    ) -> BusyRules:
        """The rules that count: the session's own, else the chat type's, the platform's, the default.

        A session that has only a mode of its own takes all else from the rules that it would have.
        """
        if isinstance(override, BusyRules):
            return override
        name = platform or ""
        rules = self.by_chat_type.get((name, chat_type)) or self.by_platform.get(name) or self.default
        return rules.in_mode(override)


def _platform(name: str) -> str:
    """A name of a platform as message sources write it."""
    return name.strip().lower()
