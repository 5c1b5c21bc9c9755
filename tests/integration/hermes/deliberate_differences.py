"""Where we answer otherwise than Hermes 0.19, and why: the whole list, which the comparing tests read.

A difference names the recorded answers that it is about and says what ours is instead. Every recorded answer
that no difference names has to be ours exactly, and every difference has to occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

Vector = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One thing that we do otherwise on purpose."""

    name: str
    section: str
    """The part of the recorded answers that it occurs in."""
    reason: str
    applies: Callable[[Vector], bool]
    ours: Callable[[Vector], Any]
    """What we answer instead."""


def difference_for(section: str, vector: Vector) -> Difference | None:
    """The one difference that a recorded answer is about; two of them would be a mistake in the list."""
    found = [one for one in DIFFERENCES if one.section == section and one.applies(vector)]
    assert len(found) <= 1, (vector, [one.name for one in found])
    return found[0] if found else None


def differences_of_section(section: str) -> list[Difference]:
    """The differences that occur in one part of the recorded answers."""
    return [one for one in DIFFERENCES if one.section == section]


def applies_to_step(title: str, *numbers: int) -> Callable[[Vector], bool]:
    """Names steps of a scenario by its title and their places."""
    return lambda step: step["title"] == title and step["number"] in numbers


def _encoded_key(vector: Vector) -> str:
    """Hermes' key with each part's separators encoded: the parts are known from the source."""
    key: str = vector["key"]
    source, profile = vector["source"], vector.get("flags", {}).get("profile")
    parts = {part for name in _PARTS if (part := source.get(name))} | ({profile} if profile else set())
    pieces = _encode_parts(
        key, sorted((part for part in parts if ":" in part or "%" in part), key=len, reverse=True)
    )
    return "".join(pieces)


_PARTS = ("chat_type", "chat_id", "thread_id", "user_id")


def _encode_parts(key: str, odd: Iterable[str]) -> list[str]:
    """The key in pieces of which those that are whole parts are encoded."""
    for part in odd:
        before, found, after = f":{key}:".partition(f":{part}:")
        if found:
            encoded = part.replace("%", "%25").replace(":", "%3A")
            return [
                *_encode_parts(before[1:], odd),
                ":" * bool(before),
                encoded,
                ":" * (len(after) > 0),
                *_encode_parts(after[:-1], odd),
            ]
    return [key]


def _is_ended(decision: Vector) -> bool:
    entry = decision["entry"]
    return bool(entry.get("expiry_finalized")) and not (entry.get("suspended") or decision.get("force_new"))


def _has_fresh_mark(decision: Vector) -> bool:
    entry = decision["entry"]
    ended = _is_ended(decision) or entry.get("suspended") or decision.get("force_new")
    if ended or not entry.get("resume_pending"):
        return False
    window = {"0": None, "-1": None, "60": 60}.get(decision.get("freshness_window", ""), 3600)
    marked_at = datetime.fromisoformat(entry.get("last_resume_marked_at") or entry["updated_at"])
    age = datetime.fromisoformat(decision["now"]) - marked_at
    return window is None or age <= timedelta(seconds=window)


_ODD_WHATSAPP = {"dm": "dm:15551234567", "group": "group:120363@g.us:15551234567"}


def _ended(decision: Vector) -> Vector:
    return {"kept": False, "reason": "idle", "had_activity": _had_activity(decision)}


def _had_activity(decision: Vector) -> bool:
    return bool(decision["entry"].get("last_prompt_tokens"))


def _has_no_chat(vector: Vector) -> bool:
    stored = vector["stored"]
    return stored.get("platform") == "telegram" and "dict" in vector and stored["chat_id"] is None


KEPT = {"kept": True, "reason": None}

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "separators inside a part are encoded",
        "deliberate_differences",
        "joined raw, two origins may have one key, and one person reads the other's conversation",
        lambda vector: True,
        _encoded_key,
    ),
    Difference(
        "an odd WhatsApp id has a key",
        "whatsapp_keys",
        "an id with a blank made routing raise, so that its messages were lost",
        lambda vector: "error" in vector,
        lambda vector: "agent:main:whatsapp:" + _ODD_WHATSAPP[vector["source"]["chat_type"]],
    ),
    Difference(
        "a source without any identifier is refused",
        "keys_without_identifier",
        "everybody without an identifier would share one conversation; a setting allows it",
        lambda vector: True,
        lambda vector: "UnidentifiedSourceError",
    ),
    Difference(
        "a session is shared where its key names no person",
        "shared",
        "with group off and thread on, a thread's key names no person, yet it was not called shared",
        lambda vector: bool(vector["source"].get("thread_id"))
        and vector["source"]["chat_type"] != "dm"
        and vector["flags"] == {"group_sessions_per_user": False, "thread_sessions_per_user": True},
        lambda vector: True,
    ),
    Difference(
        "members that nobody knows are kept",
        "sources_read",
        "what a later version stored was lost when an earlier one wrote the file",
        lambda vector: "later_field" in vector["stored"],
        lambda vector: vector["dict"] | {"later_field": vector["stored"]["later_field"]},
    ),
    Difference(
        "ids are text",
        "sources_read",
        "a number stayed a number, and was another person than the same id as text",
        lambda vector: isinstance(vector["stored"].get("user_id"), int),
        lambda vector: vector["dict"] | {"user_id": "7"},
    ),
    Difference(
        "a chat type of null is the default",
        "sources_read",
        "it went into the key as the word None",
        lambda vector: vector["stored"].get("chat_type", "") is None,
        lambda vector: vector["dict"] | {"chat_type": "dm"},
    ),
    Difference(
        "any platform is known",
        "sources_read",
        "entries of a platform whose plug-in was missing were erased at the next write",
        lambda vector: vector["stored"].get("platform") == "no such platform",
        lambda vector: {
            "platform": "no such platform", "chat_id": "c1", "chat_name": None, "chat_type": "dm",
            "user_id": None, "user_name": None, "thread_id": None, "chat_topic": None,
        },
    ),
    Difference(
        "a chat of null is missing",
        "sources_read",
        "it became a chat called None, the same for everybody",
        _has_no_chat,
        lambda vector: "InvalidSourceError",
    ),
    Difference(
        "what is wrong with a stored source is told in one kind of error",
        "sources_read",
        "a reader has to catch one kind, which names the member",
        lambda vector: "error" in vector and vector["stored"].get("platform") != "no such platform",
        lambda vector: "InvalidSourceError",
    ),
    Difference(
        "an ended session has ended",
        "decisions",
        "hooks have run and resources are gone: the next message cannot go on as if nothing had happened",
        lambda vector: _is_ended(vector) and (vector["kept"] or vector["reason"] != "idle"),
        _ended,
    ),
    Difference(
        "a session that was asked for tells of the one before as well",
        "decisions",
        "whether the session that ended was used does not depend on who ended it",
        lambda vector: bool(vector.get("force_new")) and _had_activity(vector),
        lambda vector: {"kept": False, "reason": None, "had_activity": True},
    ),
    Difference(
        "a fresh resume mark goes before the policy",
        "decisions",
        "who was cut off by a restart must not lose the session by it as well",
        lambda vector: _has_fresh_mark(vector) and not vector["kept"],
        lambda vector: KEPT,
    ),
    Difference(
        "a mark that has aged out ends no session",
        "decisions",
        "it says that a turn was cut off long ago, and nothing about what was said before that",
        lambda vector: vector["reason"] == "resume_pending_expired" and not _is_ended(vector),
        lambda vector: KEPT,
    ),
    Difference(
        "a session goes on after its mark has aged out",
        "scenarios",
        "it says that a turn was cut off long ago, and nothing about what was said before that",
        applies_to_step("a stale mark under a policy", 2, 3),
        lambda step: step
        | {"session": 0, "marks": {"resume_pending": True, "resume_reason": "restart_timeout"}},
    ),
    Difference(
        "an ended session's successor tells that it is one",
        "scenarios",
        "the person finds an empty session and has to be told why",
        applies_to_step("finalised, but no longer due", 3),
        lambda step: step | {"marks": {"was_auto_reset": True, "auto_reset_reason": "idle"}},
    ),
    Difference(
        "a session has one state at a time",
        "scenarios",
        "a suspended session that also waits to be resumed contradicts itself",
        applies_to_step("suspended beats pending", 2, 3),
        lambda step: step | {"marks": {"suspended": True}},
    ),
    Difference(
        "what the first turn has told is not told again",
        "scenarios",
        "the mark of a fresh session stayed for ever, and with it what it sets going",
        applies_to_step("a fresh reset, then use", 3, 4),
        lambda step: step | {"marks": {}},
    ),
    Difference(
        "a pruned lane does not come back with its history",
        "scenarios",
        "whoever was promised that old conversations are forgotten found them again",
        applies_to_step("pruned with a transcript, then a message", 3),
        lambda step: step | {"session": 1},
    ),
)  # fmt: skip
