"""The examples run anywhere, print the same each time, and show what the documentation says they show."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.programs import WarmPython

EXAMPLES = Path(__file__).parents[3] / "examples"
WIDTH = 80
PATIENCE = 60
"""Seconds for a process of its own, on a machine that is busy elsewhere."""

pytestmark = pytest.mark.timeout(PATIENCE)

EXPECTED = {
    "demo.py": [
        "Ada, alone         agent:main:telegram:dm:4711",
        "Ada in group Team  agent:main:telegram:group:-100:4711",
        "1.00  to Rome      │ queued      │ queued      │ steers      ✕ interrupted",
        "1.20  by train     │ merged      │ merged      │ steers      · merged",
        "queue         3       3         Plan a trip, to Rome, by train, in May",
        "collect       2       2         Plan a trip, to Rome, by train, in May",
        "steer         1       1         Plan a trip, to Rome, by train, in May",
        "interrupt     3       1         Plan a trip, to Rome, by train, in May",
        "40 minutes of silence; the clocks on the walls say 100",
        "Sun 03:45 EDT       warn Bob: the session ends at 04:00 EDT, in 15 minutes",
        "Sun 04:05 EDT       Ada's session is active\n",
        "Sun 04:05 EDT       Bob's session is expired, because of daily",
        "This is a new conversation, because a new day has begun.",
        "I know 0 of your messages.",
        "“/undo-reset”                  20260308_064000 back",
        "I know 4 of your messages, the first: “I cannot sleep.”",
        "start      after a crash; replies in doubt: 1\n    to Ada     (This may be a repeat.) Rome.",
        "recorded result. Its effect is unknown.",
        "sessions suspended: 1\n    to Bob     I tried to answer that several times",
        "messages accepted               5\n",
        "answers that people have seen   4\n",
        "kept as a dead letter           1\n",
        "lost                            0\n",
        "taxis ordered                   1\n",
        "user       Order [a taxi] to the airport for six.",
        "assistant  去[机场]的火车六点零五分开。",
        "Bob   taxi          nothing",
        "Sun 10:20 EDT  suspended    because of crash_loop            by recovery",
    ],
    "time_travel.py": [
        "Ada, alone       agent:main:telegram:dm:4711",
        "Bob in Team      agent:main:telegram:group:-100:4712",
        "Sat 22:30 EDT  Back again.                       20261101_023000 new: idle",
        "Sun 01:10 EDT  Still awake.                      20261101_051000 new: daily",
        "Sun 01:10 EST  Still awake?                      20261101_051000 goes on",
        "undo_reset  -> 20261101_023000 is the session again",
        "Sun 02:10 EST  attempt 1: fails   20261101_023000:",
        "Sun 02:12 EST  attempt 3: done    20261101_023000:",
        "next message  goes on with 20261101_071000",
        "every acknowledged answer is there    yes",
        "sessions.json is whole                yes",
        "1 session: resume_pending, because of restart_interrupted",
    ],
    "embed_in_a_bot.py": [
        "Mon 10:00  Ada: Who am I?\n           Bot: You are Ada.",
        "Bot: A day of silence",
        "Tue 16:00  Ada: /undo\n           Bot: Back in the conversation before.",
    ],
    "prometheus.py": [
        'gateway_sessions_events_total{kind="message.accepted"} 3',
        'gateway_sessions_turns_total{outcome="turned"} 3',
        'gateway_sessions_turn_seconds_bucket{le="5.0"} 2\n',
        "gateway_sessions_turn_seconds_sum 24.0",
        "gateway_sessions_lanes 1\n",
    ],
    "policies.py": [
        "daily at 01:00               365   01:00 EST       01:00 EDT",
        "daily at 02:00               365   03:00 EDT       02:00 EST",
        "never                          0   -               -",
    ],
}


def run(example: str, **environment: str) -> str:
    finished = subprocess.run(
        [sys.executable, EXAMPLES / example],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@cache
def shown(example: str) -> str:
    return run(example, TZ="America/Caracas", LC_ALL="C")


@pytest.mark.parametrize("example", EXPECTED)
def test_an_example_shows_what_it_promises_in_a_narrow_terminal_without_colours(example: str):
    output = shown(example)
    assert [line for line in EXPECTED[example] if line not in output] == []
    assert [line for line in output.splitlines() if len(line) > WIDTH] == []
    assert "\x1b" not in output


LONG = {"demo.py", "policies.py"}
"""They run once, far from UTC; whether they print the same in another place is left to a soak."""


@pytest.mark.parametrize(
    "example", [pytest.param(name, marks=[pytest.mark.soak] if name in LONG else []) for name in EXPECTED]
)
def test_an_example_prints_the_same_wherever_and_whenever_it_runs(example: str):
    assert run(example, TZ="Asia/Tokyo", PYTHONHASHSEED="1") == shown(example)


def test_the_demo_kills_five_processes_and_runs_by_the_command_that_the_readme_names():
    assert shown("demo.py").count("SIGKILL ") == 5
    assert "examples/demo.py" in (EXAMPLES.parent / "Makefile").read_text(encoding="utf-8")


def test_the_example_of_policies_is_a_test_as_well(warm_python: WarmPython):
    finished = warm_python.run_pytest(EXAMPLES / "policies.py")
    assert "2 passed" in finished.stdout, finished.stdout + finished.stderr
