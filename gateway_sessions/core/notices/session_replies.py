"""Answers about conversations: a new one, an earlier one, a copy, the title, the model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gateway_sessions.core.notices.command_replies import stopped_work_text
from gateway_sessions.core.notices.human_units import ago_in_words, counted
from gateway_sessions.core.notices.notice import Notice
from gateway_sessions.core.queue.slash_commands import shown_in_quotes, shown_part
from gateway_sessions.core.sessions.record import SessionSummary


class StoppedWork(NamedTuple):
    """The work that a command has ended."""

    stopped: bool
    """Whether a turn ran."""
    cancelled: int
    """The number of waiting messages that were dropped."""

    @property
    def text(self) -> str:
        """The end of an answer that tells so."""
        return stopped_work_text(stopped=self.stopped, cancelled=self.cancelled)


class ShownSession(NamedTuple):
    """A conversation as an answer describes it."""

    session_id: str
    title: str | None
    messages: int

    @property
    def text(self) -> str:
        """The title, else the id, and the number of messages."""
        name = shown_in_quotes(self.title) if self.title else self.session_id
        return f"{name}, {counted(self.messages, 'message')}"


# /new, /undo-reset, /branch


def conversation_begins(title: str | None) -> Notice:
    """Return the answer to /new where there was no conversation before."""
    return Notice("conversation_begins", f"A new conversation begins{_title_clause(title)}.", title=title)


def new_conversation(title: str | None, ended: StoppedWork) -> Notice:
    """Return the answer to /new in the place of another conversation."""
    title_and_end = f"{_title_clause(title)}.{ended.text}"
    text = f"This is a new conversation{title_and_end} /undo-reset brings the one before back."
    return Notice("new_conversation", text, title=title, **ended._asdict())


def reset_undone(session: ShownSession, ended: StoppedWork) -> Notice:
    """Return the answer to /undo-reset."""
    text = f"The conversation from before is back: {session.text}.{ended.text}"
    return Notice("reset_undone", text, **session._asdict(), **ended._asdict())


def branched(session: ShownSession, ended: StoppedWork, original_id: str | None) -> Notice:
    """Return the answer to /branch."""
    back = f" /resume {original_id} goes back to the original." if original_id else ""
    text = f"From here on this is a copy: {session.text}.{ended.text}{back}"
    return Notice("branched", text, **session._asdict(), **ended._asdict(), original_id=original_id)


def _title_clause(title: str | None) -> str:
    return f", {shown_in_quotes(title)}" if title is not None else ""


# /resume


def resumed(session: ShownSession, ended: StoppedWork) -> Notice:
    """Return the answer to /resume that went on with another conversation."""
    text = f"Back in {session.text}.{ended.text}"
    return Notice("resumed", text, **session._asdict(), **ended._asdict())


def already_here(session: ShownSession) -> Notice:
    """Return the answer to /resume with the conversation that is here already."""
    return Notice("already_here", f"You are in it already: {session.text}.", **session._asdict())


def session_list(sessions: Sequence[SessionSummary], current: str | None, now: datetime) -> Notice:
    """Return a numbered list of conversations to choose from."""
    if not sessions:
        return Notice("no_sessions", "There is no conversation to go back to.")
    lines = [
        f"{number}. {_session_line(one, now)}{' (this one)' if one.session_id == current else ''}"
        for number, one in enumerate(sessions, 1)
    ]
    return Notice(
        "session_list",
        "\n".join(["/resume and a number goes on with one of these:", *lines]),
        sessions=[_session_facts(one, current, now) for one in sessions],
    )


def _session_line(one: SessionSummary, now: datetime) -> str:
    shown = (
        shown_in_quotes(one.title)
        if one.title
        else shown_in_quotes(one.preview)
        if one.preview
        else one.session_id
    )
    return f"{shown}, {counted(one.message_count, 'message')}, {ago_in_words(one.last_active, now)}"


def _session_facts(one: SessionSummary, current: str | None, now: datetime) -> dict[str, Any]:
    return {
        "session_id": one.session_id,
        "title": one.title,
        "preview": shown_part(one.preview) if one.preview else None,
        "messages": one.message_count,
        "last_active": one.last_active,
        "seconds_ago": (now - one.last_active).total_seconds(),
        "is_current": one.session_id == current,
    }


# /title, /model


def title_set(title: str) -> Notice:
    """Return the answer to /title and a title."""
    return Notice("title_set", f"This conversation is called {shown_in_quotes(title)}.", title=title)


def title_shown(title: str | None, session_id: str) -> Notice:
    """Return the answer to /title without a title."""
    called = f"is called {shown_in_quotes(title)}" if title else "has no title"
    text = f"This conversation {called}. Its id is {session_id}."
    return Notice("title", text, title=title, session_id=session_id)


def model_shown(model: str | None) -> Notice:
    """Return the answer to /model without a name."""
    return Notice("model", f"The model here is {model or 'the default one'}.", model=model)


def invalid_model(most: int) -> Notice:
    """Return the answer to /model with what names no model."""
    text = f"Give the name of a model: one word of up to {most} characters, or default."
    return Notice("invalid_model", text, most=most)


def model_set(model: str | None) -> Notice:
    """Return the answer to /model and a name; None is the default model."""
    which = "the default model" if model is None else f"the model {model}"
    return Notice("model_set", f"From the next turn on, this conversation has {which}.", model=model)
