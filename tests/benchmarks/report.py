"""Shows results: a table for people, the same and every round for programs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from tests.benchmarks.runner import KIND, Budget, Contender, Results, figure_of


def text(results: Results) -> str:
    """The benchmark's two tables: who measured what, and what was promised."""
    benchmark = results.benchmark
    fsync = f"making 4 KiB durable took {number(statistics.median(results.fsyncs))} ms here"
    parts = [f"{benchmark.name}: {benchmark.title}", f"({fsync}; medians of {len(results.rounds)})", ""]
    parts += _table(_contender_rows(results))
    if benchmark.budgets:
        parts += ["", *_table(_budget_rows(results))]
    return "\n".join(parts) + "\n"


def data(results: Results) -> dict[str, Any]:
    """Everything that was measured, round by round, and every verdict."""
    return {
        "title": results.benchmark.title,
        "fsync_ms": results.fsyncs,
        "rounds": results.rounds,
        "unavailable": results.unavailable,
        "crashed": results.crashed,
        "ratios": {
            f"{one.name}, {kind}" if kind else one.name: statistics.median(ratios)
            for one in results.benchmark.contenders
            for kind in results.kinds(one.name)
            if (ratios := results.ratios(one, kind))
        },
        "budgets": [_verdict(budget, results) for budget in results.benchmark.budgets],
    }


def number(value: float) -> str:
    """Three figures that tell, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _contender_rows(results: Results) -> Iterable[list[str]]:
    benchmark = results.benchmark
    names = (name for one in results.rounds for some in one.values() for name in some)
    figures = list(dict.fromkeys(name.rpartition(KIND)[2] for name in names))
    yield ["", *figures, f"ratio of {benchmark.compared}"]
    for contender in benchmark.contenders:
        if reason := (results.unavailable | results.crashed).get(contender.name):
            word = "crashed" if contender.name in results.crashed else "not measured"
            yield [contender.name, f"{word}: {reason}"]
            continue
        for kind in ["", *filter(None, results.kinds(contender.name))]:
            medians = [results.values(contender.name, figure_of(kind, figure)) for figure in figures]
            yield [
                f"  {kind}" if kind else contender.name,
                *(number(statistics.median(one)) if one else "" for one in medians),
                _ratio(results, contender, kind),
            ]


def _ratio(results: Results, contender: Contender, kind: str) -> str:
    ratios = results.ratios(contender, kind)
    return f"{number(statistics.median(ratios))} x {contender.against}" if ratios else ""


def _budget_rows(results: Results) -> Iterable[list[str]]:
    yield ["", "budget", "measured", "verdict"]
    for budget in results.benchmark.budgets:
        verdict = _verdict(budget, results)
        sign = "≥" if budget.more_is_better else "≤"
        aim = f" (aim {number(budget.aim)})" if budget.aim is not None else ""
        measured = "" if verdict["measured"] is None else f"{number(verdict['measured'])} {budget.unit}"
        yield [budget.text, f"{sign} {number(budget.limit)}{aim} {budget.unit}", measured, verdict["verdict"]]


def _verdict(budget: Budget, results: Results) -> dict[str, Any]:
    measured = budget.measured(results.rounds)
    return {
        "budget": budget.text,
        "limit": budget.limit,
        "aim": budget.aim,
        "unit": budget.unit,
        "measured": measured,
        "verdict": budget.verdict(measured),
    }


def _table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; the first to the left. A row of two cells is a remark."""
    listed = [list(row) for row in rows]
    full = [row for row in listed if len(row) != 2]
    widths = [max(len(row[column]) for row in full) for column in range(len(full[0]))]
    widths[0] = max(len(row[0]) for row in listed)
    lines = []
    for first, *others in listed:
        rest = (
            others
            if len(others) == 1
            else [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        )
        lines.append("  " + "  ".join([first.ljust(widths[0]), *rest]).rstrip())
    return lines
