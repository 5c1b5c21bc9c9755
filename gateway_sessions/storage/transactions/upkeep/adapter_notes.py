"""Notes that adapters keep by name: where they have fetched messages up to, and what they have sent.

A note may name a chat or a person. An erasure takes them out: of a note that is a list or an object of JSON
what names them, else the whole note. The adapter reads that place anew, or not at all.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, cast

from gateway_sessions.core.identity.keys import decode_part
from gateway_sessions.core.sessions.erasure import ErasureSubject
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.transactions.upkeep.copy_store import load_facts
from gateway_sessions.storage.transactions.upkeep.metadata import PREFIX

ADAPTERS: Final = "adapter"
"""The first part of the names under which adapters keep something, apart from those of the program."""
SHORTEST_ID: Final = 3
"""Shorter ids, such as 1, also stand in notes that name nobody; no platform has such ids."""
_DM: Final = "dm"
_GONE: Final = object()


def forget_in_adapter_notes(subject: ErasureSubject, lanes: Iterable[str]) -> Transaction[Counter[str]]:
    """Take the person's ids and chats out of what the adapters of their platform have noted."""
    named = _ids_of(subject, lanes)
    notes = f"{PREFIX}{ADAPTERS}:{subject.platform}:"
    changed: Counter[str] = Counter()
    if subject.platform is None or named is None:
        return changed
    for name, value in (yield from load_facts()).items():
        if not name.startswith(notes):
            continue
        left = None if named.search(name.removeprefix(notes)) else _without(value, named)
        if left == value:
            continue
        changed["meta"] += 1
        if left is None:
            yield Statement("forget_meta", (name,))
        else:
            yield from meta.set_fact(name, left)
    return changed


def _ids_of(subject: ErasureSubject, lanes: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds the ids of a person and of their private chats; None if there is none."""
    parts = {decode_part(part) for lane in lanes for part in _parts_of_private_lane(lane)}
    ids = [one for one in {subject.user_id or "", *parts} if len(one) >= SHORTEST_ID]
    if not ids:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(ids)))})(?!\w)")


def _parts_of_private_lane(lane: str) -> Sequence[str]:
    """Return the ids in the key of a private lane.

    The place of a room is not the person's: without it, the adapter would miss what others wrote there.
    """
    _agent, _name, _platform, chat_type, *ids = [*lane.split(":"), "", "", "", ""]
    return ids if chat_type == _DM else ()


def _without(value: str, named: re.Pattern[str]) -> str | None:
    """Return a note without what names a person; None if nothing is left of it."""
    if not named.search(value):
        return value
    try:
        left = _stripped(json.loads(value), named)
    except (ValueError, RecursionError):
        return None
    return None if left is _GONE else json.dumps(left, ensure_ascii=False)


def _stripped(value: object, named: re.Pattern[str]) -> object:
    """Return a value of JSON without what names a person; `_GONE` if it does so itself."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        kept = {name: _stripped(one, named) for name, one in members.items() if not named.search(name)}
        return {name: one for name, one in kept.items() if one is not _GONE}
    if isinstance(value, list):
        left = [_stripped(one, named) for one in cast("list[object]", value)]
        return [one for one in left if one is not _GONE]
    return _GONE if named.search(str(value)) else value
