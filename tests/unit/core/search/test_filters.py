"""Which messages may be shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions import InvalidInputError, Scope
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search.filters import SearchFilter, filter_words

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = Scope.operator()
SESSION = {"owner": "alice", "session_key": "k", "session_id": "s", "source": "cli"}
MESSAGE = {"role": "user", "sent_at": to_micros(NOW), "hidden_because": None}


@pytest.mark.parametrize(
    ("narrowed", "shown"),
    [
        ({}, True),
        ({"scope": Scope(owners=frozenset({"alice"}))}, True),
        ({"scope": Scope(owners=frozenset({"bob"}))}, False),
        ({"scope": Scope.lane("k")}, True),
        ({"scope": Scope.lane("other")}, False),
        ({"session_id": "s"}, True),
        ({"session_id": "t"}, False),
        ({"session_key": "k"}, True),
        ({"session_key": "l"}, False),
        ({"sources": frozenset({"cli"})}, True),
        ({"sources": frozenset({"telegram"})}, False),
        ({"exclude_sources": frozenset({"cli"})}, False),
        ({"exclude_sessions": frozenset({"s"})}, False),
    ],
)
def test_sessions_are_shown_by_scope_and_filters(narrowed, shown):
    assert SearchFilter(**{"scope": EVERYTHING, **narrowed}).shows(**SESSION) is shown


@pytest.mark.parametrize(
    ("narrowed", "message", "shown"),
    [
        ({}, {}, True),
        ({"roles": frozenset({"user"})}, {}, True),
        ({"roles": frozenset({"tool"})}, {}, False),
        ({"since": NOW}, {}, True),
        ({"since": NOW + timedelta(seconds=1)}, {}, False),
        ({"until": NOW}, {}, False),
        ({"until": NOW + timedelta(seconds=1)}, {}, True),
        ({}, {"hidden_because": "rewound"}, False),
        ({}, {"hidden_because": "retracted"}, False),
        ({}, {"hidden_because": "compacted"}, True),
        ({"include_hidden": True}, {"hidden_because": "rewound"}, True),
    ],
)
def test_messages_are_shown_by_role_time_and_whether_they_still_stand(narrowed, message, shown):
    assert SearchFilter(scope=EVERYTHING, **narrowed).admits(**{**MESSAGE, **message}) is shown


def test_a_scope_or_filter_without_anything_in_it_shows_nothing():
    assert SearchFilter(scope=Scope()).sees_nothing
    assert SearchFilter(scope=EVERYTHING, roles=frozenset()).sees_nothing
    assert SearchFilter(scope=EVERYTHING, sources=frozenset()).sees_nothing
    assert not SearchFilter(scope=EVERYTHING).sees_nothing
    assert not SearchFilter(scope=Scope.lane("k")).sees_nothing


def test_a_single_word_is_not_taken_apart():
    assert filter_words("source_filter", "cli") == {"cli"}
    assert filter_words("source_filter", ["cli", "cli", "irc"]) == {"cli", "irc"}
    assert filter_words("source_filter", None) is None
    with pytest.raises(InvalidInputError, match="source_filter must be words"):
        filter_words("source_filter", [1])
