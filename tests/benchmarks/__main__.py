"""`python -m tests.benchmarks [names…] [--json FILE] [--quick] [--slow-disk MS]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks import machine, report
from tests.benchmarks.catalogue import benchmarks
from tests.benchmarks.runner import ROUNDS, BenchmarkRunner
from tests.faulty_system import Mode, build_shim_library, faulty_environment


def arguments(names: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"all, or some of: {', '.join(names)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure of every round")
    parser.add_argument(
        "--quick", action="store_true", help="one short round: shows that it runs, not how fast"
    )
    parser.add_argument("--folder", type=Path, help="where to measure; default: a folder in the user's cache")
    parser.add_argument(
        "--slow-disk",
        type=int,
        default=0,
        metavar="MS",
        help="let the disk take that much longer to make anything durable",
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return chosen


def surroundings(folder: Path, slow_disk: int) -> Mapping[str, str]:
    """What the environment of the children adds; exits where the disk cannot be made to wait."""
    if not slow_disk:
        return {}
    shim = build_shim_library(folder)
    if shim is None:
        sys.exit("a slow disk is made by a small C library, on Linux: install a compiler (apt install gcc)")
    return faulty_environment(shim, folder, Mode.SLOW_DISK, slow_disk)


def main() -> int:
    """Measure and report; only a crashed contender is a failure, a missed budget is not."""
    names = list(benchmarks(quick=False))
    chosen = arguments(names)
    catalogue = benchmarks(quick=chosen.quick)
    facts = machine.description()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), end="\n\n", flush=True)
    if chosen.slow_disk:
        print(f"The disk takes {chosen.slow_disk} ms longer than it would.\n", flush=True)
    every = {}
    with tempfile.TemporaryDirectory(dir=chosen.folder or machine.cache_folder()) as folder:
        workshop = BenchmarkRunner(Path(folder), surroundings(Path(folder), chosen.slow_disk))
        for name in chosen.names or names:
            every[name] = workshop.measure(catalogue[name], rounds=1 if chosen.quick else ROUNDS)
            print(report.text(every[name]), flush=True)
    if chosen.json:
        measured = {name: report.data(results) for name, results in every.items()}
        whole = {
            "quick": chosen.quick,
            "slow_disk_ms": chosen.slow_disk,
            "machine": facts,
            "benchmarks": measured,
        }
        chosen.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return 1 if any(results.crashed for results in every.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
