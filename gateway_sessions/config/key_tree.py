"""The keys of a configuration as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

KeyTree: TypeAlias = Mapping[str, "KeyTree"]
"""The keys of a block and what is beneath each; `*` stands for any name, an empty tree for a value."""


def child(tree: KeyTree, key: object) -> KeyTree:
    """Return what is beneath a key, known or not."""
    return tree.get(str(key)) or tree.get("*") or {}


def paths(tree: KeyTree, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every value, in the order of the tree."""
    for key, below in tree.items():
        if below:
            yield from paths(below, (*above, key))
        else:
            yield (*above, key)
