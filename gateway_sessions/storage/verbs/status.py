"""What a store is like as a whole, for those who look after it."""

from __future__ import annotations

from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import meta


def schema_version() -> Verb[int]:
    """The version of the schema that the database has."""
    return (yield from meta.number("schema_version"))


def count_lanes() -> Verb[int]:
    """How many lanes have a session."""
    rows = yield Statement("count_lanes")
    return int(rows[0][0])
