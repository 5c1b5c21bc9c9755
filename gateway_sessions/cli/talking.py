"""One conversation at a terminal: which session it goes on with, and what is shown before and after."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import format_exception
from typing import Any, Final

from rich.panel import Panel
from rich.text import Text

import gateway_sessions as gs
from gateway_sessions.adapters.console import Console
from gateway_sessions.cli.desk import Desk, show_on
from gateway_sessions.cli.saying import name_of_program
from gateway_sessions.core.messages import Role
from gateway_sessions.core.recap import Recap, RecapForm, recap
from gateway_sessions.core.telling import counted
from gateway_sessions.core.untrusted import visible

LOOKED_AT: Final = 400
"""Messages of the end of a session: enough for the last exchanges, whatever tools have said between them."""
BEHIND_ALL: Final = 1 << 62
SOURCE: Final = gs.SessionSource(platform=Console.platform, chat_id="local", user_id="local")
SIGNS: Final = {Role.USER: ("●", "yellow"), Role.ASSISTANT: ("◆", "green")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody wants to talk about."""

    go_on: bool
    """Not a new conversation."""
    text: str | None
    """An id, the beginning of one, or a title; None: the last one here."""
    move: bool = False
    fork: bool = False


class Talk:
    """Brings a person, an agent and a session together."""

    def __init__(self, desk: Desk, store: gs.SessionStore, form: RecapForm) -> None:
        self._desk = desk
        self._store = store
        self._form = form
        self._key = store.key_for(SOURCE)

    async def hold(self, wanted: Wanted, **agent: Any) -> None:
        """Talk until the input ends."""
        entry = await self._begun(wanted)
        self._desk.note(f"Session {entry.session_id}. /help lists commands, Ctrl-D ends.")
        if wanted.go_on and self._form is not RecapForm.OFF:
            await self._remind(entry.session_id)
        console = Console(growing=self._desk.screen.is_terminal)
        try:
            with _failures_told(self._desk):
                lanes = [entry.session_key]
                async with gs.Gateway(self._store, adapters=[console], lanes=lanes, **agent):
                    await console.ended()
        finally:
            session_id = await self._store.peek_session_id(self._key)
            self._desk.note(f"Session {session_id}. Go on with it: {name_of_program()} chat -r {session_id}")

    async def _begun(self, wanted: Wanted) -> gs.SessionEntry:
        if not wanted.go_on:
            return await self._store.get_or_create_session(SOURCE, force_new=True)
        if wanted.text is None:
            return await self._store.get_or_create_session(SOURCE, touch=False)
        scope = gs.Scope.operator()
        session_id = await self._store.db.resolve_session(wanted.text, scope=scope)
        here = await self._store.get_or_create_session(SOURCE, touch=False)
        if session_id == here.session_id:
            return here
        if wanted.fork:
            session_id = await self._store.db.branch_session(session_id, self._store.ledger.new_session_id())
        else:
            await self._ask_whose(session_id, move=wanted.move)
        entry = await self._store.switch_session(self._key, session_id, scope=scope)
        if entry is None:
            raise gs.SessionNotFoundError(session_id)
        return entry

    async def _ask_whose(self, session_id: str, *, move: bool) -> None:
        """No lane loses its session unless somebody says so."""
        there = await self._store.lookup_by_session_id(session_id, scope=gs.Scope.operator())
        if there is not None:
            where = f"{session_id} is the conversation of {there.session_key}"
            question = f"{where}; --fork copies it, --move takes it. Take it from there?"
            self._desk.confirm(question, yes=move)

    async def _remind(self, session_id: str) -> None:
        said = await self._store.db.get_messages(session_id, limit=LOOKED_AT, before_seq=BEHIND_ALL)
        record = await self._store.db.get_session(session_id)
        found = recap(said)
        if not found.lines or record is None:
            return
        earlier = found.earlier + max(record.message_count - len(said), 0)
        if self._form is RecapForm.MINIMAL:
            title = f"“{record.title}” " if record.title else ""
            self._desk.note(f"{title}{counted(record.message_count, 'message')} so far.")
            return
        show_on(
            self._desk.screen,
            Panel(_drawn(found, earlier), title="Previous conversation", style="dim", expand=False),
        )


class _Failures(logging.Handler):
    """Says in one line why a turn has failed: whoever chats here can do something about it."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(logging.ERROR)
        self._desk = desk

    def emit(self, record: logging.LogRecord) -> None:
        """Say it beside the conversation."""
        error = record.exc_info[1] if record.exc_info else None
        if getattr(record, "action", None) != "turn_failed" or error is None:
            return
        ours = isinstance(error, gs.GatewaySessionsError)
        told = str(error) if ours else f"{type(error).__name__}: {error}"
        self._desk.note(visible(f"{record.getMessage()}: {told}"))
        if self._desk.settings.debug:
            self._desk.note(visible("".join(format_exception(error))))


@contextmanager
def _failures_told(desk: Desk) -> Generator[None]:
    log, handler = logging.getLogger("gateway_sessions"), _Failures(desk)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _drawn(found: Recap, earlier: int) -> Text:
    page = Text()
    if earlier:
        page.append(f"... {counted(earlier, 'earlier message')} ...\n\n", style="italic")
    for one in found.lines:
        sign, style = SIGNS[one.role]
        page.append(f"{sign} ", style=f"{style} not dim")
        page.append(f"{one.text}\n")
    page.rstrip()
    return page
