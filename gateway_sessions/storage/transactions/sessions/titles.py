"""Set titles, keep them unique for each owner, and find the session that a title or id prefix means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.sessions.titles import (
    TitledBy,
    clean_title,
    lineage_range,
    next_title,
    numbered_titles_of,
    split_numbered_title,
)
from gateway_sessions.errors import (
    AmbiguousSessionError,
    InvalidTitleError,
    SessionCandidate,
    SessionNotFoundError,
    TitleTakenError,
)
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import lineage
from gateway_sessions.storage.tables.sql_files import row_of

MAX_CANDIDATES: Final = 10
"""The number of candidates that an error names."""
PAGE: Final = 200
"""The number of ids read in one page."""
_AFTER_EVERY_ID: Final = "\U0010ffff"

row_of("session_candidate")(SessionCandidate)


@row_of("titled_session")
class TitleOfSession(NamedTuple):
    """The title of one session: who gave it, and whose the session is and was then."""

    owner: str
    session_key: str | None
    title: str | None
    title_by: str | None
    title_owner: str | None


@row_of("titled_sessions")
class TitledSession(NamedTuple):
    """One of the sessions that a title may mean."""

    session_id: str
    owner: str
    title: str
    started_at: int


def scope_params(scope: Scope) -> tuple[Any, ...]:
    """Return the parameters of a query that shows only what *scope* may see."""
    owners = msgspec.json.encode(sorted(scope.owners)).decode()
    return int(scope.sees_everything), owners, scope.session_key


def load_title(session_id: str) -> Transaction[str | None]:
    """Return the title of the session."""
    named = yield from _load_title_row(session_id)
    return named.title if named is not None else None


def _load_title_row(session_id: str) -> Transaction[TitleOfSession | None]:
    """Return the title of a session with what is known of it; None if there is no such session."""
    rows = yield Statement("titled_session", (session_id,))
    return TitleOfSession._make(rows[0]) if rows else None


def set_title(
    session_id: str, title: str | None, scope: Scope | None, author: str | None = None
) -> Transaction[bool]:
    """Set or remove the title of a session; False if *scope* sees no such session.

    *author* is the person who gives the title, if another one than the session's owner.

    A session that this one continues passes its title on. Any other session keeps its title, and
    `TitleTakenError` is raised.
    """
    named = yield from _load_title_row(session_id)
    if named is None or not (scope is None or scope.sees(owner=named.owner, session_key=named.session_key)):
        return False
    if title is None:
        yield Statement("set_title", (None, None, None, session_id))
        return True
    holders = yield Statement("holder_of_title", (named.owner, title))
    for holder, session_key in holders:
        if holder != session_id:
            line = yield from lineage.compression_line_ids(session_id)
            if holder not in line[: line.index(session_id)]:
                seen = scope is not None and scope.sees(owner=named.owner, session_key=session_key)
                raise TitleTakenError(title, holder if seen else None)
            yield Statement("set_title", (None, None, None, holder))
    yield Statement("set_title", (title, str(TitledBy.PERSON), author, session_id))
    return True


def set_title_if_none(session_id: str, title: str) -> Transaction[bool]:
    """Give an untitled session a title; if the title is taken, the next one of its lineage."""
    named = yield from _load_title_row(session_id)
    if named is None or named.title is not None:
        return False
    free = yield from next_free_title(named.owner, title)
    yield Statement("set_title", (free, str(TitledBy.AUTOMATIC), None, session_id))
    return True


def next_free_title(owner: str, title: str) -> Transaction[str]:
    """Return the title if that owner has no session of its lineage, else the next title of the lineage."""
    base, _ = split_numbered_title(clean_title(title))
    return next_title(title, (yield from titles_in_lineage(owner, base)))


def titles_in_lineage(owner: str, base: str) -> Transaction[set[str]]:
    """Return the titles that the owner's sessions have in a lineage: the title itself and numbered ones."""
    rows = yield Statement("titles_of_owner", (owner, base, owner, *lineage_range(base)))
    return {title for (title,) in rows}


def number_if_taken(session_id: str, owner: str) -> Transaction[None]:
    """Number the title of a session that goes to another owner, if that owner has the title already."""
    named = yield from _load_title_row(session_id)
    if named is None or named.title is None or named.owner == owner:
        return
    if (yield Statement("holder_of_title", (owner, named.title))):
        free = yield from next_free_title(owner, named.title)
        yield Statement("set_title", (free, named.title_by, named.title_owner, session_id))


def hand_on_title(session_id: str, to: str) -> Transaction[None]:
    """Give the title of a session to the same owner's session in its place, unless that has a title."""
    given, taking = (yield from _load_title_row(session_id)), (yield from _load_title_row(to))
    if given is None or taking is None:
        return
    if given.title is not None and taking.title is None and given.owner == taking.owner:
        yield Statement("set_title", (None, None, None, session_id))
        yield Statement("set_title", (given.title, given.title_by, given.title_owner, to))


def next_visible_title(title: str, scope: Scope) -> Transaction[str]:
    """Return the title if no session in sight has it, else the next one of its lineage."""
    base, _ = split_numbered_title(title)
    rows = yield Statement("titled_sessions", (base, *lineage_range(base), *scope_params(scope)))
    return next_title(title, [one.title for one in map(TitledSession._make, rows)])


def resolve_title(text: str, scope: Scope) -> Transaction[str | None]:
    """Return the tip of the newest session of the title's lineage; None if *scope* sees none."""
    found = yield from _tips_by_title(text, scope)
    if len(found) > 1:
        raise AmbiguousSessionError(text, (yield from _load_candidates(found)))
    return found[0] if found else None


def resolve_session(text: str, scope: Scope) -> Transaction[str]:
    """Return the tip of the one session that an id, the beginning of an id, or a title means."""
    wanted = text.strip()
    if not wanted:
        raise SessionNotFoundError(text)
    named = yield from _load_title_row(wanted)
    if named is not None and scope.sees(owner=named.owner, session_key=named.session_key):
        return (yield from lineage.visible_tip(wanted, scope))
    by_id = yield from _tips_by_id_prefix(wanted, scope)
    if len(by_id) == 1:
        return by_id[0]
    found = (yield from _tips_by_title(wanted, scope)) or by_id
    if not found:
        raise SessionNotFoundError(text)
    if len(found) > 1:
        raise AmbiguousSessionError(text, (yield from _load_candidates(found)))
    return found[0]


def _tips_by_title(text: str, scope: Scope) -> Transaction[list[str]]:
    """Return for each owner the tip of the session that the title means."""
    try:
        title = clean_title(text)
    except InvalidTitleError:
        return []
    rows = yield Statement("titled_sessions", (title, *lineage_range(title), *scope_params(scope)))
    owners: dict[str, list[TitledSession]] = {}
    for one in map(TitledSession._make, rows):
        owners.setdefault(one.owner, []).append(one)
    tips: dict[str, None] = {}
    for mine in owners.values():
        if (session_id := _pick_titled(title, mine)) is not None:
            tips[(yield from lineage.visible_tip(session_id, scope))] = None
    return list(tips)


def _pick_titled(title: str, found: list[TitledSession]) -> str | None:
    """Return the newest numbered session of the lineage, else the one with exactly this title."""
    numbered = set(numbered_titles_of(title, (one.title for one in found)))
    candidates = [one for one in found if one.title in numbered] or [
        one for one in found if one.title == title
    ]
    return (
        max(candidates, key=lambda one: (one.started_at, one.session_id)).session_id if candidates else None
    )


def _tips_by_id_prefix(text: str, scope: Scope) -> Transaction[list[str]]:
    """Return the tips of sessions whose id begins with the text, at most `MAX_CANDIDATES`."""
    tips: dict[str, None] = {}
    after = ""
    while len(tips) < MAX_CANDIDATES:
        where = (after, text, text + _AFTER_EVERY_ID, *scope_params(scope))
        rows = yield Statement("sessions_between", (*where, PAGE))
        for (session_id,) in rows:
            tips[(yield from lineage.visible_tip(session_id, scope))] = None
            after = session_id
            if len(tips) == MAX_CANDIDATES:
                break
        if len(rows) < PAGE:
            break
    return list(tips)


def _load_candidates(session_ids: Iterable[str]) -> Transaction[list[SessionCandidate]]:
    found: list[SessionCandidate] = []
    for session_id in session_ids:
        rows = yield Statement("session_candidate", (session_id,))
        found.extend(SessionCandidate(*row) for row in rows)
    return found[:MAX_CANDIDATES]


def first_exchange(session_id: str, limit: int) -> Transaction[tuple[list[str], list[str]] | None]:
    """Return the first words of people and agent in a session that wants a title; None if it wants none."""
    if not (yield Statement("untitled_session", (session_id,))):
        return None
    people = yield Statement("first_exchange", (limit, session_id, "user", 3))
    agent = yield Statement("first_exchange", (limit, session_id, "assistant", 1))
    return [text or "" for _, text in people], [text or "" for _, text in agent]
