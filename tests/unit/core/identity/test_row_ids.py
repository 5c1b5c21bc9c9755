"""Ids leave the process as text, and come in as text or as numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.control_protocol import decode, encode
from gateway_sessions.core.identity.row_ids import LARGEST, SAFE, has_id_fields, ids_to_text, parse_row_id
from gateway_sessions.core.queue.items import DeadLetter
from gateway_sessions.core.search.results import SearchResult
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.record import SessionSummary
from gateway_sessions.errors import InvalidInputError


class Place(NamedTuple):
    session_id: str
    message_id: int


@dataclass(frozen=True)
class Row:
    item_id: int
    name: str = "7"
    seq: int = 5
    message_id: str | None = None
    """An id of a platform, which is text anyway."""
    reply_id: int | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


class Page(msgspec.Struct):
    rows: list[Row]
    places: tuple[Place, ...] = ()
    by_name: dict[str, Row] = {}
    best: Row | None = None


ids = st.integers(min_value=0, max_value=LARGEST)
rows = st.builds(
    Row,
    item_id=ids,
    name=st.text(max_size=5),
    message_id=st.none() | st.sampled_from(["7", "x", ""]),
    reply_id=st.none() | ids,
    extra=st.dictionaries(st.sampled_from(["item_id", "a"]), st.sampled_from(["7", 7, None])),
)
pages = st.builds(
    Page,
    rows=st.lists(rows, max_size=2),
    places=st.lists(st.builds(Place, st.text(max_size=3), ids), max_size=2).map(tuple),
    by_name=st.dictionaries(st.text(max_size=3), rows, max_size=2),
    best=st.none() | rows,
)


@given(page=pages)
def test_what_travels_is_the_same_on_the_other_side(page: Page):
    assert decode(encode(page), Page) == page


@given(page=pages)
def test_no_id_travels_as_a_number(page: Page):
    told = json.loads(encode(page))
    for row in [*told["rows"], *told["by_name"].values(), *([told["best"]] if told["best"] else [])]:
        assert isinstance(row["item_id"], str)
        assert row["reply_id"] is None or isinstance(row["reply_id"], str)
        assert row["seq"] == 5, "a number that is no id stays one"
    assert all(isinstance(place[1], str) for place in told["places"])


@given(page=pages)
def test_numbers_are_understood_as_well(page: Page):
    assert decode(msgspec.json.encode(page), Page) == page


@pytest.mark.parametrize("kind", [DeadLetter, list[DeadLetter], SearchResult, SessionEntry, dict[str, Row]])
def test_our_records_are_known_to_hold_ids(kind: Any):
    assert has_id_fields(kind)


@pytest.mark.parametrize("kind", [SessionSummary, str, int, list[int], dict[str, Any], None, Any])
def test_what_holds_none_is_left_as_it_is(kind: Any):
    assert not has_id_fields(kind)


def test_outside_no_number_is_larger_than_readers_of_json_keep():
    told = ids_to_text({"a": SAFE, "b": SAFE + 1, "c": [-SAFE - 1], "d": True, "e": 1.5}, outside=True)
    assert told == {"a": SAFE, "b": str(SAFE + 1), "c": [str(-SAFE - 1)], "d": True, "e": 1.5}


@pytest.mark.parametrize("given", [0, "0", 7, "7", LARGEST, str(LARGEST), "007"], ids=repr)
def test_an_id_is_a_number_or_the_same_as_text(given: object):
    assert parse_row_id("item_id", given) == int(str(given))


@pytest.mark.parametrize(
    "given",
    [None, True, -1, "-1", "", "x", " 7", "\u0667", "1e3", 1.0, LARGEST + 1, "9" * 40, b"7", []],
    ids=repr,
)
def test_anything_else_is_refused(given: object):
    with pytest.raises(InvalidInputError, match="item_id must be an id"):
        parse_row_id("item_id", given)
