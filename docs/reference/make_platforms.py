"""Draws the tables of platforms.md from the quality files of the integrations: run it after changing one.

python docs/reference/make_platforms.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = Path(__file__).with_name("platforms.md")
RULES: Final[Mapping[str, str]] = {
    "contract": "passes the contract of adapters with its real client library",
    "real_client": "a client library that others made accepts the fake with which all this is tested",
    "acknowledges_after_receipt": "what the store did not take is delivered again",
    "survives_kills": "killed again and again: nothing lost, doubled without a mark, or reordered",
    "survives_any_payload": "10,000 changed payloads each end in a message or a typed error",
    "markup": "the corpus of Markdown is accepted by the platform's own rules",
    "says_what_is_wrong": "a wrong token, a missing right and the like are one sentence with what to do",
    "edits_and_deletions": "what people change or delete is changed for the agent",
    "files": "files of people reach the agent, and files of the agent people",
    "buttons": "buttons are shown, and a press reaches the agent",
    "growing_replies": "a reply is shown while it is made",
    "commands": "the platform's own commands reach the gateway's",
    "groups": "in groups, what is for the bot is told from all other talk",
    "observed_talk": "what people say to each other is kept for the next turn, if that is wanted",
    "example": "there is a whole bot to copy",
    "configuration": "`gsess serve` runs it from a configuration",
}
RECEIVES: Final = {
    "acknowledged": "is delivered until the gateway has stored it",
    "cursor": "stays with the platform until the gateway has stored it",
    "backfilled": "is read again from the place that was reached",
    "lossy": "is lost",
}
STATES: Final = re.compile(r"(?P<state>done|todo|exempt)(?: (?P<detail>.+))?")
SIGNS: Final = {"done": "yes", "todo": "not yet"}


class Door(NamedTuple):
    """One way to a platform."""

    platform: str
    name: str
    install: str
    page: str
    receives: str
    knows_repeats: str | bool
    rules: Mapping[str, str]

    def state_of(self, rule: str) -> tuple[str, str]:
        """Return whether a rule is done, with what shows it, or the reason why not."""
        found = STATES.fullmatch(self.rules.get(rule, ""))
        if found is None:
            message = f"{self.platform}, {self.name}: {rule} must be done, todo or exempt, with its detail"
            raise ValueError(message)
        return found["state"], found["detail"] or ""


def doors() -> Iterator[Door]:
    """Yield all doors, by platform."""
    for path in sorted((ROOT / "gateway_sessions" / "integrations").glob("*/quality.yaml")):
        told: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
        for name, facts in told["doors"].items():
            yield Door(platform=told["platform"], name=name, **facts)


def tables() -> str:
    """Return the tables of the page: all doors, then what holds of those of each platform."""
    by_platform: dict[str, list[Door]] = {}
    for door in doors():
        by_platform.setdefault(door.platform, []).append(door)
    every = [door for some in by_platform.values() for door in some]
    return "\n\n".join([_summary(every), "## What holds", *map(_quality, by_platform.values())])


def _summary(every: list[Door]) -> str:
    heads = (
        "Platform",
        "With",
        "Install",
        "What is written while nobody listens",
        "A send without an answer",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for door in every:
        page = f"[{door.platform}]({Path('..') / Path(door.page).relative_to('docs')})"
        install = f"`pip install 'gateway-sessions[{door.install}]'`"
        repeats = door.knows_repeats or "is repeated, and says that it may be a repeat"
        lines.append(f"| {page} | {door.name} | {install} | {RECEIVES[door.receives]} | {repeats} |")
    return "\n".join(lines)


def _quality(every: list[Door]) -> str:
    """Return the table of one platform; a rule that does not apply says why."""
    lines = [
        f"| {every[0].platform} | {' | '.join(one.name for one in every)} |",
        "|---" * (len(every) + 1) + "|",
    ]
    for rule, told in RULES.items():
        states = [door.state_of(rule) for door in every]
        lines.append(f"| {told} | {' | '.join(SIGNS.get(state, detail) for state, detail in states)} |")
    return "\n".join(lines)


BEGIN, END = "<!-- tables by make_platforms.py -->\n", "\n<!-- end of tables -->"


def page(text: str) -> str:
    """Return the page with its tables as they are now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
