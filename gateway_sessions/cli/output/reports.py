"""The pages of insights, an explained lane, a simulation, an erasure, a store's health and its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.text import Text

from gateway_sessions.cli.output.terminal import Column, facts_table, rows_table, safe_line
from gateway_sessions.core.identity.keys import Sharing, account_in_key, decode_part, without_account
from gateway_sessions.core.notices.human_units import ago, counted, short_duration

if TYPE_CHECKING:
    from gateway_sessions.config.origins import FieldOrigin, Setting
    from gateway_sessions.core.sessions.simulation import WouldReset
    from gateway_sessions.core.usage.insights import TopSession, TopSessions
    from gateway_sessions.core.usage.usage_events import UsageSum
    from gateway_sessions.operator import ErasureReceipt
    from gateway_sessions.runtime.operator.health import Symptom
    from gateway_sessions.sessions import Explanation
    from gateway_sessions.usage import Insights

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
BAR: Final = 24
MOST: Final = 8
TITLE: Final = 32
LANES: Final = 20
"""The number of lanes that a simulation shows."""
SIGNS: Final = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}
RULES: Final = {
    Sharing.DIRECT: "a direct chat has one session",
    Sharing.PERSON: "in a group each person has a session (group_sessions_per_user)",
    Sharing.ROOM: "all who write here share a session (group_sessions_per_user: false, or nobody is named)",
    Sharing.PERSON_IN_THREAD: "in a thread each person has a session (thread_sessions_per_user)",
    Sharing.THREAD: "all who write in this thread share a session (thread_sessions_per_user: false)",
}


def insights_page(report: Insights, days: float) -> RenderableType:
    """Return the page of insights into the last days."""
    if report.empty:
        return Text(f"Nothing happened in the last {days:g} days.")
    parts: list[RenderableType] = [_insights_facts(report, days)]
    count = Column("Messages", right=True)
    rows = [(one.platform, f"{one.sessions:,}", f"{one.messages:,}") for one in report.platforms]
    parts += _table_section((Column("Platform"), Column("Sessions", right=True), count), rows)
    models = [
        (
            one.model,
            one.task,
            f"{one.used.api_calls:,}",
            f"{one.used.input_tokens + one.used.output_tokens:,}",
        )
        for one in report.models[:MOST]
    ]
    columns = (Column("Model"), Column("Task"), Column("Calls", right=True), Column("Tokens", right=True))
    parts += _table_section(columns, models)
    tools = [(one.name, f"{one.calls:,}") for one in report.tools[:MOST]]
    parts += _table_section((Column("Tool"), Column("Results", right=True)), tools)
    parts += _top_sessions_table(report.top)
    weekdays = report.activity.weekdays
    if highest := max(weekdays):
        bars = [Text("█" * round(BAR * one / highest)) for one in weekdays]
        days_told = [(name, f"{one:,}", bar) for name, one, bar in zip(WEEKDAYS, weekdays, bars, strict=True)]
        parts += _table_section((Column("Day"), count, Column("")), days_told)
    return Group(*parts)


def _insights_facts(report: Insights, days: float) -> RenderableType:
    whole, activity = report.overview, report.activity
    tokens = whole.used.input_tokens + whole.used.output_tokens
    when = f"{report.since:%Y-%m-%d} to {report.until:%Y-%m-%d} ({report.zone})"
    return facts_table(
        [
            ("Time", f"the last {days:g} days, {when}"),
            ("Sessions", f"{whole.sessions:,}, {whole.started:,} of them new"),
            ("Messages", f"{whole.messages:,}, {whole.tool_calls:,} tool results"),
            ("In use", short_duration(whole.active)),
            ("Tokens", f"{tokens:,}" if tokens else None),
            ("Cost", _cost_text(whole.used)),
            ("Active days", f"{activity.active_days}, at most {activity.longest_streak} in a row"),
            ("Busiest", _busiest_time(report)),
        ]
    )


def _cost_text(used: UsageSum) -> str | None:
    """Return the cost in words; with unknown prices, the known part is a lower bound."""
    if used.cost_status is None:
        return None
    if used.cost_usd is not None:
        return f"${used.cost_usd:.4f} ({used.cost_status})"
    known = f"; what is known comes to ${used.known_cost_usd:.4f}" if used.cost_nanos else ""
    return f"unknown for {used.unknown:,} of {counted(used.events, 'call')} that were noted{known}"


def _top_sessions_table(top: TopSessions) -> list[RenderableType]:
    ways: tuple[tuple[str, tuple[TopSession, ...], Callable[[int], str]], ...] = (
        ("longest", top.longest, lambda amount: short_duration(timedelta(seconds=amount))),
        ("most messages", top.most_messages, lambda amount: counted(amount, "message")),
        ("most tokens", top.most_tokens, lambda amount: counted(amount, "token")),
        ("most tools", top.most_tool_calls, lambda amount: counted(amount, "result")),
    )
    rows = [
        (way, told(found[0].amount), found[0].platform, found[0].title, found[0].session_id)
        for way, found, told in ways
        if found
    ]
    columns = (
        Column("Top"),
        Column("With"),
        Column("Platform"),
        Column("Title", TITLE),
        Column("ID", whole=True),
    )
    return _table_section(columns, rows)


def explanation_page(
    answer: Explanation, origins: Sequence[FieldOrigin], sharing: Sharing | None, waiting: int
) -> RenderableType:
    """Return the page that explains the state of a lane."""
    pairs = [
        ("Lane", answer.session_key),
        *_key_facts(answer.session_key),
        ("By the rule", RULES[sharing] if sharing is not None else None),
        *_entry_facts(answer),
        *_policy_facts(answer, origins),
        ("Turn runs", _running_turn_text(answer)),
        ("Waiting", counted(waiting, "message")),
        ("Next message", answer.next_message),
    ]
    rows = [
        (
            f"{one.at:%Y-%m-%d %H:%M}",
            one.event,
            f"{one.from_state or ''} → {one.to_state}",
            one.reason,
            one.actor,
        )
        for one in answer.history
    ]
    columns = (Column("When"), Column("Event"), Column("State"), Column("Reason"), Column("By"))
    return Group(facts_table(pairs), *_table_section(columns, rows))


def _entry_facts(answer: Explanation) -> list[tuple[str, object]]:
    entry, now = answer.entry, answer.now
    if entry is None:
        return []
    return [
        ("Session", f"{entry.session_id}, {entry.state}{_in_brackets(entry.state_reason)}"),
        ("Begun", f"{_utc_text(entry.created_at)}, {ago(entry.created_at, now)}"),
        ("Came after", entry.previous_session_id),
        ("Last message", f"{_utc_text(entry.last_interaction_at)}, {ago(entry.last_interaction_at, now)}"),
        ("Last written", f"{_utc_text(entry.updated_at)}, {ago(entry.updated_at, now)}"),
    ]


def _running_turn_text(answer: Explanation) -> str:
    lane = answer.lane
    if lane.cut_off:
        return f"no: try {lane.attempts + 1} was cut off, and its process is gone; it is tried again"
    if not lane.running or lane.running_since is None:
        return "no"
    since = f"{_utc_text(lane.running_since)}, {ago(lane.running_since, answer.now)}"
    return f"yes, try {lane.attempts + 1}, lease {lane.epoch}.{lane.token}, since {since}"


def _policy_facts(answer: Explanation, origins: Sequence[FieldOrigin]) -> list[tuple[str, object]]:
    policy, due, local = answer.policy, answer.next_reset_at, answer.next_reset_local
    if policy is None:
        return []
    found = f"from {policy.path} (level: {policy.level})"
    pairs: list[tuple[str, object]] = [
        ("Policy", f"{policy.policy.mode}, {found}, zone {policy.zone_name}"),
        *(("Set by", f"{one.key or one.field}: {one.value} ({one.where})") for one in origins),
    ]
    if answer.entry is not None and (passed := answer.entry.deferred_boundary) is not None:
        pairs.append(("Passed", f"{_utc_text(passed)}, {ago(passed, answer.now)}: this boundary still waits"))
    if due is None or local is None:
        return [*pairs, ("Next reset", "never, by this policy")]
    pairs.append(("Next reset", f"{_utc_text(due)}, {ago(due, answer.now)}"))
    return [*pairs, ("", f"{local:%Y-%m-%d %H:%M:%S} {policy.zone_name}")] if local.utcoffset() else pairs


def simulation_page(
    found: Sequence[WouldReset], by_lane: Counter[str], lanes: int, days: float
) -> RenderableType:
    """Return the page of resets that other policies would have made."""
    reasons = Counter(str(one.reason) for one in found)
    told = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    head = Text(
        f"In the last {days:g} days, {counted(len(found), 'reset')} on {len(by_lane):,} of"
        f" {counted(lanes, 'lane')}" + (f": {told}." if told else ".")
    )
    parts: list[RenderableType] = [head]
    latest = {one.session_key: one.at for one in found}
    rows = [
        (key, f"{count:,}", f"{latest[key]:%Y-%m-%d %H:%M} UTC") for key, count in by_lane.most_common(LANES)
    ]
    parts += _table_section((Column("Lane"), Column("Resets", right=True), Column("The last")), rows)
    if len(by_lane) > LANES:
        parts.append(
            Text(f"... and {counted(len(by_lane) - LANES, 'more lane')}; --json has all", style="dim")
        )
    return Group(*parts)


def _table_section(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[RenderableType]:
    return [Text(), rows_table(columns, rows)] if rows else []


def _busiest_time(report: Insights) -> str | None:
    weekday, hour = report.activity.busiest_weekday, report.activity.busiest_hour
    return (
        None if weekday is None or hour is None else f"{WEEKDAYS[weekday]}, {hour:02}:00 to {hour + 1:02}:00"
    )


def _key_facts(key: str) -> list[tuple[str, object]]:
    account = account_in_key(key)
    parts = [decode_part(part) for part in without_account(key).split(":")]
    if len(parts) < 4 or parts[0] != "agent":  # noqa: PLR2004 -- agent, namespace, platform, kind
        return []
    rest = f", {' / '.join(map(safe_line, parts[4:]))}" if parts[4:] else ""
    through = f", account {safe_line(account)}" if account else ""
    place = f"profile {safe_line(parts[1])}, platform {safe_line(parts[2])}{through}, {safe_line(parts[3])}"
    return [("Key says", f"{place}{rest}")]


def _in_brackets(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _utc_text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"


def receipt_page(receipt: ErasureReceipt) -> RenderableType:
    """Return the page of an erasure: what was removed, and what was kept."""
    rows = ", ".join(
        counted(count, _singular(table), table) for table, count in receipt.rows.items() if count
    )
    done = facts_table(
        [
            ("Forgotten", receipt.owner),
            ("At", f"{receipt.erased_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("Deleted", rows or "nothing was known"),
            ("Rewritten", ", ".join(receipt.rewritten) or None),
            ("Removed", ", ".join(receipt.removed) or None),
        ]
    )
    kept = [Text(f"Not removed: {safe_line(one.what)}: {safe_line(one.why)}") for one in receipt.kept]
    return Group(done, *([Text(), *kept] if kept else []))


def _singular(table: str) -> str:
    return f"{table.removesuffix('ies')}y" if table.endswith("ies") else table.removesuffix("s")


def health_page(found: Sequence[Symptom]) -> RenderableType:
    """Return the page of a store's health, with advice for each symptom."""
    page = Text()
    for one in found:
        sign, style = SIGNS[one.health]
        page.append(f"{sign} ", style=style)
        page.append(f"{one.what}: ", style="bold")
        page.append(f"{safe_line(one.told)}\n")
        if one.what_next:
            page.append(f"    → {one.what_next}\n", style="dim")
    page.rstrip()
    return page


def settings_table(found: Sequence[Setting]) -> RenderableType:
    """Return a table of the values of a configuration; defaults are dim."""
    columns = (Column("Key", whole=True), Column("Value"), Column("Set in"))
    return rows_table(columns, [_setting_row(one) for one in found])


def _setting_row(one: Setting) -> tuple[object, ...]:
    style = "" if one.is_set else "dim"
    return tuple(Text(safe_line(value), style) for value in (one.key, one.value, one.where))
