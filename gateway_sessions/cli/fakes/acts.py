"""What people can do on a faked platform, and what an operator can do to it."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.testing.fakes.faults import (
    CutConnection,
    Delay,
    Fault,
    RateLimit,
    RefusedCall,
    ServerFault,
)
from gateway_sessions.testing.fakes.platform_server import FakePlatformServer

F = TypeVar("F", bound=FakePlatformServer)
M = TypeVar("M")

SHOWN_CALLS: Final = 10


class SentFile(NamedTuple):
    """A file of this machine that a person sends."""

    name: str
    content: bytes
    media_type: str

    @property
    def kind(self) -> str:
        """`image`, `video`, `audio`, or `document` for all others."""
        kind = self.media_type.partition("/")[0]
        return kind if kind in ("image", "video", "audio") else "document"


@dataclass(frozen=True, slots=True)
class Act(Generic[M]):
    """Something that a person does. M is what the fake names a message of a person by."""

    person: str
    place: str | None
    words: str
    wrote: M | None
    """The message that the person wrote last in this place."""

    def last(self) -> M:
        """Return the message that the person wrote last; `InvalidInputError` if there is none."""
        if self.wrote is None:
            problem = f"{self.person} has written nothing there yet"
            raise InvalidInputError(problem)
        return self.wrote

    def file(self) -> SentFile:
        """Return the file that is named; `InvalidInputError` if it cannot be read."""
        path = Path(self.words).expanduser()
        try:
            content = path.read_bytes()
        except OSError as error:
            problem = f"{self.words or 'no file'}: {error.strerror}"
            raise InvalidInputError(problem) from error
        return SentFile(path.name, content, mimetypes.guess_type(path.name)[0] or "application/octet-stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeToRun(Generic[F, M]):
    """A platform that can be faked, and what its fake offers."""

    title: str
    make: Callable[[], F]
    says: Callable[[F, Act[M]], M]
    """Lets a person write a message."""
    acts: Mapping[str, Callable[[F, Act[M]], object]]
    """What else people can do, by the names in `ACTS`."""
    sending: tuple[str, ...]
    """The methods by which bots send: planned faults hit these."""
    mention: str = ""
    """What people write where several are, to mean the bot; empty if nobody can write there."""
    listens: Callable[[F, str], object] | None = None
    """Tells the fake at which address the bot is called, if it can be called at all."""
    is_called: bool = False
    """Whether the platform always calls the bot."""
    variables: Mapping[str, str] | None = field(default_factory=dict[str, str])
    """The variables of the examples for keys, where they are none of `variable_of`; None: none can be set."""


class ActWords(NamedTuple):
    """How an act is typed, and what it does."""

    words: str
    told: str


ACTS: Final = MappingProxyType(
    {
        "edit": ActWords("TEXT", "change the message that was written last"),
        "delete": ActWords("", "take it back"),
        "thread": ActWords("TEXT", "write in the thread that begins with it"),
        "again": ActWords("", "let the platform deliver it once more"),
        "press": ActWords("LABEL", "press that button of the bot"),
        "command": ActWords("NAME [TEXT]", "use a command of the platform's own menu"),
        "send": ActWords("FILE", "send a file of this machine"),
        "block": ActWords("", "block the bot"),
        "unblock": ActWords("", "unblock it"),
        "remove": ActWords("", "take the bot out of the group"),
    }
)
"""What people can do beside writing, where a fake offers it."""
OPERATOR_ACTS: Final = MappingProxyType(
    {
        "fault": ActWords(
            "KIND", "let the bot's next message fail: pause, error, refuse, slow, cut or lost; none: no more"
        ),
        "outage": ActWords("SECONDS", "be unreachable for a while"),
        "calls": ActWords("", "show the last calls of the bot"),
        "help": ActWords("", "show this"),
    }
)
"""What an operator can do to every fake."""
FAULTS: Final[Mapping[str, Callable[[], Fault]]] = MappingProxyType(
    {
        "pause": lambda: RateLimit(retry_after=3),
        "error": ServerFault,
        "refuse": lambda: RefusedCall(403, "it was planned"),
        "slow": lambda: Delay(5),
        "cut": lambda: CutConnection.BEFORE,
        "lost": lambda: CutConnection.AFTER,
    }
)
"""The faults that can be planned: the last one does what was asked, and its answer is lost."""


def plan_fault(fake: FakePlatformServer, sending: tuple[str, ...], kind: str) -> str:
    """Let the next send fail in that way; return a sentence that says so."""
    if kind == "none":
        fake.faults.clear()
        return "No fault is planned any more."
    if kind not in FAULTS:
        problem = f"{kind!r} is no kind of fault; there are {', '.join(FAULTS)} and none"
        raise InvalidInputError(problem)
    fake.faults.plan(FAULTS[kind](), matches=lambda method, _: method in sending)
    return f"The bot's next message meets: {kind}."


def last_calls(fake: FakePlatformServer) -> str:
    """Return the last calls of the bot, one on a line."""
    calls = fake.calls[-SHOWN_CALLS:]
    lines = [f"{one.method} {one.status or 'cut'} {one.refusal}".rstrip() for one in calls]
    return "\n".join(lines) or "The bot has called nothing yet."


def help_text(offered: FakeToRun[F, M]) -> str:
    """Return what can be typed."""
    lines = ["A line is your message; `ann: hello` is one of Ann."]
    if offered.mention:
        lines.append(
            f"`#team ann: hello` is one of hers where several are; `{offered.mention}` means the bot."
        )
    lines.append(r"In place of a message, a person or you can do this, as in `ann: \edit good day`:")
    acts = {name: words for name, words in ACTS.items() if name in offered.acts}
    for name, (words, told) in {**acts, **OPERATOR_ACTS}.items():
        typed = rf"\{name} {words}"
        lines.append(f"  {typed:<22} {told}")
    return "\n".join(lines)
