"""`SessionSource`: the platform, account, chat, person and thread that a message came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from gateway_sessions.core.checks import UNSAFE_CHARACTERS, plain_text
from gateway_sessions.errors import InvalidSourceError

# Longer than any platform's id, and short enough for an indexed column of every database.
MAX_IDENTIFIER: Final = 512
# Longer than any platform's name; what is longer is cut.
MAX_NAME: Final = 4096

_PARENT_SEGMENT = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Platform(StrEnum):
    """The names of well-known platforms. Any other name is welcome: a platform is just a string."""

    LOCAL = "local"
    TELEGRAM = "telegram"
    DISCORD = "discord"
    SLACK = "slack"
    SIGNAL = "signal"
    WHATSAPP = "whatsapp"
    MATRIX = "matrix"
    MATTERMOST = "mattermost"
    EMAIL = "email"
    SMS = "sms"
    FEISHU = "feishu"
    WEBHOOK = "webhook"
    API_SERVER = "api_server"
    BLUEBUBBLES = "bluebubbles"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSource:
    """The origin of a message. Identifiers are checked; names are data and only made storable."""

    platform: str
    chat_id: str = ""
    chat_name: str | None = None
    chat_type: str = "dm"
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None
    """A second id by which the platform knows the person."""
    chat_id_alt: str | None = None
    """A second id by which the platform knows the chat."""
    is_bot: bool = False
    """Whether a bot wrote, and no person."""
    guild_id: str | None = None
    parent_chat_id: str | None = None
    message_id: str | None = None
    role_authorized: bool = False
    """Whether the platform has allowed the person by a role."""
    profile: str | None = None
    """The profile that the message is for, if a gateway serves several: see `multiplex_profiles`."""
    account: str = ""
    """The name of the account that the message came through; a named account has lanes of its own."""
    extra: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, compare=False, hash=False)
    """The members of a stored source that this version does not know; they are written back unchanged."""

    def __post_init__(self) -> None:
        check_identifier("platform", self.platform)
        platform = plain_text(self.platform or "").strip().lower()
        if not platform:
            raise InvalidSourceError("platform", "is empty")
        if platform is not self.platform:
            object.__setattr__(self, "platform", platform)
        for name, value in zip(_IDENTIFIERS, _IDENTIFIERS_OF(self), strict=True):
            if value is None and name not in _NEVER_NONE:
                continue
            check_identifier(name, value)
            plain = plain_text(value) if value else _UNSET.get(name, value)
            if plain is not value:
                object.__setattr__(self, name, plain)
        for name, value in zip(_NAMES, _NAMES_OF(self), strict=True):
            if value is not None and (text := storable_name(name, value)) is not value:
                object.__setattr__(self, name, text)
        check_flag("is_bot", self.is_bot)
        check_flag("role_authorized", self.role_authorized)

    def __repr__(self) -> str:
        shown = (
            (one.name, getattr(self, one.name), one.default) for one in fields(self) if one.name != "extra"
        )
        fields_text = ", ".join(f"{name}={value!r}" for name, value, default in shown if value != default)
        return f"SessionSource({fields_text})"

    @property
    def participant_id(self) -> str | None:
        """The person, by the id that does not change: the alternative id wins where a platform has one."""
        return self.user_id_alt or self.user_id

    @property
    def scope_id(self) -> str | None:
        """The guild, under the name by which newer versions of Hermes store it as well."""
        return self.guild_id

    @property
    def has_identifier(self) -> bool:
        """Whether an identifier tells this origin apart from others on its platform."""
        return bool(self.chat_id or self.participant_id or self.thread_id)

    @property
    def lasting(self) -> SessionSource:
        """The source without the facts of a single message; this form is stored with the lane."""
        if not (self.is_bot or self.role_authorized):
            return self
        return replace(self, is_bot=False, role_authorized=False)

    @property
    def description(self) -> str:
        """A short text for people, such as "DM with Alice" or "group: Team, thread: 12"."""
        match self.chat_type:
            case _ if self.platform == Platform.LOCAL:
                return "CLI terminal"
            case "dm":
                text = f"DM with {self.user_name or self.user_id or 'user'}"
            case "group" | "channel":
                text = f"{self.chat_type}: {self.chat_name or self.chat_id}"
            case _:
                text = self.chat_name or self.chat_id
        return f"{text}, thread: {self.thread_id}" if self.thread_id else text

    def to_dict(self) -> dict[str, Any]:
        """Return the stored form, without `is_bot` and `role_authorized`: see `lasting`."""
        stored: dict[str, Any] = {name: getattr(self, name) for name in _ALWAYS_STORED}
        stored |= {name: value for name in _STORED_IF_SET if (value := getattr(self, name))}
        return stored | {name: value for name, value in self.extra.items() if name not in _READ}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> SessionSource:
        """Return the source of a stored form, also of Hermes'; unknown members are kept in `extra`."""
        platform = stored.get("platform")
        if not isinstance(platform, str):
            raise InvalidSourceError("platform", f"must be text, not {platform!r}")
        if stored.get("chat_id") is None:
            raise InvalidSourceError("chat_id", "is missing")
        known: dict[str, Any] = {
            name: _as_text(stored[name]) for name in _TEXTS if stored.get(name) is not None
        }
        scope = stored["scope_id"] if "scope_id" in stored else stored.get("guild_id")
        extra = {name: value for name, value in stored.items() if name not in _READ}
        return cls(**known, guild_id=_as_text(scope) if scope else None, extra=MappingProxyType(extra))


def check_identifier(name: str, value: object) -> None:
    """Refuse an id that could not be stored, could break a log line, or looks like a path.

    Ids are never rewritten, because two ids could become equal.
    """
    if value is None or value == "":
        return
    if not isinstance(value, str):
        raise InvalidSourceError(name, f"must be text, not {type(value).__name__}")
    if type(value) is str and value.isprintable() and ".." not in value and len(value) <= MAX_IDENTIFIER:
        return  # nearly every id, at a third of the price of the searches below
    if len(value) > MAX_IDENTIFIER:
        raise InvalidSourceError(name, f"is longer than {MAX_IDENTIFIER} characters")
    if UNSAFE_CHARACTERS.search(value):
        raise InvalidSourceError(name, "holds control characters or halves of surrogate pairs")
    if ".." in value and _PARENT_SEGMENT.search(value):
        raise InvalidSourceError(name, "looks like a path to a parent directory")


def check_flag(name: str, value: object) -> None:
    """Refuse a value that is neither true nor false."""
    if not isinstance(value, bool):
        raise InvalidSourceError(name, "must be true or false")


def storable_name(name: str, value: object) -> str:
    """Return a name for people as data: cut to the limit, without characters that no database holds."""
    if not isinstance(value, str):
        raise InvalidSourceError(name, f"must be text, not {type(value).__name__}")
    return _SURROGATES.sub("\ufffd", plain_text(value)[:MAX_NAME]).replace("\x00", "\ufffd")


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


_NAMES: Final = ("chat_name", "user_name", "chat_topic")
_IDENTIFIERS: Final = (
    "chat_id", "chat_type", "user_id", "thread_id", "user_id_alt", "chat_id_alt", "guild_id",
    "parent_chat_id", "message_id", "profile", "account",
)  # fmt: skip
_ALWAYS_STORED: Final = (
    "platform", "chat_id", "chat_name", "chat_type", "user_id", "user_name", "thread_id", "chat_topic",
)  # fmt: skip
_STORED_IF_SET: Final = (
    "user_id_alt", "chat_id_alt", "scope_id", "guild_id", "parent_chat_id", "message_id", "profile",
    "account",
)  # fmt: skip
_OPTIONAL: Final = ("user_id_alt", "chat_id_alt", "parent_chat_id", "message_id", "profile")
_NEVER_NONE: Final[Mapping[str, str]] = {"chat_id": "", "chat_type": "dm", "account": ""}
_UNSET: Final[Mapping[str, str | None]] = {**_NEVER_NONE, **dict.fromkeys((*_OPTIONAL, "guild_id"))}
"""The meaning of an empty value: such members are not stored, and must be read again as they were."""
_TEXTS: Final = (*_ALWAYS_STORED, *_OPTIONAL, "account")
_READ: Final = frozenset({"scope_id", "extra"} | {one.name for one in fields(SessionSource)})
_IDENTIFIERS_OF: Final = attrgetter(*_IDENTIFIERS)
_NAMES_OF: Final = attrgetter(*_NAMES)
