"""`GroupRules`: decides for every platform which messages of a group are for the bot.

The reader of a platform puts into an `Address` what the platform tells about one message, and finds the
places where its text mentions the bot. All else is decided here, in the same way for each platform. Nothing
here waits or asks anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

from gateway_sessions.core.delivery.adapter_capabilities import is_called
from gateway_sessions.core.queue.inbound import addressee_of, command_of
from gateway_sessions.errors import InvalidInputError

Raw = TypeVar("Raw")
"""A message in the form in which its platform brings it."""

BEHIND_MENTION: Final = " ,:\n\r\t\xa0"
"""The characters that people write between a mention at the beginning and their words."""


class GroupTalk(StrEnum):
    """The messages of groups that are for the bot."""

    MENTION = "mention"  # those that mention it or answer it, commands, and all in a thread it takes part in
    ALL = "all"


class Hearing(StrEnum):
    """For whom a message is."""

    FOR_BOT = "for_bot"
    UNDECIDED = "undecided"  # it is for the bot if the bot takes part in its thread
    OVERHEARD = "overheard"  # somebody says it to others in the group
    IGNORED = "ignored"  # it is the bot's own, or a command for another bot


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The facts that a platform tells about the people to whom a message is addressed."""

    text: str = ""
    """The text as it was written, for the command at its beginning."""
    private: bool = False
    """True if only one person and the bot are in the chat."""
    own: bool = False
    """True if the bot itself has written it."""
    by_bot: bool = False
    """True if another bot has written it: it must mention this one, or two bots would never end."""
    changes: bool = False
    """True if it edits or deletes an earlier message: it is for whoever took that one."""
    mentions: bool = False
    """True if it mentions the bot."""
    answers: bool = False
    """True if it answers a message of the bot, or presses one of its buttons."""
    takes_part: bool | None = False
    """True if it stands in a thread in which the bot takes part; None: that has to be asked."""
    names: Collection[str] = ()
    """The names by which a command may call the bot; without any, each name may be its own."""


@final
@dataclass(frozen=True)  # without slots: `GroupRules[Raw](…)` marks what it makes
class GroupRules(Generic[Raw]):
    """Which messages of groups are for the bot."""

    groups: GroupTalk | str | Callable[[Raw], bool] = GroupTalk.MENTION
    """`"mention"`, `"all"`, or a function that decides for each message."""
    observe: bool = False
    """True if the agent is told at its next turn what people say to each other."""

    def __post_init__(self) -> None:
        if isinstance(self.groups, str) and self.groups not in set(GroupTalk):
            problem = f"groups = {str(self.groups)!r}: must be 'mention', 'all', or a function of the message"
            raise InvalidInputError(problem)

    @property
    def hear_all(self) -> bool:
        """True if messages are heard that do not name the bot: the platform has to show them."""
        return self.groups != GroupTalk.MENTION or self.observe

    def keeps(self, hearing: Hearing) -> bool:
        """Return whether a message is handed over; what is `Hearing.OVERHEARD` is handed over as observed."""
        if hearing is Hearing.OVERHEARD:
            return self.observe
        return hearing is not Hearing.IGNORED

    def hearing(self, address: Address, raw: Raw) -> Hearing:
        """Return for whom a message is; *raw* is what a function of the program decides by."""
        if address.own or not _is_called(address):
            return Hearing.IGNORED
        if address.changes or (address.private and not address.by_bot):
            return Hearing.FOR_BOT
        if address.by_bot:
            return _hearing(for_bot=address.mentions)
        if not isinstance(self.groups, str):
            return _hearing(for_bot=_asked(self.groups, raw))
        if self.groups == GroupTalk.ALL or _is_addressed(address):
            return Hearing.FOR_BOT
        return hearing_in_thread(takes_part=address.takes_part)


Groups: TypeAlias = GroupRules[Raw] | GroupTalk | str | Callable[[Raw], bool]
"""Which messages of groups are for the bot, as an adapter is told."""


def as_group_rules(groups: Groups[Raw]) -> GroupRules[Raw]:
    """Return the rules that an adapter was given, in whichever form."""
    return GroupRules(groups) if isinstance(groups, str) or callable(groups) else groups


MENTIONS: Final[GroupRules[Any]] = GroupRules()
"""The rules if nobody says otherwise."""


def hearing_in_thread(*, takes_part: bool | None) -> Hearing:
    """Return for whom a message is that only its thread addresses to the bot; None: that has to be asked."""
    if takes_part is None:
        return Hearing.UNDECIDED
    return _hearing(for_bot=takes_part)


def _hearing(*, for_bot: bool) -> Hearing:
    return Hearing.FOR_BOT if for_bot else Hearing.OVERHEARD


def _is_called(address: Address) -> bool:
    return is_called(addressee_of(address.text.lstrip()), address.names)


def _is_addressed(address: Address) -> bool:
    return address.mentions or address.answers or command_of(address.text.lstrip()) is not None


def _asked(decide: Callable[[Raw], bool], raw: Raw) -> bool:
    try:
        return decide(raw)
    except Exception as error:
        problem = f"a function of the program failed with it ({type(error).__name__}: {error})"
        raise InvalidInputError(problem) from error


def without_mention(text: str, mentions: Iterable[tuple[int, int]]) -> str:
    """Return a text without a mention of the bot at its beginning, or else at its end.

    There a mention tells only for whom the message is; within the text it is a word of a sentence. *mentions*
    are the places of the bot's mentions, each from its first character up to the one behind it.
    """
    places = sorted(mentions)
    at_beginning = False
    start = 0
    for first, behind in places:
        if text[start:first].strip(BEHIND_MENTION):
            break
        at_beginning, start = True, behind
    if at_beginning:
        return text[start:].lstrip(BEHIND_MENTION)
    end = len(text)
    for first, behind in reversed(places):
        if text[behind:end].strip():
            break
        end = first
    return text[:end].rstrip() if end < len(text) else text
