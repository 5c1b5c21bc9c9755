"""`Command` and `CommandCall`: how a slash command is declared and what its handler gets.

    async def ping(call: CommandCall) -> str:
        return "pong"

    Gateway(store, agent=answer, commands=[Command("ping", ping, summary="Say pong.")])

A command is carried out at once, whatever runs on the lane. The gateway notes the command before and sends
the answer afterwards, so a handler does neither.
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
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, Receipt
from gateway_sessions.core.queue.slash_commands import check_command_name
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.agents.cache import AgentCache
from gateway_sessions.runtime.gateway.running_turn import RunningTurn
from gateway_sessions.runtime.observability.event_stream import Events
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.runtime.user_code import check_function, check_instance, check_text, tuple_of

AT_ONCE: Final = timedelta(seconds=10)
"""The time that a command may take while its sender waits."""
IN_BACKGROUND: Final = timedelta(minutes=2)
_NO_COMMANDS: Final = 'give a list, as in [Command("ping", ping)]'


class CommandHost(Protocol):
    """The part of a gateway that a command can use."""

    @property
    def store(self) -> SessionStore:
        """The store."""
        ...

    @property
    def config(self) -> Config:
        """The configuration."""
        ...

    @property
    def agents(self) -> AgentCache:
        """The warm agents."""
        ...

    @property
    def events(self) -> Events:
        """The events of the gateway."""
        ...

    @property
    def commands(self) -> CommandSet:
        """All commands."""
        ...

    def running_turn(self, session_key: str) -> RunningTurn | None:
        """Return the turn that runs on a lane; None if none runs."""
        ...

    async def admit(self, message: InboundMessage, *, solo: bool = False) -> Receipt:
        """Take a message in for the agent, even if it looks like a command."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """One use of a command by a person."""

    gateway: CommandHost
    command: Command
    name: str
    """The name as it was typed: the command's own or an alias."""
    arguments: str
    """The text behind the name."""
    message: InboundMessage
    session_key: str
    """The lane of the person, the only one that the command may touch."""
    owner: str
    """The owner of the lane."""
    entry: SessionEntry | None
    """The lane's session when the command came."""
    scope: Scope
    """The sessions that the person may see."""

    @property
    def store(self) -> SessionStore:
        """The store."""
        return self.gateway.store

    @property
    def source(self) -> SessionSource:
        """The person and the place."""
        return self.message.source

    @property
    def author(self) -> str | None:
        """The person, if the lane is a room's and the person is known; else None."""
        return next(iter(self.scope.owners - {self.owner}), None) if is_room_owner(self.owner) else None

    @property
    def own(self) -> Scope:
        """The sessions to which this lane may be switched: those of the lane's owner."""
        return Scope(owners=self.scope.owners & {self.owner})

    @property
    def shown(self) -> Scope:
        """The sessions that may be listed here: outside of a direct chat, only those of this lane."""
        direct = self.source.chat_type == "dm"
        return self.scope.shown_in(owner=self.owner, session_key=self.session_key, direct=direct)


Handler: TypeAlias = Callable[[CommandCall], Awaitable[str | None]]
"""Carries a command out and returns the answer; None: no answer is sent."""
Allowed: TypeAlias = Callable[[CommandCall], bool | Awaitable[bool]]
"""Returns whether a person may use a command."""


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command: a name, and the handler that carries it out."""

    name: str
    handler: Handler
    _: KW_ONLY
    summary: str = ""
    """What the command does, in one sentence, for /help."""
    usage: str = ""
    """The arguments as people write them down: `[title]`."""
    aliases: tuple[str, ...] = ()
    limit: timedelta = AT_ONCE
    """The time after which the command is cut off."""
    begun: str | None = None
    """The text that people get at once from a command that takes long and runs in the background."""
    urgent: bool = False
    """Whether one such command of each lane runs even when too many commands are under way."""
    queued: Callable[[InboundMessage], InboundMessage | None] | None = None
    """Returns the message for the agent that a use of the command brings; it gets a turn of its own."""

    def __post_init__(self) -> None:
        check_text("the name of a command", self.name)
        tuple_of(f"aliases of /{self.name}", self.aliases, str, 'give names, as in ("p",)')
        for name in self.names:
            check_command_name(name)
        check_function(f"the handler of /{self.name}", self.handler, "give an async function of the call")
        check_instance(f"the limit of /{self.name}", self.limit, timedelta, "give a timedelta")
        if self.limit <= timedelta():
            problem = f"the limit of /{self.name} must be more than nothing"
            raise InvalidInputError(problem)

    @property
    def names(self) -> tuple[str, ...]:
        """The name and the aliases."""
        return (self.name, *self.aliases)

    @property
    def help(self) -> CommandHelp:
        """The entry of the command in /help."""
        return CommandHelp(
            name=self.name, summary=self.summary, usage=self.usage, aliases=tuple(self.aliases)
        )


class CommandSet:
    """The commands of a gateway by name. A later command takes a name over from an earlier one."""

    def __init__(
        self, *several: Iterable[Command], allowed: Allowed | None = None, unknown: Command | None = None
    ) -> None:
        """*unknown* answers every name that no command has."""
        if allowed is not None:
            check_function("allowed", allowed, "give a function of the call that returns a bool")
        self._allowed = allowed
        given = [one for commands in several for one in tuple_of("commands", commands, Command, _NO_COMMANDS)]
        self._by_name = {name: one for one in given for name in one.names}
        for name, one in tuple(self._by_name.items()):  # some platforms know no hyphens in commands
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
        """Yield each command that can be called by its own name."""
        return (one for name, one in self._by_name.items() if one.name == name)

    def is_command(self, message: InboundMessage) -> bool:
        """Return whether a message is a command; a message of the program never is."""
        if message.internal or message.command is None:
            return False
        return message.command in self._by_name or self._unknown is not None

    def edit_without_command(self, change: InboundMessage) -> InboundMessage:
        """Return an edit of a message that a command brought, without the command."""
        if change.kind is not MessageKind.EDIT or change.internal:
            return change
        message = msgspec.structs.replace(change, kind=MessageKind.NEW, revision=0)
        command = self._by_name.get(message.command or "")
        brought = command.queued(message) if command is not None and command.queued is not None else None
        return change if brought is None else change.with_text(brought.text, brought.attachments)

    @property
    def names(self) -> frozenset[str]:
        """All names and aliases."""
        return frozenset(self._by_name)

    @property
    def help_entries(self) -> Sequence[CommandHelp]:
        """The entries of all commands in /help."""
        return [one.help for one in self]

    async def is_permitted(self, call: CommandCall) -> bool:
        """Return whether the person may use the command here."""
        if self._allowed is None:
            return True
        answer = self._allowed(call)
        return bool(await answer if inspect.isawaitable(answer) else answer)
