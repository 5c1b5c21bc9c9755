"""A conversation at a terminal: the session that it continues, the recap before it, and the hint after it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from functools import partial
from traceback import format_exception
from typing import Any, Final

from rich.panel import Panel
from rich.text import Text

import gateway_sessions as gs
from gateway_sessions._process.background import in_background
from gateway_sessions.adapters.console import Console
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.conversation_ctrl_c import CtrlC
from gateway_sessions.cli.output.terminal import print_answer
from gateway_sessions.cli.settings import name_of_program
from gateway_sessions.core.display_text import visible_text
from gateway_sessions.core.identity.keys import is_terminal_owner
from gateway_sessions.core.notices.human_units import counted
from gateway_sessions.core.transcript.messages import Role
from gateway_sessions.core.transcript.recap import Recap, RecapForm, make_recap
from gateway_sessions.runtime.store.open_store import queue_of

RECAP_MESSAGES: Final = 400
"""Last messages that are read for a recap: enough for some exchanges with tool calls between them."""
BEHIND_ALL: Final = 1 << 62
SOURCE: Final = gs.SessionSource(platform=Console.platform, chat_id="local", user_id="local")
HERMES_TERMINAL: Final = "main:cli:local"
"""The owner of conversations that Hermes held at a terminal."""
SIGNS: Final = {Role.USER: ("●", "yellow"), Role.ASSISTANT: ("◆", "green")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """The conversation that a person asks for."""

    go_on: bool
    """Whether to continue a conversation."""
    text: str | None
    """An id, the beginning of an id, or a title. None: the last conversation of this terminal."""
    move: bool = False
    fork: bool = False


class ResumeWay(Enum):
    """The ways in which the terminal's lane continues a conversation."""

    STAY = auto()  # it is the terminal's current one
    MOVE = auto()  # its lane, if it has one, loses it
    FORK = auto()  # it stays as it is, and a copy goes on here


@dataclass(frozen=True, slots=True)
class ChosenSession:
    """The conversation to continue, and the way."""

    session_id: str
    way: ResumeWay = ResumeWay.STAY


class Conversation:
    """A person, an agent and a session at one terminal."""

    def __init__(self, context: CommandContext, store: gs.SessionStore, form: RecapForm) -> None:
        self._context = context
        self._store = store
        self._form = form
        self._key = store.key_for(SOURCE)

    async def run(self, wanted: ResumeRequest, ctrl_c: CtrlC, **agent: Any) -> None:
        """Talk until the input ends and is answered, or until the person leaves."""
        chosen = await self._choose_session(wanted)
        self._context.note(f"Session {chosen.session_id}. /help lists commands, Ctrl-D ends.")
        if wanted.go_on and self._form is not RecapForm.OFF:
            await self._show_recap(chosen.session_id)
        begin = _Once(partial(self._switch_lane, chosen))
        console = Console(growing=self._context.console.is_terminal, before_first=begin)
        try:
            with _report_turn_failures(self._context):
                async with gs.Gateway(self._store, adapters=[console], lanes=[self._key], **agent) as gateway:
                    ctrl_c.stop_turns_of(gateway, SOURCE)
                    await _wait_for_end(gateway, console, ctrl_c)
        finally:
            current = chosen.session_id
            if begin.done:
                with suppress(gs.StorageError):  # the error itself is reported instead
                    current = await self._store.peek_session_id(self._key) or current
            self._context.note(f"Session {current}. Go on with it: {name_of_program()} chat -r {current}")

    async def _choose_session(self, wanted: ResumeRequest) -> ChosenSession:
        """Return the conversation to continue; an existing one is not changed yet."""
        if not wanted.go_on:
            entry = await self._store.get_or_create_session(SOURCE, force_new=True)
            return ChosenSession(entry.session_id)
        session_id = await (self._last_session() if wanted.text is None else self._find_session(wanted.text))
        if session_id is None:
            self._context.note("There is no conversation to go on with yet: this is the first.")
            entry = await self._store.get_or_create_session(SOURCE)
            return ChosenSession(entry.session_id)
        if session_id == await self._store.peek_session_id(self._key):
            return ChosenSession(session_id)
        record = await self._store.db.get_session(session_id)
        own = record is not None and is_terminal_owner(record.owner)
        if wanted.fork or not (own or wanted.move):
            if not own and not wanted.fork and record is not None:
                whose = f"{session_id} is a conversation of {record.owner}"
                self._context.note(f"{whose}: what you say goes on in a copy of it; --move takes it over.")
            return ChosenSession(session_id, ResumeWay.FORK)
        await self._confirm_move(session_id, move=wanted.move)
        return ChosenSession(session_id, ResumeWay.MOVE)

    async def _own_scope(self) -> gs.Scope:
        """Return the scope of the terminal's own conversations, in this program and in Hermes."""
        return gs.Scope(owners=(await self._store.scope_of(SOURCE)).owners | {HERMES_TERMINAL})

    async def _last_session(self) -> str | None:
        """Return the conversation of the terminal in which something was said last, ended or not."""
        listed = await self._store.db.list_sessions_rich(
            scope=await self._own_scope(), limit=1, min_message_count=1
        )
        return listed[0].session_id if listed else None

    async def _find_session(self, text: str) -> str:
        """Return the session that a text means: first among the terminal's own, then among all."""
        own = await self._own_scope()
        try:
            return await self._store.db.resolve_session(text, scope=own)
        except gs.SessionNotFoundError:
            return await self._store.db.resolve_session(text, scope=gs.Scope.operator())

    async def _switch_lane(self, chosen: ChosenSession) -> None:
        """Switch the terminal's lane to the conversation, when the first message is typed."""
        is_over = chosen.way is ResumeWay.STAY and await self._would_reset()
        if chosen.way is ResumeWay.STAY and not is_over:
            return
        session_id, move = chosen.session_id, chosen.way is ResumeWay.MOVE
        # A lane cannot be switched to the session that it has: a new session takes its place first.
        here = await self._store.get_or_create_session(SOURCE, force_new=is_over, touch=False)
        record = await self._store.db.get_session(session_id)
        if chosen.way is ResumeWay.FORK and record is not None and record.owner == here.owner:
            session_id = await self._store.db.branch_session(
                session_id, queue_of(self._store).new_session_id()
            )
        scope = gs.Scope.operator()
        if await self._store.switch_session(self._key, session_id, scope=scope, move=move) is None:
            raise gs.SessionNotFoundError(session_id)

    async def _would_reset(self) -> bool:
        """Return whether the next message would begin a new session in place of the chosen one."""
        explanation = await self._store.explain(self._key)
        if explanation.entry is None:
            return False
        due = explanation.next_reset_at is not None and explanation.next_reset_at <= explanation.now
        return due or explanation.entry.state not in (gs.SessionState.ACTIVE, gs.SessionState.RESUME_PENDING)

    async def _confirm_move(self, session_id: str, *, move: bool) -> None:
        there = await self._store.lookup_by_session_id(session_id, scope=gs.Scope.operator())
        if there is not None:
            where = f"{session_id} is the conversation of {there.session_key}"
            question = f"{where}; --fork copies it, --move takes it. Take it from there?"
            self._context.confirm(question, yes=move)

    async def _show_recap(self, session_id: str) -> None:
        said = await self._store.db.get_messages(session_id, limit=RECAP_MESSAGES, before_seq=BEHIND_ALL)
        record = await self._store.db.get_session(session_id)
        found = make_recap(said)
        if not found.lines or record is None:
            return
        earlier = found.earlier + max(record.message_count - len(said), 0)
        if self._form is RecapForm.MINIMAL:
            title = f"“{record.title}” " if record.title else ""
            self._context.note(f"{title}{counted(record.message_count, 'message')} so far.")
            return
        print_answer(
            self._context.console,
            Panel(_recap_text(found, earlier), title="Previous conversation", style="dim", expand=False),
        )


async def _wait_for_end(gateway: gs.Gateway, console: Console, ctrl_c: CtrlC) -> None:
    """Wait until the input has ended and is answered, or until the person leaves."""
    over = asyncio.Event()

    async def answer() -> None:
        await console.ended()
        await gateway.settled()
        over.set()

    async def leave() -> None:
        await ctrl_c.left.wait()
        over.set()

    async with in_background(answer), in_background(leave):
        await over.wait()
    if ctrl_c.left.is_set():
        await gateway.drain(within=timedelta())


class _Once:
    """A step that remembers whether it has succeeded."""

    def __init__(self, step: Callable[[], Awaitable[object]]) -> None:
        self._step = step
        self.done = False

    async def __call__(self) -> None:
        await self._step()
        self.done = True


class _FailureReports(logging.Handler):
    """A log handler that tells the person at the terminal in one line why a turn has failed."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(logging.ERROR)
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        """Write the failure to the standard error output."""
        error = record.exc_info[1] if record.exc_info else None
        if getattr(record, "action", None) != "turn_failed" or error is None:
            return
        ours = isinstance(error, gs.GatewaySessionsError)
        told = str(error) if ours else f"{type(error).__name__}: {error}"
        self._context.note(visible_text(f"{record.getMessage()}: {told}"))
        if self._context.settings.debug:
            self._context.note(visible_text("".join(format_exception(error))))


@contextmanager
def _report_turn_failures(context: CommandContext) -> Generator[None]:
    log, handler = logging.getLogger("gateway_sessions"), _FailureReports(context)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _recap_text(found: Recap, earlier: int) -> Text:
    page = Text()
    if earlier:
        page.append(f"... {counted(earlier, 'earlier message')} ...\n\n", style="italic")
    for one in found.lines:
        sign, style = SIGNS[one.role]
        page.append(f"{sign} ", style=f"{style} not dim")
        page.append(f"{one.text}\n")
    page.rstrip()
    return page
