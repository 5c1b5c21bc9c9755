"""The examples run anywhere, print the same each time, and show what the documentation says they show."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
WIDTH = 80
PATIENCE = 60
"""Seconds for a process of its own, on a machine that is busy elsewhere."""

pytestmark = pytest.mark.timeout(PATIENCE)

EXPECTED = {
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
    "policies.py": [
        "daily at 01:00               365   01:00 EST       01:00 EDT",
        "daily at 02:00               365   03:00 EDT       02:00 EST",
        "never                          0   -               -",
    ],
}


def run(example: str, *command: str, **environment: str) -> str:
    finished = subprocess.run(
        [sys.executable, *command, EXAMPLES / example],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@cache
def shown(example: str) -> str:
    return run(example, TZ="UTC", LC_ALL="C")


@pytest.mark.parametrize("example", EXPECTED)
def test_an_example_shows_what_it_promises_in_a_narrow_terminal_without_colours(example: str):
    output = shown(example)
    assert [line for line in EXPECTED[example] if line not in output] == []
    assert [line for line in output.splitlines() if len(line) > WIDTH] == []
    assert "\x1b" not in output


@pytest.mark.parametrize("example", EXPECTED)
def test_an_example_prints_the_same_wherever_and_whenever_it_runs(example: str):
    assert run(example, TZ="Asia/Tokyo", PYTHONHASHSEED="1") == shown(example)


def test_the_example_of_policies_is_a_test_as_well():
    output = run("policies.py", "-m", "pytest", "--quiet", "-p", "no:cacheprovider")
    assert "2 passed" in output
