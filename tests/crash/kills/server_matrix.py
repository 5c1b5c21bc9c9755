"""The crash matrix on a server: `python -m tests.crash.kills.server_matrix postgresql|mysql [--some N]`.

The same as in `tests.crash.kills.matrix`, in a database of a server: people talk to a gateway (`talk`), or a
program without one has a queue (`conversation`). A child is killed at every named point at each of its
passes, or at so many of them, far from each other. Each time the next node has to find out that the one
before is dead, and make good of it. `migration` kills whoever opens an empty database, while tables are made;
the next one makes the rest and works with them. This ends with status 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from gateway_sessions import Config
from gateway_sessions.config import Provider, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.testing.faults import count_passes, crash_at
from tests import mysql, postgresql
from tests.crash.kills.fork_server import Job, Outcome, end_after_seconds, in_fork
from tests.crash.kills.gateway_workload import GatewayWorkload, check_gateway
from tests.crash.kills.matrix import Row, markdown_table
from tests.crash.kills.queue_workload import QueueWorkload, check_queue
from tests.crash.kills.store_workload import SCENARIOS, START, Journal
from tests.crash.stores import SteppedClock

NUMBERS: Final = {one.script: number for number, one in enumerate(SCENARIOS)}
"""Which job is which script."""
SCRIPTS: Final = ("talk", "conversation", "migration")
PATIENCE: Final = 60
SOON_DEAD: Final = ClusterRules(heartbeat=timedelta(seconds=0.5), ttl=timedelta(seconds=5))


@dataclass(frozen=True, kw_only=True)
class Server:
    """What the matrix knows of a kind of server."""

    database: Callable[[], Any]
    """Makes one with our tables, and removes it."""
    wipe: Callable[[str], Awaitable[None]]
    """Empties its tables."""
    clear: Callable[[str], Awaitable[None]]
    """Removes its tables."""


SERVERS: Final = {
    Provider.POSTGRESQL: Server(
        database=postgresql.migrated_database_at,
        wipe=postgresql.delete_all_rows,
        clear=postgresql.drop_all_tables,
    ),
    Provider.MYSQL: Server(
        database=mysql.migrated_database_at, wipe=mysql.delete_all_rows, clear=mysql.drop_all_tables
    ),
}


@dataclass(frozen=True)
class ServerKills:
    """Where the children live and die."""

    provider: Provider
    address: str
    base: Path

    @property
    def config(self) -> Config:
        """What all of them are told."""
        return Config(
            timezone="UTC",
            sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
            sessiondb=SessionDBConfig(provider=self.provider, url=self.address),
            cluster=SOON_DEAD,
        )

    def try_out(self, job: Job) -> Outcome:
        """Let a child run and die, then look at what it left behind."""
        home, journal, notes = (self.base / name for name in ("home", "journal", "notes"))
        for left in (journal, notes):
            left.unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)
        script, server = SCENARIOS[job.scenario].script, SERVERS[self.provider]
        empty = server.clear if script == "migration" else server.wipe
        self._run_in_child(lambda: asyncio.run(empty(self.address)))
        status = self._run_in_child(lambda: self._play(job, home, journal))
        outcome = Outcome(job, died=os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)
        if status and not outcome.died:
            outcome.error = f"the script failed:\n{notes.read_text()}"
        elif (
            outcome.died
            and script == "migration"
            and self._run_in_child(lambda: self._again(job, home, journal))
        ):
            outcome.error = f"the next one could not work with it:\n{notes.read_text()}"
        elif self._run_in_child(lambda: self._check(script, home, journal)):
            outcome.error = notes.read_text()
        elif not outcome.died:
            outcome.passes = json.loads((self.base / "passes").read_text())
        return outcome

    def _run_in_child(self, work: Callable[[], object]) -> int:
        """Do something in a child, which says in `notes` what went wrong; how it ended."""

        def told() -> None:
            os.dup2(os.open(self.base / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
            end_after_seconds(PATIENCE)
            work()

        return in_fork(told)

    def _play(self, job: Job, home: Path, journal: Path) -> None:
        script = GatewayWorkload if SCENARIOS[job.scenario].script == "talk" else QueueWorkload
        played = script(home, self.config, SteppedClock(START), Journal(journal).line)
        with crash_at(job.point, nth=job.nth) if job.point else count_passes() as passed:
            asyncio.run(played.run())
        counted = passed if isinstance(passed, dict) else {}
        (self.base / "passes").write_text(json.dumps(counted))

    def _again(self, job: Job, home: Path, journal: Path) -> None:
        self._play(replace(job, point=""), home, journal)

    def _check(self, script: str, home: Path, journal: Path) -> None:
        clock = SteppedClock(START + timedelta(hours=1))
        if script == "talk":
            asyncio.run(check_gateway(home, journal, self.config, clock, Journal(journal).line))
        else:
            asyncio.run(check_queue(home, journal, self.config, clock))


@contextmanager
def server_kills(provider: Provider) -> Generator[ServerKills]:
    """A database of its own, and a folder. No event loop runs meanwhile: everything is done in forks."""
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        stack = AsyncExitStack()
        address = runner.run(stack.enter_async_context(SERVERS[provider].database()))
        try:
            yield ServerKills(provider, address, Path(folder))
        finally:
            runner.run(stack.aclose())


def jobs_of(here: ServerKills, script: str, some: int | None) -> list[Job]:
    """Where a script is killed: everywhere, or at so many places."""
    number = NUMBERS[script]
    whole = here.try_out(Job(number))
    if whole.error:
        raise SystemExit(whole.error)
    jobs = [
        Job(number, point=point, nth=nth)
        for point, passes in whole.passes.items()
        if (point == "during_migration") == (script == "migration")
        for nth in range(1, passes + 1)
    ]
    return jobs[:: max(1, len(jobs) // some)] if some else jobs


def kill_everywhere(here: ServerKills, scripts: Sequence[str], some: int | None) -> dict[str, Row]:
    """What came of all the kills."""
    rows: dict[str, Row] = defaultdict(Row)
    for job in [job for script in scripts for job in jobs_of(here, script, some)]:
        outcome = here.try_out(job)
        rows[job.point].add(outcome)
        if outcome.error:
            print(f"--- {outcome.job}\n{outcome.error}", file=sys.stderr)
    return rows


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("server", type=Provider, choices=list(SERVERS))
    parser.add_argument("--script", choices=SCRIPTS, help="what is played; default: one after another")
    parser.add_argument("--some", type=int, help="about so many kills of each; default: all there are")
    asked = parser.parse_args(arguments)
    with server_kills(asked.server) as here:
        rows = kill_everywhere(here, [asked.script] if asked.script else SCRIPTS, asked.some)
    print(markdown_table(rows))
    return int(any(row.broken for row in rows.values()) or not any(row.kills for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
