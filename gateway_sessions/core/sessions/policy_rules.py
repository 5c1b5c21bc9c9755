"""The reset policies of a configuration, and the choice which one applies to a conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.sessions.reset_policy import PRESETS, SessionResetPolicy
from gateway_sessions.core.sessions.reset_times import zone_named

# More than the conversations of a busy gateway differ in; the cache is emptied when it is full.
_MAX_RESOLVED: Final = 4096
TERMINAL: Final = str(Platform.LOCAL)
"""The platform of terminals, which no policy resets but one of its own."""


class PolicyLevel(StrEnum):
    """The place in a configuration, or in the entry, where a policy was found."""

    SESSION = "session"
    CHAT_TYPE = "chat_type"
    PLATFORM = "platform"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """The policy that applies to a conversation, its zone, and its origin in the configuration."""

    policy: SessionResetPolicy
    zone_name: str
    level: PolicyLevel
    path: str
    """The path of the policy in the configuration; for a session's own policy, its field in the entry."""
    fingerprint: str
    """A hash of policy and zone: instants that were stored under another hash are out of date."""

    @property
    def zone(self) -> ZoneInfo:
        """The zone of the boundaries."""
        return zone_named(self.zone_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBook:
    """All policies of a configuration. Any thread may ask it."""

    default: SessionResetPolicy = field(default_factory=SessionResetPolicy)
    by_platform: Mapping[str, SessionResetPolicy] = field(default_factory=dict[str, SessionResetPolicy])
    by_chat_type: Mapping[tuple[str, str], SessionResetPolicy] = field(
        default_factory=dict[tuple[str, str], SessionResetPolicy]
    )
    """The policies by platform and chat type."""
    zone_name: str = "UTC"
    """The zone of policies and chats that name none."""
    fingerprint: str = field(init=False)
    """A hash of the whole book, equal for books that resolve every conversation alike."""
    _resolved: dict[object, ResolvedPolicy] = field(
        init=False, repr=False, compare=False, default_factory=dict[object, ResolvedPolicy]
    )

    def __post_init__(self) -> None:
        zone_named(self.zone_name)
        configured = {_platform(name): policy for name, policy in self.by_platform.items()}
        # Resets are for gateways: a person at the terminal goes on, or begins anew, by command.
        platforms = {TERMINAL: PRESETS["never"]} | configured
        chat_types = {(_platform(name), kind): policy for (name, kind), policy in self.by_chat_type.items()}
        object.__setattr__(self, "by_platform", MappingProxyType(platforms))
        object.__setattr__(self, "by_chat_type", MappingProxyType(chat_types))
        by_platform = [[name, configured[name].to_dict()] for name in sorted(configured)]
        by_chat_type = [[*key, chat_types[key].to_dict()] for key in sorted(chat_types)]
        fingerprint = _fingerprint(self.default.to_dict(), by_platform, by_chat_type, self.zone_name)
        object.__setattr__(self, "fingerprint", fingerprint)

    def resolve(
        self,
        platform: str | None,
        chat_type: str,
        *,
        override: SessionResetPolicy | None = None,
        chat_zone: str | None = None,
    ) -> ResolvedPolicy:
        """Return the policy that applies: the session's, else the chat type's, the platform's, the default.

        The zone is the policy's, else the chat's, else the book's.
        """
        key = (platform, chat_type, override, chat_zone)
        resolved = self._resolved.get(key)
        if resolved is None:
            resolved = self._find_policy(platform or "", chat_type, override, chat_zone)
            if len(self._resolved) >= _MAX_RESOLVED:
                self._resolved.clear()
            self._resolved[key] = resolved
        return resolved

    def _find_policy(
        self, platform: str, chat_type: str, override: SessionResetPolicy | None, chat_zone: str | None
    ) -> ResolvedPolicy:
        level, policy, path = PolicyLevel.DEFAULT, self.default, "session_reset"
        if platform in self.by_platform:
            level, policy = PolicyLevel.PLATFORM, self.by_platform[platform]
            path = f"platforms.{platform}.session_reset"
        if (platform, chat_type) in self.by_chat_type:
            level, policy = PolicyLevel.CHAT_TYPE, self.by_chat_type[platform, chat_type]
            path = f"platforms.{platform}.chat_types.{chat_type}.session_reset"
        if override is not None:
            level, policy, path = PolicyLevel.SESSION, override, "reset_policy"
        zone_name = policy.zone or chat_zone or self.zone_name
        zone_named(zone_name)
        return ResolvedPolicy(policy, zone_name, level, path, _fingerprint(policy.to_dict(), zone_name))


def _platform(name: str) -> str:
    """Return the name of a platform as message sources spell it."""
    return name.strip().lower()


def _fingerprint(*contents: object) -> str:
    return sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]
