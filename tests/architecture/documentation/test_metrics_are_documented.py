"""The page of metrics names every event and every number there is, and the example writes what it says."""

import re
from dataclasses import fields
from pathlib import Path

from gateway_sessions.core.process_load import AgentCounts, LoopLag
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.runtime.store.control import OwnerStatus
from gateway_sessions.storage.transactions.upkeep.status import PendingWork
from tests.integration.gateway.documented_events import documented_facts

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "examples" / "prometheus.py").read_text(encoding="utf-8")
EVENTS, BESIDE = (
    PAGE.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    for heading in ("From events", "Beside a gateway")
)
FOR_PEOPLE = {
    "owner.pid",
    "owner.program",
    "owner.schema",
    "owner.database",
    "owner.opened_at",
    "owner.draining",
}
"""What `top` answers besides, and nobody draws a curve of."""


def labels() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `([\w.]+)` \| .+ \|([^|]*)\|$", EVENTS, re.MULTILINE)
    return {kind: set(re.findall(r"`(\w+)`", told)) for kind, told in rows}


def test_every_kind_of_event_is_on_the_page():
    assert [*labels()] == [kind.value for kind in EventKind]


def test_the_labels_are_facts_of_the_events():
    assert {kind: found - documented_facts()[kind] for kind, found in labels().items()} == {
        kind.value: set[str]() for kind in EventKind
    }


def test_every_number_that_top_answers_is_on_the_page():
    parts = {"work": PendingWork, "owner": OwnerStatus, "owner.agents": AgentCounts, "owner.loop": LoopLag}
    numbers = {f"{part}.{one.name}" for part, kind in parts.items() for one in fields(kind)}
    on_page = set(re.findall(r"`((?:work|owner)\.[\w.]+)`", BESIDE))
    assert on_page == numbers - FOR_PEOPLE - {"owner.agents", "owner.loop"}


def test_the_example_writes_the_metrics_that_are_on_the_page():
    on_page = re.findall(r"`(gateway_sessions_\w+)`", EVENTS)
    assert sorted(on_page) == sorted(set(re.findall(r'"(gateway_sessions_\w+)"', EXAMPLE)))
