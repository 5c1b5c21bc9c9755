"""A client of the fork server that crash tests share: it hands in jobs and reads their outcomes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tests.crash.kills.fork_server import Job, Outcome

SLOTS = max(2, (os.cpu_count() or 2))


class ForkServer:
    """Runs jobs in a warm process."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server
        self._numbers = itertools.count()

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs beside each other; their outcomes, in the order of the jobs."""
        waiting = {next(self._numbers): job for job in jobs}
        order = list(waiting)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        lines = "".join(
            json.dumps({"id": number, "job": asdict(job)}) + "\n" for number, job in waiting.items()
        )
        self._server.stdin.write(lines)
        self._server.stdin.flush()
        outcomes: dict[int, Outcome] = {}
        while waiting:
            line = self._server.stdout.readline()
            assert line, "the server of the crash tests has ended"
            answer = json.loads(line)
            number = answer.pop("id")
            if number not in waiting:
                continue  # an answer that came too late for the test that asked
            outcomes[number] = Outcome(waiting.pop(number), **answer)
        return [outcomes[number] for number in order]


@contextmanager
def running_fork_server(base: Path, shim: Path | None) -> Generator[ForkServer]:
    """A warm process that works in a folder."""
    environment = dict(os.environ) | ({"LD_PRELOAD": str(shim)} if shim is not None else {})
    command = [sys.executable, "-m", "tests.crash.kills.fork_server", str(base), str(SLOTS)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert json.loads(server.stdout.readline()) == {"ready": True}
        yield ForkServer(server)
        server.stdin.close()
