"""Ancestry of sessions as functions over parent links: roots, chains, tips and families.

All functions take a map from each session to its parent, or to None. Whatever is in it, they end: parents
that nobody knows, forks where there should be a chain, circles. A circle counts as cut open before its
smallest id, so that all its members agree on where it begins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

Parents: TypeAlias = Mapping[str, str | None]
"""Each session's parent."""


def root_of(session_id: str, parents: Parents) -> str:
    """Where the session's descent begins."""
    return _ascent(session_id, parents)[-1]


def chain_of(session_id: str, parents: Parents) -> tuple[str, ...]:
    """The line through the session, from its root to its tip; at a fork behind it the greatest id counts."""
    line = list(reversed(_ascent(session_id, parents)))
    children = _children(parents)
    seen = set(line)
    while behind := [child for child in children[line[-1]] if child not in seen]:
        line.append(max(behind))
        seen.add(line[-1])
    return tuple(line)


def tip_of(session_id: str, parents: Parents) -> str:
    """Where the line through the session goes on today."""
    return chain_of(session_id, parents)[-1]


def family_of(session_id: str, parents: Parents) -> frozenset[str]:
    """Everything that descends from the session's root, and the root."""
    children = _children(parents)
    found = {root_of(session_id, parents)}
    waiting = list(found)
    while waiting:
        new = children[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return frozenset(found)


def _ascent(session_id: str, parents: Parents) -> list[str]:
    """The session, its parent, and so on up to the root."""
    path: dict[str, None] = {}
    for one in _ancestors(session_id, parents):
        if one in path:
            line = list(path)
            circle = line[line.index(one) :]
            root = min(circle)
            return line[: line.index(root) + 1]
        path[one] = None
    return list(path)


def _ancestors(session_id: str, parents: Parents) -> Iterator[str]:
    """The session and its ancestors, for ever if they go round in a circle."""
    current: str | None = session_id
    while current is not None:
        yield current
        current = parents.get(current)


def _children(parents: Parents) -> defaultdict[str, set[str]]:
    children: defaultdict[str, set[str]] = defaultdict(set)
    for child, parent in parents.items():
        if parent is not None:
            children[parent].add(child)
    return children
