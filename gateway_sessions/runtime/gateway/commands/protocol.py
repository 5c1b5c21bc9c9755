"""`Command` and `CommandCall`: how a slash command is declared and what its handler gets.

    async def ping(call: CommandCall) -> str:
        return "pong"

    Gateway(store, agent=answer, commands=[Command("ping", ping, summary="Say pong.")])

A command is carried out at once, whatever runs on the lane; the gateway writes it down before and answers
afterwards, so a handler does neither.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Final, Protocol, TypeAlias

import msgspec

from gateway_sessions.config import Config
from gateway_sessions.core.identity.keys import is_room_owner
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.core.queue.commands import check_command_name
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, Receipt
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.agents.cache import AgentCache
from gateway_sessions.runtime.gateway.running_turn import RunningTurn
from gateway_sessions.runtime.observability.event_stream import Events
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.runtime.user_code import check_function, check_is, check_text, each_of

AT_ONCE: Final = timedelta(seconds=10)
"""How long a command may take while whoever brought it waits."""
IN_BACKGROUND: Final = timedelta(minutes=2)
_NO_COMMANDS: Final = 'give a list, as in [Command("ping", ping)]'


class CommandHost(Protocol):
    """What a command can reach: the gateway that carries it out."""

    @property
    def store(self) -> SessionStore:
        """The sessions."""
        ...

    @property
    def config(self) -> Config:
        """The configuration."""
        ...

    @property
    def agents(self) -> AgentCache:
        """The agents that are kept warm."""
        ...

    @property
    def events(self) -> Events:
        """What happens."""
        ...

    @property
    def commands(self) -> CommandSet:
        """All commands there are."""
        ...

    def running_turn(self, session_key: str) -> RunningTurn | None:
        """The turn that runs on a lane."""
        ...

    async def admit(self, message: InboundMessage, *, solo: bool = False) -> Receipt:
        """Take a message in for the agent, even if it looks like a command."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """Somebody uses a command."""

    gateway: CommandHost
    command: Command
    name: str
    """The name that was typed, which may be another one for the command."""
    arguments: str
    """What stands behind it."""
    message: InboundMessage
    session_key: str
    """The lane of whoever asks: the only one that the command may touch."""
    owner: str
    """Whose lane it is."""
    entry: SessionEntry | None
    """The lane's session when the command came."""
    scope: Scope
    """What the person who asks may see."""

    @property
    def store(self) -> SessionStore:
        """The sessions."""
        return self.gateway.store

    @property
    def source(self) -> SessionSource:
        """Who asks, and where."""
        return self.message.source

    @property
    def author(self) -> str | None:
        """The person who asks, where the lane is not theirs but a room's; None if nobody can tell, too."""
        return next(iter(self.scope.owners - {self.owner}), None) if is_room_owner(self.owner) else None

    @property
    def own(self) -> Scope:
        """The sessions that may be led to this lane: a person's to their lanes, a room's to that room."""
        return Scope(owners=self.scope.owners & {self.owner})

    @property
    def shown(self) -> Scope:
        """The sessions that may be listed here: among others, only those of this very place."""
        return self.own if self.source.chat_type == "dm" else Scope.lane(self.session_key)


Handler: TypeAlias = Callable[[CommandCall], Awaitable[str | None]]
"""Carries a command out and returns what people are told; None: nothing."""
Allowed: TypeAlias = Callable[[CommandCall], bool | Awaitable[bool]]
"""Whether somebody may use a command."""


@dataclass(frozen=True, slots=True)
class Command:
    """Something that people can ask for with a slash and a name."""

    name: str
    handler: Handler
    _: KW_ONLY
    summary: str = ""
    """What it does, in one sentence."""
    usage: str = ""
    """The arguments it takes, as people write them down: `[title]`."""
    aliases: tuple[str, ...] = ()
    limit: timedelta = AT_ONCE
    """It is cut off after so long."""
    begun: str | None = None
    """For one that takes long: it is carried out in the background, and people are told this at once."""
    urgent: bool = False
    """Whether there is room for it even when too many commands are under way: for one on a lane at a time."""
    queued: Callable[[InboundMessage], InboundMessage | None] | None = None
    """For one that may bring a message for the agent: that message, which gets a turn of its own."""

    def __post_init__(self) -> None:
        check_text("the name of a command", self.name)
        each_of(f"aliases of /{self.name}", self.aliases, str, 'give names, as in ("p",)')
        for name in self.names:
            check_command_name(name)
        check_function(f"the handler of /{self.name}", self.handler, "give an async function of the call")
        check_is(f"the limit of /{self.name}", self.limit, timedelta, "give a timedelta")
        if self.limit <= timedelta():
            problem = f"the limit of /{self.name} must be more than nothing"
            raise InvalidInputError(problem)

    @property
    def names(self) -> tuple[str, ...]:
        """All that it is called."""
        return (self.name, *self.aliases)

    @property
    def help(self) -> CommandHelp:
        """What people are told of it."""
        return CommandHelp(
            name=self.name, summary=self.summary, usage=self.usage, aliases=tuple(self.aliases)
        )


class CommandSet:
    """The commands of a gateway by name. A later one takes its names from those before it."""

    def __init__(
        self, *several: Iterable[Command], allowed: Allowed | None = None, unknown: Command | None = None
    ) -> None:
        """*unknown* answers for every name that no command has."""
        if allowed is not None:
            check_function("allowed", allowed, "give a function of the call that returns a bool")
        self._allowed = allowed
        given = [one for commands in several for one in each_of("commands", commands, Command, _NO_COMMANDS)]
        self._by_name = {name: one for one in given for name in one.names}
        for name, one in tuple(self._by_name.items()):  # as platforms can spell it, which know no hyphens
            self._by_name.setdefault(name.replace("-", "_"), one)
            self._by_name.setdefault(name.replace("_", "-"), one)
        self._unknown = unknown

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Command:
        found = self._by_name.get(name, self._unknown)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[Command]:
        """Each command once that can still be called by its first name."""
        return (one for name, one in self._by_name.items() if one.name == name)

    def is_command(self, message: InboundMessage) -> bool:
        """Whether a message is a command. What the program says is none, whatever it begins with."""
        if message.internal or message.command is None:
            return False
        return message.command in self._by_name or self._unknown is not None

    def edit_without_command(self, change: InboundMessage) -> InboundMessage:
        """An edit of what a command brought for the agent, without the command."""
        if change.kind is not MessageKind.EDIT or change.internal:
            return change
        message = msgspec.structs.replace(change, kind=MessageKind.NEW, revision=0)
        command = self._by_name.get(message.command or "")
        brought = command.queued(message) if command is not None and command.queued is not None else None
        return change if brought is None else change.with_text(brought.text, brought.attachments)

    @property
    def names(self) -> frozenset[str]:
        """All that they are called."""
        return frozenset(self._by_name)

    @property
    def help_entries(self) -> Sequence[CommandHelp]:
        """What people are told of all of them."""
        return [one.help for one in self]

    async def is_permitted(self, call: CommandCall) -> bool:
        """Whether that person may use that command here."""
        if self._allowed is None:
            return True
        answer = self._allowed(call)
        return bool(await answer if inspect.isawaitable(answer) else answer)
