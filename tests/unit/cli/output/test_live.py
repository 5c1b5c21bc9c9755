"""What the process that has a store tells of itself is shown as far as it is known."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from gateway_sessions.cli.output.live import overview_page
from gateway_sessions.core.process_load import AgentCounts, LoopLag
from gateway_sessions.operator import OwnerStatus
from gateway_sessions.runtime.operator.overview import Overview
from gateway_sessions.storage.transactions.upkeep.status import PendingWork

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORK = PendingWork(running=0, waiting=0, oldest_waiting=None, owed_replies=0, dead_messages=0, dead_replies=0)
NOTHING = Overview(now=NOW, owner=None, owner_problem=None, sessions=0, work=WORK, lanes=(), resets=())
OWNER = OwnerStatus(
    pid=7, program="1.0", schema=1, database="/there", epoch=2, generation=3, lanes=0,
    opened_at=NOW - timedelta(hours=1), uptime_seconds=3600, draining=False,
)  # fmt: skip
COUNTS = AgentCounts(idle=3, room=1280, lent=2, closing=0, weight=0, hits=95, misses=5)


def told(seen: Overview) -> dict[str, str]:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(overview_page(seen))
    lines = (line.split("  ", 1) for line in capture.get().splitlines())
    return {line[0].strip(): line[-1].strip() for line in lines}


@pytest.mark.parametrize(
    ("seen", "agents", "loop"),
    [
        (NOTHING, "not running", "not running"),
        (
            replace(NOTHING, owner_problem="it did not answer within 5 s"),
            "unknown, for the owner does not answer",
            "unknown, for the owner does not answer",
        ),
        (replace(NOTHING, owner=OWNER), "no gateway runs there", "not measured yet"),
        (
            replace(NOTHING, owner=replace(OWNER, agents=replace(COUNTS, hits=0, misses=0))),
            "3 of 1,280 warm, 2 at work",
            "not measured yet",
        ),
        (
            replace(NOTHING, owner=replace(OWNER, agents=COUNTS, loop=LoopLag(usual_ms=0.44, worst_ms=1234))),
            "3 of 1,280 warm, 2 at work; 95 of 100 turns found theirs (95%)",
            "0.4 ms late, at most 1,234 ms in the last minute",
        ),
    ],
)
def test_agents_and_the_loop_are_told_of_as_far_as_they_are_known(seen: Overview, agents: str, loop: str):
    assert (told(seen)["Agents"], told(seen)["Event loop"]) == (agents, loop)
    assert told(seen)["Given up"] == "nothing"


def test_an_owner_that_is_asked_to_go_is_said_so():
    seen = replace(NOTHING, owner=replace(OWNER, draining=True))
    assert told(seen)["Owner"] == "process 7, version 1.0, for 1h, opening 2, asked to hand over"
