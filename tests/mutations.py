"""What the promises hang on: `python -m tests.mutations` takes each of them away, and the tests must fail.

Works on a copy. The table goes to the terminal; it ends with status 1 if tests pass that should not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
COPIED: Final = ("gateway_sessions", "tests", "pyproject.toml", "examples", "docs", "config.example.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One line of the package, and what stands there instead."""

    what: str
    file: str
    line: str
    instead: str
    tests: tuple[str, ...]
    """Where it has to be noticed."""

    def apply(self, root: Path) -> None:
        """Change the copy under *root*."""
        path = root / "gateway_sessions" / self.file
        text = path.read_text("utf-8")
        if text.count(self.line) != 1:
            problem = f"{self.file} does not say exactly once: {self.line}"
            raise ValueError(problem)
        path.write_text(text.replace(self.line, self.instead), "utf-8")


MUTATIONS: Final = (
    Mutation(
        what="the guard of the token: a turn that was stopped or overtaken may write",
        file="storage/tables/lanes.py",
        line="if (lane.lease_epoch, lane.lease_token) != (epoch, token):",
        instead="if lane.lease_epoch is None and token < 0:",
        tests=("tests/contract/test_sqlite_ledger.py",),
    ),
    Mutation(
        what="the deduplication: an event of a platform is taken as often as it is delivered",
        file="core/queue/inbound.py",
        line="if not self.message_id:",
        instead="if self.message_id is not None:",
        tests=("tests/integration/gateway/turns/test_turns.py",),
    ),
    Mutation(
        what="the fsync of the directory: a file that was replaced may be the old one after a power cut",
        file="storage/files/atomic_file.py",
        line="        self._files.fsync_directory(self._target.parent)\n",
        instead="",
        tests=("tests/crash/files/test_file_faults.py", "tests/unit/storage/files/test_atomic_file.py"),
    ),
    Mutation(
        what="the attempt that a claim counts: a turn that kills its process is begun for ever",
        file="storage/transactions/queue/recover.py",
        line="key, attempts = lane.session_key, lane.attempts + 1",
        instead="key, attempts = lane.session_key, lane.attempts",
        tests=("tests/unit/runtime/duties/test_restart_recovery.py",),
    ),
    Mutation(
        what="the look at what was edited: a turn that ends writes down what it began with",
        file="storage/transactions/queue/running_turn.py",
        line="as_begun = begun is not None and not begun.recorded",
        instead="as_begun = False",
        tests=("tests/integration/gateway/queue/test_changed_messages.py",),
    ),
    Mutation(
        what="the state that a statement looks for: what runs is cancelled like what waits",
        file="storage/sql/store/fragments.sql",
        line="outcome IS NULL AND token IS NULL AND kind IN ('message', 'internal')",
        instead="outcome IS NULL AND kind IN ('message', 'internal')",
        tests=("tests/unit/storage/tables/test_statements.py",),
    ),
    Mutation(
        what="the name of a move: a message that joins a turn is said to lead one",
        file="storage/transactions/queue/admit.py",
        line="ItemEvent.QUEUED if into is None else ItemEvent.JOINED",
        instead="ItemEvent.QUEUED",
        tests=("tests/contract/test_sqlite_ledger.py",),
    ),
    Mutation(
        what="the fresh context: an agent sees the variables of whoever has submitted",
        file="runtime/user_code.py",
        line="asyncio.create_task(work, context=Context())",
        instead="asyncio.create_task(work)",
        tests=("tests/integration/gateway/test_field_failures.py",),
    ),
    Mutation(
        what="the version of the transcript: a warm agent remembers what was taken back",
        file="runtime/agents/cache.py",
        line="if owned is not None and owned.validity == validity:",
        instead="if owned is not None:",
        tests=("tests/integration/gateway/test_field_failures.py",),
    ),
    Mutation(
        what="the eviction: an undo leaves the agent of its lane in memory",
        file="runtime/gateway/commands/turns.py",
        line="    if taken is not None:\n        call.gateway.agents.evict(call.session_key)\n",
        instead="",
        tests=("tests/integration/gateway/test_field_failures.py",),
    ),
)


def is_noticed(mutation: Mutation) -> bool:
    """Whether the tests fail once the mutation is made."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in COPIED:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, root / name)
        mutation.apply(root)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutation.tests]
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout + done.stderr)
    return done.returncode == 1


def main() -> int:
    """Print the table."""
    print("| taken away | the tests |\n| --- | --- |")
    missed = 0
    for mutation in MUTATIONS:
        seen = is_noticed(mutation)
        missed += not seen
        print(f"| {mutation.what} | {'fail' if seen else '**pass**'} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
