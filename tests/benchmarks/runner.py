"""Measures: runs contenders in turn, each time in a fresh process, and keeps the figures of every round."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.machine import flushed, fsync_ms

ROUNDS: Final = 5
PATIENCE: Final = 900.0  # seconds for one task, before it counts as crashed

Figures = Mapping[str, float]
Round = Mapping[str, Figures]
"""What each contender measured in one round."""


KIND: Final = ": "


def figure_of(kind: str, figure: str) -> str:
    """The name of a figure that one kind of work has."""
    return f"{kind}{KIND}{figure}" if kind else figure


class UnavailableError(Exception):
    """A contender that this machine cannot run; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A task for a program. With a seed, its folder holds what the seeding task has left there.

    What the seeding task has measured is among its figures, the same in every round.
    """

    name: str
    program: str
    task: Mapping[str, Any]
    against: str | None = None
    """The contender of the same round that this one is compared with."""
    seed: Mapping[str, Any] | None = None
    in_place: bool = False
    """It changes nothing of what was seeded, which is too large to be copied for every round."""
    python: Callable[[], str] = lambda: sys.executable


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a figure of a round, or a ratio of two, must not exceed; or reach, if more is better."""

    text: str
    unit: str
    limit: float
    measure: Callable[[Round], float]
    aim: float | None = None
    floor: float = 0.0
    """Below it the work cannot have been done: somebody answered before it was durable."""
    more_is_better: bool = False
    over_rounds: Callable[[Sequence[float]], float] = statistics.median

    def measured(self, rounds: Sequence[Round]) -> float | None:
        """The figure over all rounds; None if a contender it needs gave none."""
        try:
            return self.over_rounds([self.measure(one) for one in rounds])
        except KeyError:
            return None

    def verdict(self, measured: float | None) -> str:
        """Met or missed, in a word."""
        if measured is None:
            return "not measured"
        if measured < self.floor:
            return "missed: too fast to be durable"
        return (
            "met" if (measured >= self.limit if self.more_is_better else measured <= self.limit) else "missed"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Contenders at the same work; `compared` is the figure that ratios are made of.

    A contender that does several kinds of work names its figures `kind: figure`.
    """

    name: str
    title: str
    contenders: Sequence[Contender]
    budgets: Sequence[Budget]
    compared: str


@dataclass(slots=True)
class Results:
    """The rounds of a benchmark, and why some contenders are missing from them."""

    benchmark: Benchmark
    rounds: list[dict[str, Figures]] = field(default_factory=list)
    fsyncs: list[float] = field(default_factory=list)
    unavailable: dict[str, str] = field(default_factory=dict)
    crashed: dict[str, str] = field(default_factory=dict)

    def values(self, contender: str, figure: str) -> list[float]:
        """That figure in every round that has it."""
        return [one[contender][figure] for one in self.rounds if figure in one.get(contender, {})]

    def kinds(self, contender: str) -> list[str]:
        """The kinds of work it has figures for; an empty one if some figures are of none."""
        names = (name for one in self.rounds for name in one.get(contender, {}))
        return list(dict.fromkeys(name.rpartition(KIND)[0] for name in names))

    def ratios(self, contender: Contender, kind: str = "") -> list[float]:
        """The compared figure over that of the contender it is compared with, round by round."""
        mine, figure = contender.name, figure_of(kind, self.benchmark.compared)
        pairs = [
            (one[mine], one[contender.against])
            for one in self.rounds
            if mine in one and contender.against in one
        ]
        return [left[figure] / right[figure] for left, right in pairs if figure in left and figure in right]


class BenchmarkRunner:
    """The folder in which children work. A seed is made once and copied for every task that needs it."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environment
        self._seeds: dict[str, tuple[Path, Figures]] = {}

    def measure(self, benchmark: Benchmark, rounds: int) -> Results:
        """Run every contender once per round, so that a slow moment of the machine hits them all."""
        results = Results(benchmark)
        for number in range(rounds):
            results.fsyncs.append(fsync_ms(self._root))
            figures: dict[str, Figures] = {}
            for contender in benchmark.contenders:
                if contender.name in results.unavailable | results.crashed:
                    continue
                _say(f"{benchmark.name} {number + 1}/{rounds} {contender.name}")
                try:
                    figures[contender.name] = self._run(contender)
                except UnavailableError as reason:
                    results.unavailable[contender.name] = str(reason)
                except subprocess.SubprocessError as problem:
                    results.crashed[contender.name] = _last_words(problem)
            results.rounds.append(figures)
        _say("")
        return results

    def _run(self, contender: Contender) -> Figures:
        python = contender.python()
        seed, seeding = self._seeded(contender, python)
        with tempfile.TemporaryDirectory(dir=self._root) as folder:
            if seed is not None and not contender.in_place:
                shutil.copytree(seed, folder, dirs_exist_ok=True)
            flushed()
            place = str(seed) if contender.in_place else folder
            return {**seeding, **self._child(python, contender.program, {**contender.task, "folder": place})}

    def _seeded(self, contender: Contender, python: str) -> tuple[Path | None, Figures]:
        if contender.seed is None:
            return None, {}
        name = json.dumps([contender.program, contender.seed], sort_keys=True)
        if name not in self._seeds:
            folder = Path(tempfile.mkdtemp(prefix="seed-", dir=self._root))
            figures = self._child(python, contender.program, {**contender.seed, "folder": str(folder)})
            self._seeds[name] = (folder, figures)
        return self._seeds[name]

    def _child(self, python: str, program: str, task: Mapping[str, Any]) -> Figures:
        """Run a task in a process of its own; the figures are the last line that it prints."""
        command = [python, "-m", f"tests.benchmarks.{program}", json.dumps(task)]
        done = subprocess.run(
            command,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **self._environment},
            capture_output=True,
            check=True,
            text=True,
            timeout=PATIENCE,
        )
        figures: Figures = json.loads(done.stdout.splitlines()[-1])
        return figures


def _say(progress: str) -> None:
    """Replace the line of progress, if somebody is watching."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{progress}", end="", file=sys.stderr, flush=True)


def _last_words(problem: subprocess.SubprocessError) -> str:
    """The last line a child wrote before it died, which names the exception."""
    with suppress(AttributeError, IndexError):
        if isinstance(problem, subprocess.CalledProcessError):
            return str(problem.stderr.strip().splitlines()[-1])
    return str(problem)
