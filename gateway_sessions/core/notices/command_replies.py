"""Answers to slash commands: the queue, turns, compression, the status, the help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from gateway_sessions.core.notices.human_units import counted, duration_in_words, zone_of
from gateway_sessions.core.notices.notice import Notice
from gateway_sessions.core.queue.items import QueuedMessage
from gateway_sessions.core.queue.slash_commands import shown_in_quotes, shown_part

MAX_LISTED: Final = 20
"""The most waiting messages that a list shows: it should fit one message on every platform."""

NO_CONVERSATION: Final = Notice(
    "no_conversation", "There is no conversation here yet: your first message begins one."
)
NOTHING_TO_STOP: Final = Notice("nothing_to_stop", "There is nothing to stop.")
NOTHING_TO_RETRY: Final = Notice("nothing_to_retry", "There is nothing to try again.")
RETRIED_LATER: Final = Notice("retried_later", "I will try that again when I am done.")
NO_COMPRESSOR: Final = Notice("no_compressor", "I cannot compress conversations here.")
COMPRESSING: Final = Notice(
    "compressing", "I am compressing this conversation, and will tell you when that is done."
)
NOTHING_TO_COMPRESS: Final = Notice("nothing_to_compress", "There is nothing to compress yet.")
NOT_COMPRESSED: Final = Notice(
    "not_compressed", "The conversation has gone on meanwhile, so I left it as it is."
)
QUEUE_EMPTY: Final = Notice("queue_empty", "Nothing waits here.")


# Any command


def not_allowed(command: str) -> Notice:
    """Return the answer to a person who may not use a command."""
    return Notice("command_not_allowed", f"You may not use /{command} here.", command=command)


def went_wrong(command: str) -> Notice:
    """Return the answer to a command whose handler failed."""
    text = f"Something went wrong with /{command}. It may not have been carried out."
    return Notice("command_failed", text, command=command)


def took_too_long(command: str) -> Notice:
    """Return the answer to a command that was cut off."""
    text = f"/{command} took too long, so I stopped it. It may not have been carried out."
    return Notice("command_took_too_long", text, command=command)


# /stop, /undo, /compress


def stopped_work_text(*, stopped: bool, cancelled: int) -> str:
    """Return the end of an answer that tells what happened to work under way."""
    text = " I stopped what I was doing." if stopped else ""
    if cancelled:
        were = "was" if cancelled == 1 else "were"
        text += f" {counted(cancelled, 'waiting message')} {were} dropped, and will not be answered."
    return text


def stop_answer(*, running: bool, cancelled: int) -> Notice:
    """Return the answer to /stop."""
    if not running and not cancelled:
        return NOTHING_TO_STOP
    text = ("Stopped." + stopped_work_text(stopped=False, cancelled=cancelled)).strip()
    return Notice("stopped", text, cancelled=cancelled)


def undone_answer(turns: int, first_text: str) -> Notice:
    """Return the answer to /undo; *first_text* is the person's text in the first of these turns."""
    text = f"Took back {counted(turns, 'turn')}, from {shown_in_quotes(first_text)} on."
    return Notice("undone", text, turns=turns, first_text=shown_part(first_text))


def invalid_turn_count(most: int) -> Notice:
    """Return the answer to /undo with what is no number of turns."""
    return Notice("invalid_turn_count", f"Give a number of turns from 1 to {most}.", most=most)


def compressed_answer(*, messages: int, before: int, original_id: str) -> Notice:
    """Return the answer to /compress when it is done."""
    return Notice(
        "compressed",
        f"Compressed: this conversation goes on with {counted(messages, 'message')} in the place of "
        f"{before}. The original stays readable, as {original_id}.",
        messages=messages,
        before=before,
        original_id=original_id,
    )


# /queue


def queue_list(items: Sequence[QueuedMessage]) -> Notice:
    """Return the list of a lane's queue, in order, with the numbers that `cancel` and `move` take."""
    heads = [one for one in items if one.merged_into is None and not one.running]
    if not heads:
        return QUEUE_EMPTY
    joined = Counter(one.merged_into for one in items)
    shown = heads[:MAX_LISTED]
    more = len(heads) - len(shown)
    rest = [f"and {counted(more, 'more message')}"] if more else []
    lines = [_waiting_line(one, joined[one.seq]) for one in shown]
    return Notice(
        "queue_list",
        "\n".join(["These wait, the next one first:", *lines, *rest]),
        waiting=[_waiting_facts(one, joined[one.seq]) for one in shown],
        more=more,
    )


def _waiting_line(item: QueuedMessage, joined: int) -> str:
    message = item.message
    what = (
        shown_in_quotes(message.text)
        if message.text.strip()
        else counted(len(message.attachments), "attachment")
    )
    name = _shown_name(item)
    who = f"{name}: " if name else ""
    return f"#{item.seq} {who}{what}{f' and {joined} more' if joined else ''}"


def _shown_name(item: QueuedMessage) -> str | None:
    """Return the name of the sender; None where only one person writes."""
    source = item.message.source
    return source.user_name if source.chat_type != "dm" else None


def _waiting_facts(item: QueuedMessage, joined: int) -> dict[str, Any]:
    message = item.message
    return {
        "number": item.seq,
        "user_name": _shown_name(item),
        "text": shown_part(message.text),
        "attachments": len(message.attachments),
        "joined": joined,
    }


def taken_out_answer(messages: int) -> Notice:
    """Return the answer to `/queue cancel` and a number."""
    return Notice("taken_out", f"Took {counted(messages, 'message')} out.", messages=messages)


def queue_cleared_answer(messages: int) -> Notice:
    """Return the answer to `/queue clear`."""
    return Notice("queue_cleared", f"Took {counted(messages, 'waiting message')} out.", messages=messages)


def unknown_number_answer(number: int) -> Notice:
    """Return the answer to a number that no waiting message has."""
    text = f"Nothing with the number {number} waits here. /queue list shows what does."
    return Notice("unknown_number", text, number=number)


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


def status_answer(seen: Situation) -> Notice:
    """Return the answer to /status."""
    due, running_for = seen.next_reset, seen.running_for
    return Notice(
        "status",
        "\n".join(_status_lines(seen)),
        session_id=seen.session_id,
        title=seen.title,
        messages=seen.messages,
        model=seen.model,
        running_seconds=None if running_for is None else running_for.total_seconds(),
        doing=shown_part(seen.doing) if seen.doing else None,
        stopping=seen.stopping,
        waiting=seen.waiting,
        next_reset=due,
        zone=None if due is None else zone_of(due),
    )


def _status_lines(seen: Situation) -> list[str]:
    waiting = counted(seen.waiting, "message") if seen.waiting else "nothing"
    lines = [f"Now: {_current_work(seen)}", f"Waiting: {waiting}"]
    if seen.session_id is None:
        return [*lines, str(NO_CONVERSATION)]
    called = f"{shown_in_quotes(seen.title)}, " if seen.title else ""
    due = seen.next_reset
    reset = "none" if due is None else f"{due:%Y-%m-%d %H:%M} {zone_of(due)}"
    return [
        *lines,
        f"Conversation: {called}{seen.session_id}, {counted(seen.messages, 'message')}",
        f"Model: {seen.model or 'default'}",
        f"Next reset: {reset}",
    ]


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

    @property
    def facts(self) -> dict[str, Any]:
        """The fields as arguments of a notice."""
        return {
            "name": self.name,
            "usage": self.usage,
            "summary": self.summary,
            "aliases": list(self.aliases),
        }


GREETING: Final = Notice(
    "greeting", "Hello! Write to me, and I will answer. /help says what else you can ask for."
)
"""The greeting of a person who begins to talk to a bot, as platforms do with /start."""


def help_list(commands: Sequence[CommandHelp]) -> Notice:
    """Return the list of all commands."""
    text = "\n".join(f"{one.call}: {one.summary}" for one in commands)
    return Notice("help", text, commands=[one.facts for one in commands])


def help_for_command(command: CommandHelp) -> Notice:
    """Return the help for one command."""
    others = ", ".join(f"/{name}" for name in command.aliases)
    text = f"{command.call}: {command.summary}{f' Also called {others}.' if others else ''}"
    return Notice("help_for_command", text, **command.facts)


def unknown_command_answer(wanted: str) -> Notice:
    """Return the answer to a command that does not exist."""
    text = f"There is no command {shown_in_quotes(wanted)}. /help lists them."
    return Notice("unknown_command", text, wanted=shown_part(wanted))
