"""Session keys: how a source becomes the key of its lane, the owner of its sessions and the author.

A key is `agent:<namespace>:<platform>:<chat type>` and the parts that tell conversations apart. A `:` or `%`
inside a part is percent-encoded, so that no id can pretend to be two parts. Two different origins may still
have the same plain key (user 7 of chat C, thread 7 of chat C), because a plain key does not say which part is
which. `identity` says it, and the store gives an entry only to the identity that the entry belongs to.

The keys and owners of a named account have its name behind the mark `%account`:
`agent:main:telegram:dm:%account:support:7`. Those of an account without a name have no mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Final

from gateway_sessions.core.identity.source import Platform, SessionSource

ROOM_AT: Final = 2
"""The position of the word `room` in an owner."""
PLATFORM_AT: Final = 2
CHAT_TYPE_AT: Final = 3
"""The positions of platform and chat type in a key."""
ACCOUNT: Final = "%account"
"""The mark before the name of an account. No encoded part has a bare `%`, so no part equals the mark."""
HERMES_TERMINAL: Final = "cli"
"""The platform of conversations that Hermes held at a terminal."""
ROLES: Final = frozenset({"%chat", "%user", "%thread"})
"""The marks before the parts of an identity; no encoded part equals them either."""
NO_ALIASES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The settings that decide who shares a conversation, and which profile it belongs to."""

    group_sessions_per_user: bool = True
    """Whether each person of a group has a lane of their own."""
    thread_sessions_per_user: bool = False
    """Whether each person of a thread has a lane of their own."""
    profile: str | None = None
    multiplex_profiles: bool = False
    """Whether each message names its profile; if not, all messages are for `profile`."""

    def separates_people(self, source: SessionSource) -> bool:
        """Return whether each person in this chat has a session. In a thread, both flags must be set."""
        if source.chat_type == "dm":
            return True
        return self.group_sessions_per_user and (not source.thread_id or self.thread_sessions_per_user)

    @property
    def namespace(self) -> str:
        """The namespace in keys of the default profile of this gateway."""
        return _profile_namespace(self.profile)

    def namespace_of(self, source: SessionSource) -> str:
        """Return the namespace of the profile that a message is for."""
        if self.multiplex_profiles and source.profile:
            return _profile_namespace(source.profile)
        return self.namespace


class Sharing(StrEnum):
    """The rule by which a conversation got its key."""

    DIRECT = "direct"  # a direct chat has one session
    PERSON = "person"  # in a group, each person has one
    ROOM = "room"  # all who write in a chat share one
    PERSON_IN_THREAD = "person_in_thread"  # in a thread, each person has one
    THREAD = "thread"  # all who write in a thread share one


def is_shared_multi_user_session(
    source: SessionSource, *, group_sessions_per_user: bool = True, thread_sessions_per_user: bool = False
) -> bool:
    """Return whether several people talk in one session here: exactly where the key names no person."""
    flags = Isolation(
        group_sessions_per_user=group_sessions_per_user, thread_sessions_per_user=thread_sessions_per_user
    )
    return not flags.separates_people(source)


def build_session_key(
    source: SessionSource,
    group_sessions_per_user: bool = True,  # noqa: FBT001, FBT002 -- the established signature
    thread_sessions_per_user: bool = False,  # noqa: FBT001, FBT002 -- the established signature
    profile: str | None = None,
    *,
    aliases: Mapping[str, str] = NO_ALIASES,
) -> str:
    """Return the key of the source's lane. *aliases* maps normalised WhatsApp ids to one id per person."""
    flags = Isolation(
        group_sessions_per_user=group_sessions_per_user,
        thread_sessions_per_user=thread_sessions_per_user,
        profile=profile,
    )
    return session_key(source, flags, aliases)


def session_key(source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Return the plain key, by which people and files know the lane."""
    return _join_key(source, flags, [value for _, value in _roles_and_ids(source, flags, aliases)])


def identity_key(source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Return the key with the role of each part; the lane's key if the plain key is taken by another lane.

    A bare `%` cannot occur in an encoded part, so no plain key ever equals an identity.
    """
    prefix = _join_key(source, flags, [])
    return prefix + "".join(
        f":%{role}:{encode_part(value)}" for role, value in _roles_and_ids(source, flags, aliases)
    )


def unencoded_key(source: SessionSource, flags: Isolation) -> str:
    """Return the key as Hermes joins it, which other origins may share; only for recognising its lanes."""
    values = (value for _, value in _roles_and_ids(source, flags, NO_ALIASES))
    return ":".join(("agent", flags.namespace_of(source), source.platform, source.chat_type, *values))


def same_conversation(
    one: SessionSource, other: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES
) -> bool:
    """Return whether two origins belong to one conversation, even if their plain keys agree."""
    return _routing_fields(one) == _routing_fields(other) or identity_key(
        one, flags, aliases
    ) == identity_key(other, flags, aliases)


def session_owner(source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Return the owner of a session: the person of a private lane, the room of a shared one."""
    if flags.separates_people(source):
        return person_owner(source, flags, aliases) or room_owner(source, flags)
    return room_owner(source, flags)


def person_owner(
    source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES
) -> str | None:
    """Return the person who wrote, as an owner, or the direct chat where a platform names no person."""
    if participant := canonical_participant(source, aliases):
        return _join_owner(source, flags, "user", participant)
    if source.chat_type == "dm" and source.chat_id:
        return _join_owner(
            source, flags, "chat", _canonical_id(source, source.chat_id, aliases) or source.chat_id
        )
    return None


def author_on_lane(owner: str, participant: str | None) -> str | None:
    """Return the person who wrote on a lane of that owner, as an owner; None if a room does not tell."""
    if not is_room_owner(owner):
        return owner
    if not participant:
        return None
    person = ":".join((*owner.split(":")[:ROOM_AT], "user", encode_part(participant)))
    return owner_at_account(person, account_in_key(owner))


def participant_id_of(author: str) -> str:
    """Return the id by which an author writes in rooms."""
    return decode_part(without_account(author).rpartition(":")[2])


def platform_and_chat_type(key: str) -> tuple[str, str]:
    """Return the platform and the chat type of a key; empty and "dm" for a key of another form."""
    parts = key.split(":")
    if len(parts) <= CHAT_TYPE_AT or parts[0] != "agent":
        return "", "dm"
    return decode_part(parts[PLATFORM_AT]), decode_part(parts[CHAT_TYPE_AT])


def is_terminal_owner(owner: str) -> bool:
    """Return whether an owner is the person at a terminal of this program, or of Hermes (`cli`)."""
    parts = owner.split(":")
    return len(parts) > 1 and parts[1] in (Platform.LOCAL, HERMES_TERMINAL)


def is_room_owner(owner: str) -> bool:
    """Return whether an owner is a room that several people share, and no person."""
    parts = owner.split(":")
    return len(parts) > ROOM_AT and parts[ROOM_AT] == "room"


def room_owner(source: SessionSource, flags: Isolation) -> str:
    """Return the owner of a shared chat, or of a thread in it.

    The chat type is part of the owner, because a direct chat may have the id of a group.
    """
    where = (source.chat_type, source.chat_id, *filter(None, [source.thread_id]))
    return _join_owner(source, flags, "room", *where)


def account_in_key(name: str) -> str:
    """Return the account that a key or an owner names; empty: the account without a name."""
    _, mark, rest = name.partition(f":{ACCOUNT}:")
    return decode_part(rest.split(":", 1)[0]) if mark else ""


def without_account(name: str) -> str:
    """Return the key or the owner without its account."""
    before, mark, rest = name.partition(f":{ACCOUNT}:")
    if not mark:
        return name
    _, colon, after = rest.partition(":")
    return f"{before}{colon}{after}"


def key_at_account(key: str, account: str) -> str:
    """Return the lane's key at that account, given its key without an account."""
    return _insert_account(key, CHAT_TYPE_AT, account)


def owner_at_account(owner: str, account: str) -> str:
    """Return the owner at that account, given the owner without an account."""
    return _insert_account(owner, ROOM_AT, account)


def room_owner_prefixes(owner: str) -> tuple[str, str]:
    """Return the prefix of rooms in which a person writes, and the prefix of such rooms at other accounts."""
    rooms = ":".join((*owner.split(":")[:ROOM_AT], "room", ""))
    account = account_in_key(owner)
    if account:
        return f"{rooms}{ACCOUNT}:{encode_part(account)}:", ACCOUNT
    return rooms, f"{rooms}{ACCOUNT}:"


def sharing_rule(chat_type: str, thread_id: str | None, owner: str) -> Sharing:
    """Return the rule by which a session belongs to its owner."""
    if chat_type == "dm":
        return Sharing.DIRECT
    if is_room_owner(owner):
        return Sharing.THREAD if thread_id else Sharing.ROOM
    return Sharing.PERSON_IN_THREAD if thread_id else Sharing.PERSON


def encode_part(value: str) -> str:
    """Return the value as a part of a key, encoded so that it cannot be mistaken for two parts."""
    return value.replace("%", "%25").replace(":", "%3A") if "%" in value or ":" in value else value


def decode_part(part: str) -> str:
    """Return the value of a part that `encode_part` made."""
    return part.replace("%3A", ":").replace("%25", "%")


_BETWEEN_DIGITS: Final = str.maketrans("", "", "-()./\u2010\u2011\u2012\u2013")


def normalize_whatsapp_id(value: str) -> str:
    """Return the bare number or id of any form of the bridge: `+49…`, `49…@s.whatsapp.net`, `49…:3@lid`.

    A number may also be spelled as people write it, `+49 (151) 234-56`.
    """
    bare = "".join(value.split()).replace("+", "", 1).split(":", 1)[0].split("@", 1)[0]
    digits = bare.translate(_BETWEEN_DIGITS)
    return digits if digits.isdecimal() and digits.isascii() else bare


def ids_to_resolve(source: SessionSource) -> tuple[str, ...]:
    """Return the identifiers of this source that may be one of several for the same person."""
    if source.platform != Platform.WHATSAPP:
        return ()
    chat = source.chat_id if source.chat_type == "dm" else ""
    found = (normalize_whatsapp_id(value) for value in (chat, source.participant_id or "") if value)
    return tuple(dict.fromkeys(filter(None, found)))


def _join_key(source: SessionSource, flags: Isolation, parts: list[str]) -> str:
    prefix = _key_prefix(flags.namespace_of(source), source.platform, source.chat_type, source.account)
    return ":".join([prefix, *map(encode_part, parts)])


@lru_cache(maxsize=1024)
def _key_prefix(namespace: str, platform: str, chat_type: str, account: str) -> str:
    place = map(encode_part, (namespace, platform, chat_type))
    return ":".join(["agent", *place, *_account_parts(account)])


def _join_owner(source: SessionSource, flags: Isolation, kind: str, *parts: str) -> str:
    where = map(encode_part, (flags.namespace_of(source), source.platform))
    return ":".join([*where, kind, *_account_parts(source.account), *map(encode_part, parts)])


def _insert_account(name: str, position: int, account: str) -> str:
    parts = name.split(":")
    return ":".join([*parts[: position + 1], *_account_parts(account), *parts[position + 1 :]])


def _account_parts(account: str) -> tuple[str, ...]:
    return (ACCOUNT, encode_part(account)) if account else ()


def _profile_namespace(profile: str | None) -> str:
    return "main" if profile in (None, "", "default") else str(profile)


def _roles_and_ids(
    source: SessionSource, flags: Isolation, aliases: Mapping[str, str]
) -> list[tuple[str, str]]:
    chat, person = source.chat_id, canonical_participant(source, aliases)
    if source.chat_type == "dm":
        chat = _canonical_id(source, chat, aliases)
        person = None if chat else person
        # An id that normalises to nothing, such as "@lid", still tells its chat from all others.
        chat = chat if chat or person else source.chat_id
    elif not flags.separates_people(source):
        person = None
    thread = source.thread_id
    ordered = [("chat", chat), ("user", person), ("thread", thread)]
    if source.chat_type != "dm":
        ordered = [("chat", chat), ("thread", thread), ("user", person)]
    return [(role, value) for role, value in ordered if value]


_routing_fields: Final = attrgetter(
    "platform", "account", "profile", "chat_type", "chat_id", "thread_id", "user_id_alt", "user_id"
)
"""The fields that keys are made of; they are mostly equal, and much cheaper to compare than identities."""


def canonical_participant(source: SessionSource, aliases: Mapping[str, str] = NO_ALIASES) -> str | None:
    """Return the person who wrote, by the one id that all their aliases share."""
    raw = source.participant_id
    return (_canonical_id(source, raw, aliases) or raw) if raw else None


def _canonical_id(source: SessionSource, value: str, aliases: Mapping[str, str]) -> str:
    if source.platform != Platform.WHATSAPP:
        return value
    bare = normalize_whatsapp_id(value)
    return aliases.get(bare, bare)
