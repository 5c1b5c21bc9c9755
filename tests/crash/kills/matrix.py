"""The crash matrix: `python -m tests.crash.kills.matrix [--every N]`.

A child lets people talk to a gateway and is killed at every named point at each of its passes, and before
every N-th system call that writes. Points that nobody passes who talks are tried in the first other script
that does: the life of a store, an import, a migration. Each time the next gateway, or store, has to make good
of it. The table says what was lost, doubled without a mark, or reordered: nothing, or it ends with status 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway_sessions.testing.faults import FAILPOINTS
from tests.crash.kills.fork_server import Job, Outcome
from tests.crash.kills.fork_server_client import ForkServer, running_fork_server
from tests.crash.kills.store_workload import SCENARIOS
from tests.faulty_system import Mode, build_shim_library

TALK = next(number for number, one in enumerate(SCENARIOS) if one.script == "talk")
CALLS = "a system call that writes"
WORDS = {"lost": "was accepted", "doubled": "doubled", "twice": "twice", "reordered": "reordered"}


@dataclass(slots=True)
class Row:
    """What became of all the kills at one place."""

    kills: int = 0
    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    other: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one."""
        self.kills += outcome.died
        error = outcome.error
        self.lost += WORDS["lost"] in error
        self.doubled += WORDS["doubled"] in error or WORDS["twice"] in error
        self.reordered += WORDS["reordered"] in error
        self.other += bool(error) and not any(word in error for word in WORDS.values())

    @property
    def broken(self) -> bool:
        """Whether a promise was."""
        return bool(self.lost or self.doubled or self.reordered or self.other)


def jobs_of(whole: Sequence[Outcome], every: int) -> dict[str, list[Job]]:
    """Where the child is killed, after each script was run once to its end."""
    jobs: dict[str, list[Job]] = {}
    talk = next(one for one in whole if one.job.scenario == TALK)
    for outcome in (talk, *whole):
        for point, passes in outcome.passes.items():
            passing = [Job(outcome.job.scenario, point=point, nth=nth) for nth in range(1, passes + 1)]
            jobs.setdefault(point, passing)
    calls = range(1, talk.calls + 1, every)
    return jobs | {CALLS: [Job(TALK, call=call, mode=Mode.KILL) for call in calls]}


def kill_everywhere(fork_server: ForkServer, every: int) -> dict[str, Row]:
    """Kill it everywhere."""
    whole = fork_server.run([Job(number) for number in range(len(SCENARIOS))])
    if errors := [one.error for one in whole if one.error]:
        raise SystemExit("\n".join(errors))
    rows: dict[str, Row] = defaultdict(Row)
    for place, jobs in jobs_of(whole, every).items():
        for outcome in fork_server.run(jobs):
            rows[place].add(outcome)
            if outcome.error:
                print(f"--- {outcome.job}\n{outcome.error}", file=sys.stderr)
    return rows


def markdown_table(rows: dict[str, Row]) -> str:
    """The table, as Markdown."""
    order = [point for point in (*FAILPOINTS, CALLS) if point in rows]
    lines = [
        "| killed when | times | lost | doubled | reordered | other |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for place in order:
        row = rows[place]
        what = FAILPOINTS.get(place, f"{place}, each in turn")
        counts = (row.kills, row.lost, row.doubled, row.reordered, row.other)
        lines.append(f"| {what} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--every", type=int, default=1, help="every N-th system call; default: each")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "fork_server").mkdir()
        with running_fork_server(base / "fork_server", build_shim_library(base)) as fork_server:
            rows = kill_everywhere(fork_server, asked.every)
    print(markdown_table(rows))
    return int(any(row.broken for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
