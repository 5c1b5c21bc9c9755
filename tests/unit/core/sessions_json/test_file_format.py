import hashlib
import json
from binascii import crc32
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions_json.entries import Dialect
from gateway_sessions.core.sessions_json.file_format import (
    MAX_TAIL,
    SnapshotContent,
    SnapshotEncoder,
    SnapshotMeta,
    parse_snapshot,
    read_tail,
    verify_checksum,
)
from gateway_sessions.errors import InvalidInputError, InvalidSnapshotError

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 18, 9, 11, 8, 6690, tzinfo=UTC)
VECTORS: dict[str, Any] = json.loads(
    Path(__file__).parents[3].joinpath("data", "hermes_vectors.json").read_text("utf-8")
)


def entry(name: str, **members: Any) -> SessionEntry:
    made = SessionEntry(
        session_key=f"agent:main:telegram:dm:{name}",
        session_id=f"20261118_091108_{name}",
        created_at=NOW,
        updated_at=NOW,
        last_interaction_at=NOW,
        platform="telegram",
        origin=SessionSource(platform="telegram", chat_id=name, chat_name="Größe 👩‍🚀\n"),
    )
    return made.altered(**members)


ENTRIES = (entry("a"), entry("b"), entry("c"))


def encoded(*entries: SessionEntry, generation: int = 7) -> bytes:
    encoder = SnapshotEncoder()
    return encoder.encode_header() + encoder.encode_entries(entries) + encoder.encode_tail(generation, NOW)


def hermes_file(name: str, which: str = "sessions.json") -> bytes:
    return next(str(file[which]) for file in VECTORS["files"] if file["name"] == name).encode()


RAW = encoded(*ENTRIES)


# Writing.


def test_a_snapshot_is_json_with_a_line_for_each_entry_and_the_tail_at_the_end():
    content = json.loads(RAW)
    assert list(content) == [*(one.session_key for one in ENTRIES), "_meta"]
    lines = RAW.split(b"\n")
    assert lines[0] == b"{"
    assert lines[-1] == b""
    assert [line[:28] for line in lines[1:4]] == [
        b'"agent:main:telegram:dm:a":{',
        b'"agent:main:telegram:dm:b":{',
        b'"agent:main:telegram:dm:c":{',
    ]
    assert lines[4].startswith(b'"_meta":{')


def test_the_tail_says_what_stands_before_it():
    meta = json.loads(RAW)["_meta"]
    before = RAW[: RAW.index(b'"_meta"')]
    assert meta.pop("crc32")
    assert meta == {
        "format": 1,
        "generation": 7,
        "entries": 3,
        "written_at": "2026-11-18T09:11:08.006690+00:00",
        "bytes": len(before),
        "sha256": hashlib.sha256(before).hexdigest(),
    }


def test_pages_make_no_difference():
    encoder = SnapshotEncoder()
    pieces = [
        encoder.encode_header(),
        encoder.encode_entries(ENTRIES[:1]),
        encoder.encode_entries([]),
        encoder.encode_entries(ENTRIES[1:]),
    ]
    assert b"".join([*pieces, encoder.encode_tail(7, NOW)]) == RAW


def test_a_snapshot_without_entries_is_whole():
    content = parse_snapshot(encoded())
    assert (content.entries, content.rejected, content.intact) == ((), (), True)


def test_the_time_of_writing_is_noted_in_utc():
    encoder = SnapshotEncoder()
    raw = encoder.encode_header() + encoder.encode_tail(1, NOW.astimezone(timezone(timedelta(hours=5))))
    assert verify_checksum(raw).written_at == NOW


@pytest.mark.parametrize("second", ["a", "A"])
def test_entries_come_in_the_order_of_their_keys_and_once(second: str):
    with pytest.raises(InvalidInputError, match="does not come after"):
        SnapshotEncoder().encode_entries([entry("a"), entry(second)])


def test_an_entry_whose_key_would_be_skipped_is_refused():
    with pytest.raises(InvalidInputError, match="session_key"):
        SnapshotEncoder().encode_entries([entry("a", session_key="_meta")])


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


@pytest.mark.parametrize("poison", [object(), deep(100_000), {1j: 2}, ["\ud800", float("nan")]])
def test_an_entry_that_json_cannot_express_is_an_error_that_names_it(poison: object):
    with pytest.raises(InvalidInputError, match="telegram:dm:a"):
        SnapshotEncoder().encode_entries([entry("a", extra={"poison": poison})])


def test_halves_of_surrogate_pairs_do_not_stop_the_snapshot():
    content = parse_snapshot(encoded(entry("a", display_name="cut \ud83d"), entry("b")))
    assert content.intact
    assert [one.display_name for one in content.entries] == ["cut \ufffd", None]


def test_hermes_gets_times_that_it_can_compare():
    encoder = SnapshotEncoder(Dialect.HERMES, BERLIN)
    raw = encoder.encode_header() + encoder.encode_entries(ENTRIES) + encoder.encode_tail(1, NOW)
    assert json.loads(raw)[ENTRIES[0].session_key]["updated_at"] == "2026-11-18T10:11:08.006690"
    assert parse_snapshot(raw, BERLIN).entries == ENTRIES


# The tail.


def test_the_tail_alone_tells_generation_and_size():
    meta = read_tail(RAW[-MAX_TAIL:], len(RAW))
    assert meta == verify_checksum(RAW)
    assert meta is not None
    assert (meta.generation, meta.entries, meta.written_at) == (7, 3, NOW)
    assert read_tail(RAW[RAW.index(b'"_meta"') :], len(RAW)) == meta


def test_the_tail_always_fits():
    encoder = SnapshotEncoder()
    encoder.encode_header()
    assert len(encoder.encode_tail(2**63 - 1, NOW)) < MAX_TAIL / 4
    assert verify_checksum(encoded(generation=2**63 - 1)).generation == 2**63 - 1


@pytest.mark.parametrize("size", [len(RAW) - 1, len(RAW) + 1, 0])
def test_a_tail_of_a_file_of_another_size_says_nothing(size: int):
    assert read_tail(RAW[-MAX_TAIL:], size) is None


@pytest.mark.parametrize("raw", [b"", b"{}", b"\x00" * 100, RAW[:-1], RAW + b"\n", b'"_meta":{}}\n'])
def test_what_is_no_tail_says_nothing(raw: bytes):
    assert read_tail(raw, len(raw)) is None


def test_text_that_looks_like_a_tail_inside_an_entry_is_none():
    tail = RAW[RAW.index(b'"_meta"') :].decode()
    raw = encoded(entry("a", display_name=tail))
    assert verify_checksum(raw).entries == 1


def test_a_tail_of_a_time_that_does_not_exist_says_nothing():
    head, _, _ = RAW[RAW.index(b'"_meta"') :].partition(b',"crc32"')
    forged = head.replace(b"2026-11-18", b"2026-13-18")
    forged += b',"crc32":"%08x"}}\n' % crc32(forged)
    assert read_tail(forged, len(RAW)) is None


# Checking.


def test_any_bit_that_flips_is_noticed():
    for position in range(len(RAW)):
        for bit in range(8):
            flipped = bytearray(RAW)
            flipped[position] ^= 1 << bit
            with pytest.raises(InvalidSnapshotError):
                verify_checksum(bytes(flipped))


def test_a_file_changed_by_hand_is_not_intact_and_still_read():
    edited = RAW.replace(b'"platform":"telegram"', b'"platform":"_elegram"')
    with pytest.raises(InvalidSnapshotError, match="generation 7"):
        verify_checksum(edited)
    content = parse_snapshot(edited)
    assert not content.intact
    assert content.meta is not None
    assert content.meta.generation == 7
    assert len(content.entries) == 3


# Reading.


def test_what_was_written_is_read():
    content = parse_snapshot(RAW)
    assert content.entries == ENTRIES
    assert content.rejected == ()
    assert content.intact
    assert isinstance(content.meta, SnapshotMeta)


def test_a_file_that_lost_only_its_last_newline_is_read_in_full_and_not_intact():
    content = parse_snapshot(RAW[:-1])
    assert (content.entries, content.rejected, content.intact) == (ENTRIES, (), False)


def read_or_refuse(raw: bytes) -> SnapshotContent | None:
    try:
        return parse_snapshot(raw)
    except InvalidSnapshotError:
        return None


def test_a_truncated_file_is_never_taken_for_a_whole_one():
    for length in range(len(RAW) - 1):
        if content := read_or_refuse(RAW[:length]):
            assert not content.intact
            assert content.damaged
            assert content.entries == ENTRIES[: len(content.entries)]


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(120)])])
def test_a_truncated_file_of_hermes_shows_that_it_is_not_whole(step: int):
    raw = hermes_file("marked").rstrip()
    for length in range(1, len(raw), step):
        if content := read_or_refuse(raw[:length]):
            assert content.damaged


@pytest.mark.parametrize(
    "raw", [b"", b" \n", b"[]", b"null", b"x", b"{", b'{"', b"\x00" * 512, b'{"a":{', "{}".encode("utf-16")]
)
def test_a_file_of_which_nothing_can_be_read_is_an_error(raw: bytes):
    with pytest.raises(InvalidSnapshotError):
        parse_snapshot(raw)


@pytest.mark.parametrize("name", ["marked", "shared-session"])
def test_files_of_hermes_are_read_in_full(name: str):
    raw = hermes_file(name)
    content = parse_snapshot(raw, BERLIN)
    assert (content.meta, content.intact, content.damaged) == (None, False, False)
    assert content.rejected == ()
    assert [one.session_key for one in content.entries] == [key for key in json.loads(raw) if key[0] != "_"]


def test_several_lanes_may_name_one_session():
    content = parse_snapshot(hermes_file("shared-session"))
    assert len({one.session_id for one in content.entries}) < len(content.entries)


def test_a_file_that_a_hand_has_edited_gives_what_it_can_and_returns_the_rest():
    raw = hermes_file("edited", "before")
    content = parse_snapshot(raw)
    rejected = {str(one.key).rpartition(":")[2]: one for one in content.rejected}
    assert rejected.keys() == {"wrong-types", "bad-id", "bad-time", "no-id"}
    for name, one in rejected.items():
        assert json.loads(one.raw) == json.loads(raw)[f"agent:main:telegram:dm:{name}"]
    assert len(content.entries) + len(rejected) == sum(key[0] != "_" for key in json.loads(raw))
    assert "left the building" in {one.origin.platform for one in content.entries if one.origin}


def test_a_poisonous_entry_spoils_only_itself():
    good = RAW.split(b"\n")[1].rstrip(b",")
    poison = [
        b'"nan":{"x":NaN}', b'"big":{"x":' + b"9" * 5000 + b"}", b'"deep":' + b"[" * 100_000 + b"]" * 100_000,
        b'"twice":{"a":1,"a":2}', b'"half":{"x":"\\ud800"}', b'"true":true', b'"latin":{"x":"\xe9"}',
        b'"nul\\u0000":{}', b'"half \\udc00":{}', b'"\xff":{}',
    ]  # fmt: skip
    content = parse_snapshot(b"{" + b",".join([*poison, good]) + b"}")
    assert content.entries == ENTRIES[:1]
    assert len(content.rejected) == len(poison)
    assert all(one.reason for one in content.rejected)
    for one in content.rejected:
        str(one.key).encode()


def test_of_two_members_of_one_name_the_later_counts_and_the_earlier_is_returned():
    first = entry("a", display_name="first")
    lines = b"".join(encoded(one).split(b"\n")[1] for one in (first, entry("a", display_name="second")))
    content = parse_snapshot(b"{" + lines.rstrip(b",") + b"}")
    assert [one.display_name for one in content.entries] == ["second"]
    assert [json.loads(one.raw)["display_name"] for one in content.rejected] == ["first"]


def test_members_that_begin_with_an_underscore_are_no_entries():
    content = parse_snapshot(b'{"_README": "x", "_meta": 5}')
    assert (content.entries, content.rejected) == ((), ())


def test_a_byte_order_mark_of_an_editor_is_no_obstacle():
    content = parse_snapshot(b"\xef\xbb\xbf" + RAW)
    assert content.entries == ENTRIES
    assert not content.intact
