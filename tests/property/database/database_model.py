"""A database of sessions in plain Python: what `SessionDB` has to look like after any sequence of calls."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

REWOUND, RETRACTED = "rewound", "retracted"


@dataclass(frozen=True)
class Said:
    role: str
    content: Any
    tool: str | None = None
    platform_id: str | None = None
    hidden: str | None = None
    hidden_by: int = 0

    @property
    def text(self) -> str:
        spoken = self.content if isinstance(self.content, str) else self.content[0]["text"]
        return f"{spoken}\n{self.tool}" if self.tool else spoken

    @property
    def is_user_turn(self) -> bool:
        return self.role == "user" and self.hidden is None

    @property
    def calls(self) -> list[dict[str, Any]] | None:
        return self.tool and [{"id": "c", "function": {"name": self.tool, "arguments": "{}"}}]

    @property
    def mapping(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "content": self.content,
            "tool_calls": self.calls,
            "platform_message_id": self.platform_id,
        }


@dataclass
class Talk:
    owner: str
    said: list[Said] = field(default_factory=list)
    parent: str | None = None
    relation: str | None = None
    end_reason: str | None = None
    title: str | None = None
    events: dict[str, int] = field(default_factory=dict)
    rewinds: int = 0

    def rewind(self, turns: int) -> int | None:
        places = [at for at, one in enumerate(self.said) if one.is_user_turn]
        if not places:
            return None
        at, self.rewinds = places[-turns:][0], self.rewinds + 1
        hidden = sum(one.hidden is None for one in self.said[at:])
        self.said[at:] = [
            one if one.hidden else replace(one, hidden=REWOUND, hidden_by=self.rewinds)
            for one in self.said[at:]
        ]
        return hidden

    def restore(self) -> int | None:
        """None: there is nothing to bring back, or the conversation has gone on since."""
        last = max((one.hidden_by for one in self.said if one.hidden == REWOUND), default=0)
        mine = [at for at, one in enumerate(self.said) if one.hidden == REWOUND and one.hidden_by == last]
        if not mine or any(one.hidden is None for one in self.said[mine[-1] :]):
            return None
        for at in mine:
            self.said[at] = replace(self.said[at], hidden=None)
        return len(mine)

    def edit(self, platform_id: str, text: str) -> bool:
        at = self._place_of(platform_id)
        before, self.said[at] = self.said[at], replace(self.said[at], content=text)
        return before != self.said[at]

    def retract(self, platform_id: str) -> bool:
        at = self._place_of(platform_id)
        before, self.said[at] = self.said[at], replace(self.said[at], hidden=RETRACTED)
        return before.hidden != RETRACTED

    def _place_of(self, platform_id: str) -> int:
        return [one.platform_id for one in self.said].index(platform_id)


class Model:
    """All talks, by the ids of their sessions."""

    def __init__(self) -> None:
        self.talks: dict[str, Talk] = {}

    def continuation(self, session_id: str) -> str | None:
        """The session that one goes on in, if it has not been reopened."""
        if self.talks[session_id].end_reason != "compression":
            return None
        return self._child(session_id)

    def _child(self, session_id: str) -> str | None:
        for child, talk in self.talks.items():
            if (talk.parent, talk.relation) == (session_id, "continuation"):
                return child
        return None

    def tip(self, session_id: str) -> str:
        while (child := self.continuation(session_id)) is not None:
            session_id = child
        return session_id

    def lineage(self, session_id: str) -> list[str]:
        line = [session_id]
        while (parent := self.talks[line[0]].parent) and self.continuation(parent) == line[0]:
            line.insert(0, parent)
        while (child := self.continuation(line[-1])) is not None:
            line.append(child)
        return line

    def split(self, session_id: str, new: str, summary: Said) -> str | None:
        """The session that goes on; None: this one has ended otherwise."""
        talk = self.talks[session_id]
        if talk.end_reason not in (None, "compression"):
            return None
        if (there := self.continuation(session_id)) is not None:
            return there
        if (former := self._child(session_id)) is not None:
            self.talks[former].relation = "branch"
        title = self._next_title(talk)
        self.talks[new] = Talk(talk.owner, [summary], session_id, "continuation", title=title)
        talk.end_reason = "compression"
        return new

    def branch(self, session_id: str, new: str) -> None:
        talk = self.talks[session_id]
        copied = [one for one in talk.said if one.hidden is None]
        self.talks[new] = Talk(talk.owner, copied, session_id, "branch", title=self._next_title(talk))

    def delete(self, session_id: str) -> None:
        del self.talks[session_id]
        for talk in self.talks.values():
            if talk.parent == session_id:
                talk.parent = talk.relation = None

    def listed(self, owner: str) -> set[str]:
        return {one for one, talk in self.talks.items() if talk.owner == owner and self.tip(one) == one}

    def find_by_words(self, owner: str, needed: str, *, unwanted: str | None = None) -> set[tuple[str, int]]:
        """Where a word or its beginning stands (`dock*`), in a message without another one."""
        return {
            (session_id, seq)
            for session_id, talk in self.talks.items()
            for seq, one in enumerate(talk.said, start=1)
            if talk.owner == owner
            and one.hidden is None
            and has_word(one.text, needed)
            and not (unwanted and has_word(one.text, unwanted))
        }

    def find_by_text(self, owner: str, text: str) -> set[tuple[str, int]]:
        return {
            (session_id, seq)
            for session_id, talk in self.talks.items()
            for seq, one in enumerate(talk.said, start=1)
            if talk.owner == owner and one.hidden is None and text in one.text
        }

    def _next_title(self, parent: Talk) -> str | None:
        if parent.title is None:
            return None
        stem = parent.title.split(" #")[0]
        numbers = [
            int([*talk.title.split(" #"), "1"][1])
            for talk in self.talks.values()
            if talk.owner == parent.owner and talk.title and talk.title.split(" #")[0] == stem
        ]
        return f"{stem} #{max(numbers) + 1}"


def has_word(text: str, word: str) -> bool:
    end = r"\w*" if word.endswith("*") else ""
    return re.search(rf"\b{word.rstrip('*')}{end}\b", text) is not None
