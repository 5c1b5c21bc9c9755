"""The events that a gateway emits: each has to be as the page of events says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from gateway_sessions.runtime.observability.event_stream import EventKind, GatewayEvent, Listener

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "events.md"
ROW = re.compile(r"^\| `([\w.]+)` \| .+ \| (.+) \|$", re.MULTILINE)


@cache
def documented_facts() -> dict[str, frozenset[str]]:
    """Kind → facts, as they are on the page."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {kind: frozenset(re.findall(r"`(\w+)`", facts)) for kind, facts in rows}


def take_events(listener: Listener, *kinds: EventKind) -> list[GatewayEvent]:
    """What came since the last time, of some kinds or of all; every event as it is documented."""
    events = listener.take()
    wrong = [event for event in events if frozenset(event.facts) != documented_facts()[event.kind]]
    assert wrong == []
    return [event for event in events if not kinds or event.kind in kinds]


def kinds_of(events: list[GatewayEvent]) -> list[str]:
    return [str(event.kind) for event in events]
