"""Session keys: how a source becomes the key of its lane, the owner of its sessions and the author.

A key is `agent:<namespace>:<platform>:<chat type>` and the parts that tell conversations apart. A `:` or `%`
inside a part is percent-encoded, so that no id can pretend to be two parts. Two different origins may still
read the same (user 7 of chat C, thread 7 of chat C), because a plain key does not say which part is which:
`identity` does, and the store hands an entry out only to the identity it belongs to.

A message that came through a named account has that name in its keys and owners, behind the mark `%account`:
`agent:main:telegram:dm:%account:support:7`. Those of accounts without a name are as they always were.
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
"""Where an owner says that it is a room."""
PLATFORM_AT: Final = 2
CHAT_TYPE_AT: Final = 3
"""Where a key says these."""
ACCOUNT: Final = "%account"
"""Stands before the name of an account. No encoded part has a bare `%`, so nothing else reads like it."""
HERMES_TERMINAL: Final = "cli"
"""The platform of conversations that Hermes held at a terminal."""
ROLES: Final = frozenset({"%chat", "%user", "%thread"})
"""Stand before the parts of an identity, for the same reason."""
NO_ALIASES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """Who shares a conversation, and which profile of the gateway it belongs to."""

    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    profile: str | None = None
    multiplex_profiles: bool = False
    """Whether each message says for which profile it is; else all are for the one above."""

    def separates_people(self, source: SessionSource) -> bool:
        """Whether people in this chat have a session each. Threads need both flags, as keys always did."""
        if source.chat_type == "dm":
            return True
        return self.group_sessions_per_user and (not source.thread_id or self.thread_sessions_per_user)

    @property
    def namespace(self) -> str:
        """The profile's part of a key; the default profile is called main."""
        return _namespace(self.profile)

    def namespace_of(self, source: SessionSource) -> str:
        """The same of the profile that a message is for."""
        if self.multiplex_profiles and source.profile:
            return _namespace(source.profile)
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
    """Whether several people talk in one session here: exactly where the key names no person."""
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
    """The lane of *source*. *aliases* maps normalised WhatsApp ids to the one id their owner goes by."""
    flags = Isolation(
        group_sessions_per_user=group_sessions_per_user,
        thread_sessions_per_user=thread_sessions_per_user,
        profile=profile,
    )
    return session_key(source, flags, aliases)


def session_key(source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """The plain key: what people and files know the lane by."""
    return _join(source, flags, [value for _, value in _parts(source, flags, aliases)])


def identity(source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """The key with each part's role spelt out; serves as the key itself where the plain one is taken.

    A bare `%` cannot occur in an encoded part, so no plain key ever equals an identity.
    """
    prefix = _join(source, flags, [])
    return prefix + "".join(
        f":%{role}:{encode_part(value)}" for role, value in _parts(source, flags, aliases)
    )


def unencoded_key(source: SessionSource, flags: Isolation) -> str:
    """The key as Hermes joins it, which may be that of another origin as well; only to know its lanes by."""
    values = (value for _, value in _parts(source, flags, NO_ALIASES))
    return ":".join(("agent", flags.namespace_of(source), source.platform, source.chat_type, *values))


def same_conversation(
    one: SessionSource, other: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES
) -> bool:
    """Whether two origins belong to one conversation, whatever their plain keys say."""
    return _routing(one) == _routing(other) or identity(one, flags, aliases) == identity(
        other, flags, aliases
    )


def owner_of(source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES) -> str:
    """Whose session it is: the person of a private lane, the room of a shared one."""
    if flags.separates_people(source):
        return person_of(source, flags, aliases) or room_of(source, flags)
    return room_of(source, flags)


def person_of(source: SessionSource, flags: Isolation, aliases: Mapping[str, str] = NO_ALIASES) -> str | None:
    """The person who wrote, or the direct chat where a platform names no person."""
    if participant := participant_of(source, aliases):
        return _owner(source, flags, "user", participant)
    if source.chat_type == "dm" and source.chat_id:
        return _owner(source, flags, "chat", _canonical(source, source.chat_id, aliases) or source.chat_id)
    return None


def author_on(owner: str, participant: str | None) -> str | None:
    """The person who wrote on a lane of that owner, as an owner; None if a room does not tell who."""
    if not is_room(owner):
        return owner
    if not participant:
        return None
    person = ":".join((*owner.split(":")[:ROOM_AT], "user", encode_part(participant)))
    return owner_at_account(person, account_of(owner))


def participant_in(author: str) -> str:
    """The id by which the person writes in rooms who is that owner."""
    return decode_part(without_account(author).rpartition(":")[2])


def place_in(key: str) -> tuple[str, str]:
    """The platform and the chat type that a key tells; a key that is not like ours tells neither."""
    parts = key.split(":")
    if len(parts) <= CHAT_TYPE_AT or parts[0] != "agent":
        return "", "dm"
    return decode_part(parts[PLATFORM_AT]), decode_part(parts[CHAT_TYPE_AT])


def is_of_terminal(owner: str) -> bool:
    """Whether an owner is who sits at the terminal: of this program, or of Hermes, which calls it `cli`."""
    parts = owner.split(":")
    return len(parts) > 1 and parts[1] in (Platform.LOCAL, HERMES_TERMINAL)


def is_room(owner: str) -> bool:
    """Whether an owner is a room that several people share, and no person."""
    parts = owner.split(":")
    return len(parts) > ROOM_AT and parts[ROOM_AT] == "room"


def room_of(source: SessionSource, flags: Isolation) -> str:
    """The chat, or the thread in it, that several people share. A direct chat may have the id of a group."""
    where = (source.chat_type, source.chat_id, *filter(None, [source.thread_id]))
    return _owner(source, flags, "room", *where)


def account_of(name: str) -> str:
    """The account that a key or an owner names; empty: one without a name."""
    _, mark, rest = name.partition(f":{ACCOUNT}:")
    return decode_part(rest.split(":", 1)[0]) if mark else ""


def without_account(name: str) -> str:
    """The key or the owner that the same would have at an account without a name."""
    before, mark, rest = name.partition(f":{ACCOUNT}:")
    if not mark:
        return name
    _, colon, behind = rest.partition(":")
    return f"{before}{colon}{behind}"


def key_at_account(key: str, account: str) -> str:
    """The key at that account of the lane that has this one at an account without a name."""
    return _with_account(key, CHAT_TYPE_AT, account)


def owner_at_account(owner: str, account: str) -> str:
    """The owner at that account who is called this at an account without a name."""
    return _with_account(owner, ROOM_AT, account)


def rooms_beside(owner: str) -> tuple[str, str]:
    """How owners of rooms begin that a person writes in, and how those of them begin that are elsewhere."""
    rooms = ":".join((*owner.split(":")[:ROOM_AT], "room", ""))
    account = account_of(owner)
    if account:
        return f"{rooms}{ACCOUNT}:{encode_part(account)}:", ACCOUNT
    return rooms, f"{rooms}{ACCOUNT}:"


def sharing_of(chat_type: str, thread_id: str | None, owner: str) -> Sharing:
    """By which rule a session belongs to its owner."""
    if chat_type == "dm":
        return Sharing.DIRECT
    if is_room(owner):
        return Sharing.THREAD if thread_id else Sharing.ROOM
    return Sharing.PERSON_IN_THREAD if thread_id else Sharing.PERSON


def encode_part(value: str) -> str:
    """Make a part of a key that cannot be mistaken for two."""
    return value.replace("%", "%25").replace(":", "%3A") if "%" in value or ":" in value else value


def decode_part(part: str) -> str:
    """The value that `encode_part` has made a part of a key."""
    return part.replace("%3A", ":").replace("%25", "%")


_BETWEEN_DIGITS: Final = str.maketrans("", "", "-()./\u2010\u2011\u2012\u2013")


def normalize_whatsapp(value: str) -> str:
    """The bare number or id in any form the bridge uses: `+49…`, `49…@s.whatsapp.net`, `49…:3@lid`.

    A number may also be written as people write it, `+49 (151) 234-56`.
    """
    bare = "".join(value.split()).replace("+", "", 1).split(":", 1)[0].split("@", 1)[0]
    digits = bare.translate(_BETWEEN_DIGITS)
    return digits if digits.isdecimal() and digits.isascii() else bare


def aliased_ids(source: SessionSource) -> tuple[str, ...]:
    """The identifiers of this source that may be one of several for the same person."""
    if source.platform != Platform.WHATSAPP:
        return ()
    chat = source.chat_id if source.chat_type == "dm" else ""
    found = (normalize_whatsapp(value) for value in (chat, source.participant_id or "") if value)
    return tuple(dict.fromkeys(filter(None, found)))


def _join(source: SessionSource, flags: Isolation, parts: list[str]) -> str:
    prefix = _prefix(flags.namespace_of(source), source.platform, source.chat_type, source.account)
    return ":".join([prefix, *map(encode_part, parts)])


@lru_cache(maxsize=1024)
def _prefix(namespace: str, platform: str, chat_type: str, account: str) -> str:
    place = map(encode_part, (namespace, platform, chat_type))
    return ":".join(["agent", *place, *_of_account(account)])


def _owner(source: SessionSource, flags: Isolation, kind: str, *parts: str) -> str:
    where = map(encode_part, (flags.namespace_of(source), source.platform))
    return ":".join([*where, kind, *_of_account(source.account), *map(encode_part, parts)])


def _with_account(name: str, behind: int, account: str) -> str:
    parts = name.split(":")
    return ":".join([*parts[: behind + 1], *_of_account(account), *parts[behind + 1 :]])


def _of_account(account: str) -> tuple[str, ...]:
    return (ACCOUNT, encode_part(account)) if account else ()


def _namespace(profile: str | None) -> str:
    return "main" if profile in (None, "", "default") else str(profile)


def _parts(source: SessionSource, flags: Isolation, aliases: Mapping[str, str]) -> list[tuple[str, str]]:
    chat, person = source.chat_id, participant_of(source, aliases)
    if source.chat_type == "dm":
        chat = _canonical(source, chat, aliases)
        person = None if chat else person
        # An id of which nothing is left, such as "@lid", still tells its chat from all others.
        chat = chat if chat or person else source.chat_id
    elif not flags.separates_people(source):
        person = None
    thread = source.thread_id
    ordered = [("chat", chat), ("user", person), ("thread", thread)]
    if source.chat_type != "dm":
        ordered = [("chat", chat), ("thread", thread), ("user", person)]
    return [(role, value) for role, value in ordered if value]


_routing: Final = attrgetter(
    "platform", "account", "profile", "chat_type", "chat_id", "thread_id", "user_id_alt", "user_id"
)
"""All that keys are made of; mostly equal, and much cheaper to compare."""


def participant_of(source: SessionSource, aliases: Mapping[str, str] = NO_ALIASES) -> str | None:
    """The person who wrote, by the id that all their aliases share."""
    raw = source.participant_id
    return (_canonical(source, raw, aliases) or raw) if raw else None


def _canonical(source: SessionSource, value: str, aliases: Mapping[str, str]) -> str:
    if source.platform != Platform.WHATSAPP:
        return value
    bare = normalize_whatsapp(value)
    return aliases.get(bare, bare)
