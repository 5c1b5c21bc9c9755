"""What a commit did to sessions, as events: each row of the transition log, and what it means in a word."""

from __future__ import annotations

from collections.abc import Sequence

from gateway_sessions.core.lifecycle import Event
from gateway_sessions.core.news import News, SessionEnd, Transition
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.runtime.events import EventKind, Events
from gateway_sessions.storage.verbs.change import LaneEvent


class SessionEvents:
    """Tells of sessions, in the order of the commits."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def tell(self, news: Sequence[News]) -> None:
        """Tell of all that one commit left behind."""
        if not self._events.heard:
            return
        for one in news:
            if isinstance(one, SessionEnd):
                self._ended(one)
            else:
                self._changed(one)

    def _ended(self, end: SessionEnd) -> None:
        where = (end.session_key, end.session_id)
        self._events.emit(EventKind.SESSION_ENDED, *where, at=end.at, reason=end.reason)

    def _changed(self, row: Transition) -> None:
        self._events.emit(
            EventKind.TRANSITION,
            row.session_key,
            row.session_id,
            at=row.at,
            event=row.event,
            from_state=row.from_state,
            to_state=row.to_state,
            reason=row.reason,
            actor=row.actor,
        )
        match row.event:
            case LaneEvent.CREATED | LaneEvent.COMPRESSED:
                self._came_from(EventKind.SESSION_STARTED, row)
            case Event.RESET:
                self._came_from(EventKind.SESSION_STARTED, row)
                self._reset(row)
            case Event.SWITCHED | Event.UNDONE if row.reason != EndReason.MOVED:
                self._came_from(EventKind.SESSION_RESUMED, row)
            case Event.FINALISED:
                where = (row.session_key, row.session_id)
                self._events.emit(EventKind.SESSION_FINALISED, *where, at=row.at, reason=row.reason)
            case _:
                pass

    def _came_from(self, kind: EventKind, row: Transition) -> None:
        self._events.emit(
            kind,
            row.session_key,
            row.session_id,
            at=row.at,
            reason=row.reason,
            previous_session_id=row.previous_session_id,
        )

    def _reset(self, row: Transition) -> None:
        """One for each reset, with the way back: what took the session's place, and why."""
        self._events.emit(
            EventKind.SESSION_RESET,
            row.session_key,
            row.session_id,
            at=row.at,
            reason=row.reason,
            previous_session_id=row.previous_session_id,
            automatic=row.reason is not None and EndReason(row.reason).is_automatic,
        )
