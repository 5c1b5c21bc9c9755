"""Answers to slash commands: the queue, lists of sessions, the status, the help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gateway_sessions.core.notices.human_units import ago_in_words, counted, duration_in_words, zone_of
from gateway_sessions.core.queue.items import QueuedMessage
from gateway_sessions.core.queue.slash_commands import shown_in_quotes
from gateway_sessions.core.sessions.record import SessionSummary

MAX_LISTED: Final = 20
"""The most waiting messages that a list shows: it should fit one message on every platform."""

NOT_ALLOWED: Final = "You may not use /{command} here."
WENT_WRONG: Final = "Something went wrong with /{command}. It may not have been carried out."
TOOK_TOO_LONG: Final = "/{command} took too long, so I stopped it. It may not have been carried out."
NO_CONVERSATION: Final = "There is no conversation here yet: your first message begins one."
NOTHING_TO_STOP: Final = "There is nothing to stop."
NOTHING_TO_RETRY: Final = "There is nothing to try again."
RETRIED_LATER: Final = "I will try that again when I am done."
NO_COMPRESSOR: Final = "I cannot compress conversations here."
COMPRESSING: Final = "I am compressing this conversation, and will tell you when that is done."
NOTHING_TO_COMPRESS: Final = "There is nothing to compress yet."
NOT_COMPRESSED: Final = "The conversation has gone on meanwhile, so I left it as it is."
QUEUE_EMPTY: Final = "Nothing waits here."


def stopped_work_text(*, stopped: bool, cancelled: int) -> str:
    """Return the end of an answer that tells what happened to work under way."""
    text = " I stopped what I was doing." if stopped else ""
    if cancelled:
        were = "was" if cancelled == 1 else "were"
        text += f" {counted(cancelled, 'waiting message')} {were} dropped, and will not be answered."
    return text


def stop_answer(*, running: bool, cancelled: int) -> str:
    """Return the answer to /stop."""
    if not running and not cancelled:
        return NOTHING_TO_STOP
    return ("Stopped." + stopped_work_text(stopped=False, cancelled=cancelled)).strip()


def session_name(title: str | None, session_id: str) -> str:
    """Return the name of a conversation: its title, else its id."""
    return shown_in_quotes(title) if title else session_id


# /queue


def queue_list(items: Sequence[QueuedMessage]) -> str:
    """Return the list of a lane's queue, in order, with the numbers that `cancel` and `move` take."""
    heads = [one for one in items if one.merged_into is None and not one.running]
    if not heads:
        return QUEUE_EMPTY
    parts = [
        _waiting_line(one, sum(other.merged_into == one.seq for other in items)) for one in heads[:MAX_LISTED]
    ]
    more = len(heads) - len(parts)
    rest = [f"and {counted(more, 'more message')}"] if more else []
    return "\n".join(["These wait, the next one first:", *parts, *rest])


def _waiting_line(item: QueuedMessage, joined: int) -> str:
    message = item.message
    what = (
        shown_in_quotes(message.text)
        if message.text.strip()
        else counted(len(message.attachments), "attachment")
    )
    name = message.source.user_name
    who = f"{name}: " if name and message.source.chat_type != "dm" else ""
    return f"#{item.seq} {who}{what}{f' and {joined} more' if joined else ''}"


# /resume


def session_list(sessions: Sequence[SessionSummary], current: str | None, now: datetime) -> str:
    """Return a numbered list of conversations to choose from."""
    if not sessions:
        return "There is no conversation to go back to."
    lines = [
        f"{number}. {_session_line(one, now)}{' (this one)' if one.session_id == current else ''}"
        for number, one in enumerate(sessions, 1)
    ]
    return "\n".join(["/resume and a number goes on with one of these:", *lines])


def _session_line(one: SessionSummary, now: datetime) -> str:
    shown = (
        shown_in_quotes(one.title)
        if one.title
        else shown_in_quotes(one.preview)
        if one.preview
        else one.session_id
    )
    return f"{shown}, {counted(one.message_count, 'message')}, {ago_in_words(one.last_active, now)}"


# /status


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The state of a lane when a person asks for it."""

    session_id: str | None
    title: str | None = None
    messages: int = 0
    model: str | None = None
    """The model that a person chose for this conversation; None: the default one."""
    running_for: timedelta | None = None
    """The time that the turn has run; None if no turn runs."""
    doing: str | None = None
    """The activity that the agent reported last."""
    stopping: bool = False
    """Whether the running turn was asked to end."""
    waiting: int = 0
    """The number of waiting messages."""
    next_reset: datetime | None = None
    """The instant of the next reset, on the clock of the people here."""


def status_answer(seen: Situation) -> str:
    """Return the answer to /status."""
    waiting = counted(seen.waiting, "message") if seen.waiting else "nothing"
    lines = [f"Now: {_current_work(seen)}", f"Waiting: {waiting}"]
    if seen.session_id is None:
        return "\n".join([*lines, NO_CONVERSATION])
    called = f"{shown_in_quotes(seen.title)}, " if seen.title else ""
    due = seen.next_reset
    reset = "none" if due is None else f"{due:%Y-%m-%d %H:%M} {zone_of(due)}"
    return "\n".join(
        [
            *lines,
            f"Conversation: {called}{seen.session_id}, {counted(seen.messages, 'message')}",
            f"Model: {seen.model or 'default'}",
            f"Next reset: {reset}",
        ]
    )


def _current_work(seen: Situation) -> str:
    if seen.running_for is None:
        return "idle"
    doing = f", {shown_in_quotes(seen.doing)}" if seen.doing else ""
    return f"{'stopping' if seen.stopping else 'working'}, for {duration_in_words(seen.running_for)}{doing}"


# /help


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHelp:
    """A command that people can use, as the help shows it."""

    name: str
    summary: str
    usage: str = ""
    """The arguments of the command, as people write them down."""
    aliases: tuple[str, ...] = ()

    @property
    def call(self) -> str:
        """The command as people type it."""
        return f"/{self.name} {self.usage}".rstrip()


GREETING: Final = "Hello! Write to me, and I will answer. /help says what else you can ask for."
"""The greeting of a person who begins to talk to a bot, as platforms do with /start."""


def help_list(commands: Sequence[CommandHelp]) -> str:
    """Return the list of all commands."""
    return "\n".join(f"{one.call}: {one.summary}" for one in commands)


def help_for_command(command: CommandHelp) -> str:
    """Return the help for one command."""
    others = ", ".join(f"/{name}" for name in command.aliases)
    return f"{command.call}: {command.summary}{f' Also called {others}.' if others else ''}"
