"""Ancestry of sessions as functions over parent links: roots, chains, tips and families.

All functions take a map from each session to its parent, or to None. They end for any map: with unknown
parents, with forks where there should be a chain, with circles. A circle counts as cut open before its
smallest id, so that all its members agree on its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

Parents: TypeAlias = Mapping[str, str | None]
"""The parent of each session; None for a root."""


def root_of(session_id: str, parents: Parents) -> str:
    """Return the root of the session's descent."""
    return _path_to_root(session_id, parents)[-1]


def chain_of(session_id: str, parents: Parents) -> tuple[str, ...]:
    """Return the line through the session, from root to tip; at a fork below it the greatest id counts."""
    line = list(reversed(_path_to_root(session_id, parents)))
    children = _children_by_parent(parents)
    seen = set(line)
    while younger := [child for child in children[line[-1]] if child not in seen]:
        line.append(max(younger))
        seen.add(line[-1])
    return tuple(line)


def tip_of(session_id: str, parents: Parents) -> str:
    """Return the tip of the line through the session: the session that goes on today."""
    return chain_of(session_id, parents)[-1]


def family_of(session_id: str, parents: Parents) -> frozenset[str]:
    """Return the session's root and all its descendants."""
    children = _children_by_parent(parents)
    found = {root_of(session_id, parents)}
    waiting = list(found)
    while waiting:
        new = children[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return frozenset(found)


def _path_to_root(session_id: str, parents: Parents) -> list[str]:
    """Return the session, its parent, and so on up to the root."""
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
    """Yield the session and its ancestors, endlessly if they form a circle."""
    current: str | None = session_id
    while current is not None:
        yield current
        current = parents.get(current)


def _children_by_parent(parents: Parents) -> defaultdict[str, set[str]]:
    children: defaultdict[str, set[str]] = defaultdict(set)
    for child, parent in parents.items():
        if parent is not None:
            children[parent].add(child)
    return children
