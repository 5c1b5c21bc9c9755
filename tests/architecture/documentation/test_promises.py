"""Every promise stands on the page, and names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "promises.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
PROMISES = (
    "What was accepted is turned, given up where everybody can see it, or taken out by somebody",
    "On each lane messages have places without gaps, and turns begin in that order",
    "Of many nodes on a server any may die",
    "A message that is delivered again, or tried again, has one row in transcripts",
    "sessions.json is a complete old or new generation",
    "Two principals never share a session unless configured",
    "States and reasons have a fixed precedence",
    "Whoever was stopped, reset or overtaken writes nothing any more",
    "Hooks: at least once, one idempotency key",
    "Nothing active is expired, pruned or evicted",
    "Whatever is asked of a gateway has a bound",
    "One daily reset per local date in every zone",
    "A failing store is a typed error",
    "After an erasure no byte of a person is in the store's directory",
    "The loop never stalls on storage",
    "Cancellation at any await leaves no transaction, lock or task",
    "A newer schema that cannot be read is left alone",
    "What was acknowledged is there after a kill at any point",
    "One process owns a store",
)
"""What may never be missing, whatever else is promised."""


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def rows() -> list[str]:
    return [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("promise", PROMISES)
def test_no_promise_is_missing(promise: str):
    assert len([row for row in rows() if row.startswith(f"| {promise}")]) == 1


def test_every_promise_is_held_by_tests_that_exist():
    for row in rows():
        named = NAMED.findall(row)
        assert named, row
        for file, test in named:
            assert not test or test in functions_of(ROOT / file), f"{file}::{test}"
