"""What came of a cluster run: by what senders were told, the world has seen, and the database says."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import quantiles
from typing import Any

from gateway_sessions.core.delivery.message_parts import REPEATED
from tests.cluster.databases import database_at

SPOKEN = """
    SELECT s.session_key, m.role, m.content FROM messages AS m JOIN sessions AS s USING (session_id)
    WHERE m.hidden_because IS NULL ORDER BY s.session_key, s.started_at, s.session_id, m.seq
"""
OPEN = "SELECT count(*) FROM inbox WHERE outcome IS NULL"
OUTCOMES = "SELECT coalesce(outcome, 'open'), count(*) FROM inbox GROUP BY 1"
COMMITTED = "SELECT session_key, token FROM inbox WHERE outcome = 'turned' AND token IS NOT NULL"
OWED = "SELECT count(*) FROM outbox WHERE state IN ('owed', 'sending')"


@dataclass(kw_only=True)
class Verdict:
    """What must be empty, and what is told as it is."""

    lost: list[str] = field(default_factory=list)
    """Accepted, and never answered."""
    doubled: list[str] = field(default_factory=list)
    """In a conversation twice, or said to people twice without the mark of a repeat."""
    reordered: list[str] = field(default_factory=list)
    """Lanes whose conversation, or replies, are not in the order of what was accepted."""
    wrong: list[str] = field(default_factory=list)
    """Whatever else may not be."""
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def faults(self) -> dict[str, list[str]]:
        """What must be empty, by its name."""
        found = (self.lost, self.doubled, self.reordered, self.wrong)
        return dict(zip(("lost", "doubled", "reordered", "wrong"), found, strict=True))

    @property
    def good(self) -> bool:
        return not any(self.faults.values())

    def judge_ends(self, codes: Mapping[str, int | None]) -> None:
        """*codes*: what each node ended with that was asked to end in order."""
        self.wrong += [f"{node} ended with status {code}" for node, code in codes.items() if code]


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A node that others had to do without: it was killed, or stood still for longer than its lease."""

    node: str
    at: float
    killed: bool


async def nothing_is_left(address: str) -> bool:
    """Whether nothing waits or runs, and nobody is owed anything."""
    ask = database_at(address).fetch
    left = [*await ask(address, OPEN), *await ask(address, OWED)]
    return not any(row[0] for row in left)


async def judge(
    address: str,
    accepted: Mapping[str, Sequence[str]],
    effects: Sequence[Mapping[str, Any]],
    absences: Sequence[Absence],
) -> Verdict:
    """*accepted*: the texts of each lane, in order."""
    ask = database_at(address).fetch
    rows = await ask(address, SPOKEN)
    outcomes = {row[0]: row[1] for row in await ask(address, OUTCOMES)}
    committed = {(_lane_of(key), token) for key, token in await ask(address, COMMITTED)}
    verdict = Verdict(wrong=overlapping_commits(effects, committed))
    if not any(accepted.values()):
        verdict.wrong.append("nothing was accepted")
    asked, answered = _said(rows, "user"), _said(rows, "assistant")
    shown = [(one["lane"], one["text"]) for one in effects if one["kind"] == "sent"]
    for lane, texts in accepted.items():
        _judge_transcript(verdict, lane, texts, asked[lane], answered[lane])
        _judge_replies(verdict, lane, texts, [text for where, text in shown if where == lane])
    verdict.figures |= {
        "accepted": sum(map(len, accepted.values())),
        "outcomes": outcomes,
        "turns that stand": len(committed),
        "replies marked as repeats": sum(text.startswith(REPEATED) for _, text in shown),
        "turns begun again": sum(one - 1 for one in Counter(_begun(effects)).values()),
        "turns that were fenced off": sum(one["kind"] == "fenced" for one in effects),
        "calls refused, to be made again": dict(
            Counter(one["error"] for one in effects if one["kind"] == "refused")
        ),
        "turns of one lane at the same time": _overlaps(effects),
        **_takeovers("", effects, [one for one in absences if one.killed]),
        **_takeovers(" from a node that stood still", effects, [one for one in absences if not one.killed]),
    }
    return verdict


def _said(rows: Iterable[Any], role: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for key, by, content in rows:
        if by == role:
            found[_lane_of(key)].append(content)
    return found


def _lane_of(session_key: object) -> str:
    return str(session_key).rsplit(":", 1)[-1]


def _judge_transcript(
    verdict: Verdict, lane: str, texts: Sequence[str], asked: Sequence[str], answered: Sequence[str]
) -> None:
    counted, replies = Counter(asked), Counter(answered)
    verdict.lost += [text for text in texts if not counted[text] or not replies[f"re {text}"]]
    verdict.doubled += [text for text in texts if counted[text] > 1 or replies[f"re {text}"] > 1]
    known = set(texts)
    found = list(dict.fromkeys(text for text in asked if text in known))
    if found != [text for text in texts if counted[text]]:
        verdict.reordered.append(lane)


def _judge_replies(verdict: Verdict, lane: str, texts: Sequence[str], shown: Sequence[str]) -> None:
    plain = Counter(text for text in shown if not text.startswith(REPEATED))
    seen = {text.removeprefix(REPEATED).strip() for text in shown}
    verdict.lost += [f"the reply to {text}" for text in texts if f"re {text}" not in seen]
    verdict.doubled += [f"the reply {text!r}" for text, times in plain.items() if times > 1]
    first = list(dict.fromkeys(text.removeprefix(REPEATED).strip() for text in shown))
    expected = [f"re {text}" for text in texts if f"re {text}" in seen]
    if [text for text in first if text in set(expected)] != expected:
        verdict.reordered.append(f"the replies of {lane}")


def _begun(effects: Iterable[Mapping[str, Any]]) -> list[str]:
    return [one["text"] for one in effects if one["kind"] == "begin"]


def _overlaps(effects: Sequence[Mapping[str, Any]]) -> int:
    """Turns that ended after a later one of their lane had begun elsewhere: what they said did not count."""
    latest: dict[str, int] = {}
    late = 0
    for one in effects:
        if one["kind"] == "begin":
            latest[one["lane"]] = max(latest.get(one["lane"], 0), one["token"])
        elif one["kind"] == "end":
            late += one["token"] < latest[one["lane"]]
    return late


def overlapping_commits(effects: Sequence[Mapping[str, Any]], committed: Set[tuple[str, int]]) -> list[str]:
    """Turns of one lane that ran at the same time and both stand: of two, one should have been fenced off."""
    spans: dict[str, dict[int, list[float]]] = defaultdict(dict)
    for one in effects:
        if one["kind"] in ("begin", "end") and (one["lane"], one["token"]) in committed:
            spans[one["lane"]].setdefault(one["token"], []).append(one["at"])
    found: list[str] = []
    for lane, turns in spans.items():
        for (token, span), (later, after) in pairwise(sorted(turns.items())):
            if min(after) < max(span):
                found.append(f"turns {token} and {later} of {lane} ran at the same time, and both stand")
    return found


def _takeovers(
    which: str, effects: Sequence[Mapping[str, Any]], absences: Sequence[Absence]
) -> dict[str, Any]:
    """How long turns stood still whose node was gone, until another one began them again."""
    seconds = [one for absence in absences for one in seconds_to_takeover(effects, absence)]
    count = {f"turns taken over{which}": len(seconds)}
    if len(seconds) < 2:
        return count | {f"takeover{which}": [round(one, 2) for one in seconds]}
    cuts = quantiles(seconds, n=100, method="inclusive")
    names = (f"takeover{which} p50", f"takeover{which} p99")
    return count | dict(zip(names, (round(cuts[49], 2), round(cuts[98], 2)), strict=True))


def seconds_to_takeover(effects: Sequence[Mapping[str, Any]], absence: Absence) -> list[float]:
    """The seconds until each turn that was cut off was begun again."""
    before = [one for one in effects if one["node"] == absence.node and one["at"] < absence.at]
    running = {one["text"] for one in before if one["kind"] == "begin"}
    running -= {one["text"] for one in before if one["kind"] == "end"}
    again: dict[str, float] = {}
    for one in effects:
        if one["kind"] == "begin" and one["text"] in running and one["at"] > absence.at:
            again.setdefault(one["text"], one["at"] - absence.at)
    return list(again.values())
