"""The engine's own example survives the fuzzing that every platform must survive."""

from __future__ import annotations

import json
import time

import pytest

from gateway_sessions.adapters.webhooks import Request
from tests.unit.adapters.webhooks.example_platform import ExampleRules, signature
from tests.unit.adapters.webhooks.fuzz import assert_forgeries_fail, assert_survives

EVENTS = [
    {"id": "1", "chat": "ann", "text": "hello"},
    {"id": "2", "status": "failed", "why": "away"},
    {"joined": True},
]


def signed(request: Request) -> Request:
    headers = {**request.headers, "x-signature": signature(request.body)}
    return Request(request.method, request.target, headers, request.body)


RECORDED = signed(Request("POST", "/example", {}, json.dumps({"events": EVENTS}).encode()))


def test_whatever_is_signed_becomes_an_event_or_is_unreadable():
    begun = time.monotonic()
    seen = assert_survives(ExampleRules(), [RECORDED], signed)
    assert min(seen[kind] for kind in ("InboundMessage", "UnreadableEvent", "PassedOver")) > 100
    assert time.monotonic() - begun < 60


def test_nothing_but_the_signed_bytes_is_genuine():
    assert_forgeries_fail(ExampleRules(), RECORDED)


def test_what_a_part_leaves_out_is_found():
    class Silent(ExampleRules):
        def parse(self, request: Request) -> list[object]:  # type: ignore[override]
            return []

    with pytest.raises(AssertionError, match="nothing is told"):
        assert_survives(Silent(), [RECORDED], signed, times=10)
