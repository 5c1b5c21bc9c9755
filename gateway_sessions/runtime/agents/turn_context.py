"""`TurnContext`: what an agent reads of its turn, and how it speaks, streams and reports use.

This module knows nothing of queues, leases and adapters: the runner of the turn hands in `TurnPorts`, to
which the wishes of the agent go. After the end of the turn they go nowhere, even if a task of the agent lives
on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias, Unpack

import msgspec

from gateway_sessions.core.delivery.outbound_messages import Reply, TextFormat
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Attachment, InboundMessage, turn_text
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.storable_text import check_choice
from gateway_sessions.core.transcript.messages import Message, message_from
from gateway_sessions.core.transcript.model_history import Chat, model_rows
from gateway_sessions.core.usage.usage_events import Usage, UsageFacts, check_usage, make_usage
from gateway_sessions.errors import FencedError, InvalidInputError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.search_tool import SessionSearch
from gateway_sessions.runtime.user_code import check_text
from gateway_sessions.storage.database import SessionDB

DELAYED: Final = timedelta(minutes=5)
"""The wait after which the agent is told that a message is old: in five minutes an answer may be overdue."""

MOST_FETCHED: Final = 20 << 20
"""The most bytes of a file that an agent gets, unless it asks for more."""

_DONE_ALREADY: Final = (
    "What is in the history was done already: do not do it again. A call without a result may have had its "
    "effect: check first."
)

Append: TypeAlias = Callable[[Sequence[Message]], Awaitable[object]]
Say: TypeAlias = Callable[[Reply], Awaitable[object]]
Show: TypeAlias = Callable[[str, TextFormat], Awaitable[object]]
Fetch: TypeAlias = Callable[[Attachment, int], Awaitable[bytes]]
Read: TypeAlias = Callable[[int | None], Awaitable[list[Chat]]]


async def fetch_nowhere(_: Attachment, __: int) -> bytes:
    """Refuse: the adapter of the message cannot fetch files."""
    problem = "files of this platform cannot be fetched"
    raise InvalidInputError(problem)


async def _see_nothing(_: SessionSource) -> Scope:
    """Return a scope without any session: the turn has no store."""
    return Scope()


async def _show_nowhere(partial: str, text_format: TextFormat) -> None:
    """Show nothing: the platform knows no edits."""


def _count_nowhere(usage: Usage) -> None:
    """Count nothing: nobody adds the use up."""


def _no_prompt() -> str:
    """Return no prompt: nothing is known of the place."""
    return ""


class TurnPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The functions to which the wishes of an agent go."""

    append: Append
    """Make these rows part of the transcript, durably."""
    say: Say
    """Send this now, before the reply."""
    read: Read
    """Read the conversation, or the last so many messages of it."""
    show: Show = _show_nowhere
    """Show how the reply looks so far, if the platform can; never fails the turn."""
    fetch: Fetch = fetch_nowhere
    """Fetch the content of an attachment from the platform."""
    db: SessionDB | None = None
    """The database of all conversations; None: there are no others."""
    scope_of: Callable[[SessionSource], Awaitable[Scope]] = _see_nothing
    """Return the sessions that a person may see."""
    usage: Callable[[Usage], object] = _count_nowhere
    """Count a use of a model; it is stored with the turn."""
    prompt: Callable[[], str] = _no_prompt
    """Return where the conversation takes place, as a part of the system prompt."""


@dataclass(slots=True, eq=False, repr=False)
class TurnControl:
    """The side of a turn that agents do not see: its ports, its signs of life, and its end."""

    ports: TurnPorts
    progress_count: int = 0
    """The number of signs of life. Unlike a time, a number cannot be set back with the clock."""
    doing: str | None = None
    """The activity that the agent reported last, for people who ask."""
    shown: str | None = None
    """The reply as it was shown last."""
    shown_format: TextFormat = TextFormat.PLAIN
    said: list[str] = field(default_factory=list[str])
    """The texts that were sent before the reply."""
    side_work: int = 0
    """The number of `sub_work` blocks that are open: an interruption would waste their work."""
    is_ended: bool = False
    is_fenced: bool = False

    def end(self) -> None:
        """End the turn: from now on the agent can do nothing with it."""
        self.is_ended = True

    def fence(self) -> None:
        """Note that the turn has lost its lane: from now on the agent can only report use."""
        self.is_fenced = True


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TurnContext:
    """One turn, as its agent sees it."""

    entry: SessionEntry
    """The entry of the session as it was when the turn began."""
    messages: tuple[InboundMessage, ...]
    """The messages of the turn: one, or several that were merged."""
    seq: int
    """The turn's place on its lane."""
    token: int
    """The number that rises with each try of any turn of the lane."""
    clock: Clock = field(repr=False)
    control: InitVar[TurnControl]
    """The side of the turn that agents do not see."""
    attempt: int = 1
    recovered: str | None = None
    """The note for the agent if an earlier try was cut off."""
    deadline: datetime | None = None
    """The time at which the turn is stopped; None: never."""
    _control: TurnControl = field(init=False)
    _uses: int = field(default=0, init=False)

    def __post_init__(self, control: TurnControl) -> None:
        self._control = control

    def __repr__(self) -> str:
        return f"<turn {self.seq} of {self.session_key}, session {self.session_id}, attempt {self.attempt}>"

    @property
    def prompt(self) -> str:
        """The place of the conversation, described as a part of the system prompt."""
        return self._control.ports.prompt()

    @property
    def session_key(self) -> str:
        """The lane."""
        return self.entry.session_key

    @property
    def session_id(self) -> str:
        """The session that the turn is part of."""
        return self.entry.session_id

    @property
    def source(self) -> SessionSource:
        """The person who wrote, and the place."""
        return self.messages[0].source

    @property
    def text(self) -> str:
        """The text of the messages, without attachments."""
        return turn_text(self.messages)

    @property
    def model(self) -> str | None:
        """The model that a person chose for this session; None: the agent's own."""
        return (self.model_override or {}).get("model")

    @property
    def model_override(self) -> Mapping[str, str] | None:
        """The chosen model with its provider and address, if those were chosen."""
        return self.entry.model_override

    @property
    def idempotency_key(self) -> str:
        """A name for effects outside, which no other turn has, and no other try of this one."""
        return f"{self.session_id}:{self.seq}:{self.token}"

    @property
    def is_over(self) -> bool:
        """Whether the agent has answered, or the turn has lost its lane."""
        return self._control.is_ended or self._control.is_fenced

    async def history(self, limit: int | None = None, *, details: bool = False) -> list[Chat]:
        """Read the conversation as it stands, this turn's message last, as endpoints for models accept it.

        An agent that remembers its session need not read it. *limit* is for an agent that cannot take all of
        a long conversation: so many of the last messages, and those of this turn. With *details*, rows also
        have what no endpoint knows: times, names, ids, attachments, reasoning.
        """
        self._check_running()
        rows = await self._control.ports.read(limit)
        return rows if details else model_rows(rows)

    async def fetch(self, attachment: Attachment, *, most: int = MOST_FETCHED) -> bytes:
        """Return the content of an attachment of a message, which the adapter fetches from the platform.

        `InvalidInputError` if it has more than *most* bytes, or is no file of that platform.
        """
        self._check_running()
        content = await self._control.ports.fetch(attachment, most)
        self.progress()
        return content

    async def session_search(self) -> SessionSearch:
        """Return a search of the earlier conversations that may be shown in this place, as a tool.

        In a direct chat these are those of the person, in a room those of the room. To read more, make a
        `SessionSearch` with another scope.
        """
        self._check_running()
        ports = self._control.ports
        if ports.db is None:
            raise InvalidInputError("there are no earlier conversations here")  # noqa: TRY003 -- as it is
        person, direct = await ports.scope_of(self.source), self.source.chat_type == "dm"
        scope = person.shown_in(owner=self.entry.owner, session_key=self.session_key, direct=direct)
        return SessionSearch(db=ports.db, scope=scope, current_session_id=self.session_id)

    async def append(self, *messages: Message | Mapping[str, Any]) -> None:
        """Add rows to the transcript, durably: they survive a crash of this turn.

        For calls of tools and their results. The user's row is there already, and the reply follows.
        """
        self._check_running()
        await self._control.ports.append([message_from(one) for one in messages])
        self.progress()

    async def say(self, said: Reply | str) -> None:
        """Send a message now, before the reply; an empty one is not sent.

        The transcript gets the message only if the turn ends without a reply: then it counts as the reply.
        """
        self._check_running()
        reply = said if isinstance(said, Reply) else Reply(said)
        if reply.message is not None:
            await self._control.ports.say(reply)
            self._control.said.append(reply.text)
        self.progress()

    async def show(self, partial: str, *, format: TextFormat = TextFormat.PLAIN) -> None:  # noqa: A002 -- as in Reply
        """Show the reply so far, on platforms where a message can be changed."""
        self._check_running()
        check_text("what is shown", partial)
        chosen = check_choice("format", format, TextFormat)
        self._control.shown, self._control.shown_format = partial, chosen
        await self._control.ports.show(partial, chosen)
        self.progress()

    def stream(self, *, format: TextFormat = TextFormat.PLAIN) -> TurnStream:  # noqa: A002 -- as in Reply
        """Return a stream that collects the pieces of a reply and shows them."""
        return TurnStream(self, format)

    def report_usage(self, usage: Usage | None = None, **facts: Unpack[UsageFacts]) -> None:
        """Note one use of a model: `report_usage(model="…", input_tokens=…, output_tokens=…)`.

        An agent that is being stopped can do this as well: use is counted, whatever becomes of the turn.
        """
        if self._control.is_ended:
            raise FencedError(self.session_key, self.token)
        if usage is None:
            self._uses += 1
            usage = make_usage(f"{self.idempotency_key}:{self._uses}", self.clock.now(), **facts)
        else:
            usage = check_usage(usage)
        self._control.ports.usage(usage)
        self.progress()

    def progress(self, doing: str | None = None) -> None:
        """Give a sign of life: a turn without one for long is stopped. *doing* says what the agent does."""
        self._control.progress_count += 1
        if doing is not None:
            self._control.doing = doing

    @contextmanager
    def sub_work(self) -> Generator[None]:
        """Let new messages wait within the block and not interrupt it, as other agents or long work run."""
        self._control.side_work += 1
        self.progress()
        try:
            yield
        finally:
            self._control.side_work -= 1
            self.progress()

    def _check_running(self) -> None:
        if self.is_over:
            raise FencedError(self.session_key, self.token)


def recovery_note(attempt: int, admitted_at: datetime, now: datetime, *, begun: bool = False) -> str | None:
    """Return the note to the agent about a turn that is late or repeated; None for a fresh turn.

    *begun*: the turn has written to the transcript before, even if that try ended in order.
    """
    notes: list[str] = []
    if attempt > 1:
        notes.append(f"This turn was cut off before, and this is attempt {attempt}. {_DONE_ALREADY}")
    elif begun:
        notes.append(f"This turn has begun before, and was stopped. {_DONE_ALREADY}")
    if now - admitted_at > DELAYED:
        notes.append(f"The message was sent at {admitted_at:%Y-%m-%d %H:%M} UTC and waited until now.")
    return " ".join(notes) or None


def control_of(turn: TurnContext) -> TurnControl:
    """Return the side of a turn that agents do not see, for modules of this package that run the turn."""
    return turn._control  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # the one door


class TurnStream:
    """Collects the pieces of a reply and shows it as it grows."""

    __slots__ = ("_format", "_pieces", "_turn")

    def __init__(self, turn: TurnContext, format: TextFormat = TextFormat.PLAIN) -> None:  # noqa: A002 -- as in Reply
        self._turn = turn
        self._format = format
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The pieces so far, as one text."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    async def write(self, piece: str) -> None:
        """Add a piece, and show the reply so far."""
        check_text("a piece of a reply", piece)
        self._pieces.append(piece)
        await self._turn.show(self.text, format=self._format)
