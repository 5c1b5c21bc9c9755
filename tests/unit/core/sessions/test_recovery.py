"""After a restart: who goes on, and what the two files for the operator say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway_sessions.core.sessions.recovery import (
    CleanShutdown,
    Recovery,
    decode_restart_counts,
    encode_restart_counts,
    is_clean_end_of,
    plan_recovery,
)

AT = datetime(2026, 6, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("attempts", "limit", "plan"),
    [(1, 3, Recovery.RESUME), (2, 3, Recovery.RESUME), (3, 3, Recovery.SUSPEND), (9, 3, Recovery.SUSPEND),
     (1, 1, Recovery.SUSPEND)],
)  # fmt: skip
def test_a_session_goes_on_until_it_has_failed_as_often_as_it_may(attempts, limit, plan):
    assert plan_recovery(attempts, limit) is plan


def test_a_marker_counts_for_the_epoch_that_wrote_it():
    marker = CleanShutdown(7, AT).encode()
    assert is_clean_end_of(marker, 7)
    assert not is_clean_end_of(marker, 6)
    assert not is_clean_end_of(marker, 8)


def test_a_marker_can_be_read_by_people():
    assert CleanShutdown(7, AT).encode() == b'{"epoch":7,"at":"2026-06-10T12:00:00+00:00"}\n'


@pytest.mark.parametrize(
    "marker",
    [None, b"", b"\n", b"7", b"{}", b'{"epoch":"7"}', b'{"epoch":7', b"\xff", b"[7]", b'{"epoch":null}'],
)
def test_a_marker_that_says_anything_else_skips_no_work(marker):
    assert not is_clean_end_of(marker, 7)


def test_counts_are_written_in_the_order_of_the_keys():
    assert encode_restart_counts({"b": 2, "a": 1}) == b'{"a":1,"b":2}\n'


def test_counts_are_read_back():
    counts = {"agent:main:telegram:dm:ü": 2, "agent:main:x:dm:1": 1}
    assert decode_restart_counts(encode_restart_counts(counts)) == counts


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b'{"a":', b"\xff"])
def test_a_file_that_is_none_counts_nothing(raw):
    assert decode_restart_counts(raw) == {}


def test_whatever_is_not_a_count_is_left_out():
    raw = b'{"a":1,"b":"2","c":true,"d":0,"e":-1,"f":1.5,"g":null,"h":{}}'
    assert decode_restart_counts(raw) == {"a": 1}
