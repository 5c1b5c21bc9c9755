"""`python -m tests.benchmarks [names…] [--json FILE] [--quick]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.benchmarks import machine, report
from tests.benchmarks.catalogue import benchmarks
from tests.benchmarks.frame import ROUNDS, Workshop


def arguments(names: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"all, or some of: {', '.join(names)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure of every round")
    parser.add_argument(
        "--quick", action="store_true", help="one short round: shows that it runs, not how fast"
    )
    parser.add_argument("--folder", type=Path, help="where to measure; default: a folder in the user's cache")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(names):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return chosen


def main() -> int:
    """Measure and report; only a crashed contender is a failure, a missed budget is not."""
    names = list(benchmarks(quick=False))
    chosen = arguments(names)
    catalogue = benchmarks(quick=chosen.quick)
    facts = machine.description()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), end="\n\n", flush=True)
    every = {}
    with tempfile.TemporaryDirectory(dir=chosen.folder or machine.cache_folder()) as folder:
        workshop = Workshop(Path(folder))
        for name in chosen.names or names:
            every[name] = workshop.measure(catalogue[name], rounds=1 if chosen.quick else ROUNDS)
            print(report.text(every[name]), flush=True)
    if chosen.json:
        measured = {name: report.data(results) for name, results in every.items()}
        whole = {"quick": chosen.quick, "machine": facts, "benchmarks": measured}
        chosen.json.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    return 1 if any(results.crashed for results in every.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
