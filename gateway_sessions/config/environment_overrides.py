"""Values that environment variables set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from gateway_sessions.config.draft import Draft, dotted_path
from gateway_sessions.config.environment_names import HERMES_VARIABLES, PREFIX
from gateway_sessions.config.keys import Block, kind_below
from gateway_sessions.config.kinds import Kind, closest_choice
from gateway_sessions.config.yaml_source import parse_scalar, read_yaml
from gateway_sessions.errors import ConfigProblem


def environment_overrides(draft: Draft, environ: Mapping[str, str], whole: Block) -> Iterator[dict[str, Any]]:
    """Yield the values of each variable, shaped as in a file: the weakest first, blocks before their keys."""
    for variable, path in HERMES_VARIABLES.items():
        if environ.get(variable):
            yield from _read_variable(draft, variable, path, environ[variable])
    ours = [name for name in environ if name.startswith(PREFIX)]
    for variable in sorted(ours, key=lambda name: (name.count("__"), name)):
        path = tuple(variable.removeprefix(PREFIX).lower().split("__"))
        known = _closest_known_path(path, whole)
        if known == path:
            yield from _read_variable(draft, variable, path, environ[variable])
        else:
            meant = dotted_path((f"{PREFIX}{'__'.join(known).upper()}",)) if known else None
            draft.add_problem(
                ConfigProblem(dotted_path((variable,)), "sets nothing that is known", suggestion=meant)
            )


def merge_override(values: dict[str, Any], override: dict[str, Any]) -> None:
    """Merge an override into values, key by key; a scalar in place of a block stays, to be reported."""
    for key, new in override.items():
        old = values.get(key)
        if not isinstance(new, dict) or old is None:
            values[key] = new
        elif isinstance(old, dict):
            merge_override(cast("dict[str, Any]", old), cast("dict[str, Any]", new))


def _read_variable(draft: Draft, variable: str, path: tuple[str, ...], text: str) -> Iterator[dict[str, Any]]:
    """Yield the value of one variable, shaped as in a file; nothing if the value cannot be read."""
    shown = dotted_path((variable,))
    draft.variables[path] = shown
    value = parse_scalar(text.strip())
    if text.startswith(("[", "{", '"', "'")):
        inner = Draft(variable)
        read_yaml(inner, text, None)
        for problem in inner.problems:
            draft.add_problem(ConfigProblem(shown, problem.message))
        if inner.problems:
            return
        for place in filter(None, inner.lines):
            draft.variables[*path, *place] = f"{shown} ({dotted_path((*path, *place))})"
        value = inner.values
    for key in reversed(path):
        value = {key: value}
    yield value


def _closest_known_path(path: tuple[str, ...], whole: Block) -> tuple[str, ...] | None:
    """Return the path, or the most similar one that exists; None if there is none."""
    known: list[str] = []
    kind: Kind | None = whole
    for name in path:
        names = [one.name for one in kind.keys] if isinstance(kind, Block) else []
        found = name if kind_below(kind, name) else closest_choice(name, names)
        if found is None:
            return None
        known.append(found)
        kind = kind_below(kind, found)
    return tuple(known)
