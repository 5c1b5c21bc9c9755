"""Warnings about names of platforms and chat types that look like misspelt well-known ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, cast

from gateway_sessions.config.draft import Draft, KeyPath
from gateway_sessions.config.origins import read_draft
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.errors import ConfigProblem

PLATFORMS: Final = tuple(map(str, Platform))
CHAT_TYPES: Final = ("dm", "group", "channel", "thread")
NEAR: Final = 0.8
"""The share of letters that must be the same, in the same order: `telegrm` is near, `matter` is not."""


def misspelt_names(path: Path | None, environ: Mapping[str, str] | None = None) -> list[ConfigProblem]:
    """Return a warning for each platform or chat type that is probably misspelt; names stay as written."""
    return [*_find_misspelt(read_draft(path, environ))]


def _find_misspelt(draft: Draft) -> Iterator[ConfigProblem]:
    for name, platform in _named_items(draft.values, "platforms"):
        yield from _suggest_known_name(draft, ("platforms", name), "platform", PLATFORMS)
        for kind, _ in _named_items(platform, "chat_types"):
            yield from _suggest_known_name(
                draft, ("platforms", name, "chat_types", kind), "chat type", CHAT_TYPES
            )

    excluded = ("session_reset", "notify_exclude_platforms")
    for place, quiet in enumerate(_list_at(draft.values, excluded)):
        yield from _suggest_known_name(draft, (*excluded, place), "platform", PLATFORMS, str(quiet))


def _list_at(values: object, path: tuple[str, ...]) -> list[object]:
    for key in path:
        values = cast("dict[str, object]", values).get(key) if isinstance(values, dict) else None
    return cast("list[object]", values) if isinstance(values, list) else []


def _named_items(block: object, key: str) -> list[tuple[str, object]]:
    named: object = cast("dict[str, Any]", block).get(key) if isinstance(block, dict) else None
    return [*cast("dict[str, object]", named).items()] if isinstance(named, dict) else []


def _suggest_known_name(
    draft: Draft, path: KeyPath, kind: str, known: tuple[str, ...], name: str | None = None
) -> Iterator[ConfigProblem]:
    word = (str(path[-1]) if name is None else name).strip().lower()
    near = get_close_matches(word, known, 1, NEAR)
    if near and word not in known:
        yield draft.problem_at(path, f"is no {kind} that is well known", near[0])
