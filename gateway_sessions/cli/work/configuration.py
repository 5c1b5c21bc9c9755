"""`config`: is it right, and where does each value come from."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial

from rich.text import Text

from gateway_sessions.cli.commands.configuration import ExplainConfig, Validate
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.output.terminal import Column, inline, table
from gateway_sessions.config import load_config
from gateway_sessions.config.misspelt import misspelt_names
from gateway_sessions.config.origins import Setting, settings_of
from gateway_sessions.error_details import ConfigProblem
from gateway_sessions.errors import InvalidInputError


async def validate(context: CommandContext, asked: Validate) -> None:
    """Say all that is wrong in a configuration."""
    path = asked.file or context.config_path
    load_config(path).policy_book()
    told = "There is no file; the environment" if path is None else str(path)
    doubts = misspelt_names(path)
    context.answer_text(f"{told} is right.", file=path, warnings=doubts)
    tell_doubts(context, doubts)


def tell_doubts(context: CommandContext, doubts: Sequence[ConfigProblem]) -> None:
    """Say beside the answer which names may be slips."""
    for one in doubts:
        context.note(f"Warning: {one}. It counts as it is written, for an adapter of that name.")


def _check_key(key: str) -> None:
    """Refuse a key that no configuration has; names of platforms and the like are free."""
    from gateway_sessions.config.key_tree import paths  # noqa: PLC0415 -- loads what reads a file
    from gateway_sessions.config.schema import KEYS  # noqa: PLC0415 -- as above

    wanted = key.split(".")
    known = [*paths(KEYS)]
    if any(all(a in (b, "*") for a, b in zip(one, wanted, strict=False)) for one in known):
        return
    close = get_close_matches(key, [".".join(one) for one in known], 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    problem = f"there is no key {key!r}{hint}"
    raise InvalidInputError(problem)


async def explain_config(context: CommandContext, asked: ExplainConfig) -> None:
    """List the values that count, and where each comes from."""
    path, key = asked.file or context.config_path, asked.key
    if key is not None:
        _check_key(key)
    load_config(path, lenient=True)
    found = [
        one
        for one in settings_of(path)
        if (one.is_set or not asked.only_set)
        and (key is None or one.key == key or one.key.startswith(f"{key}."))
    ]
    if not found:
        context.answer([], lambda: None)
        context.note(f"Nobody has set {key or 'anything'}: {_instead(key)}.")
        return
    columns = (Column("Key", whole=True), Column("Value"), Column("Set in"))
    context.answer(found, partial(table, columns, [_row(one) for one in found]))


def _instead(key: str | None) -> str:
    """What counts where nobody has set anything; a platform's policies and rules are those above it."""
    words = set(key.split(".")) if key else set[str]()
    if "platforms" in words and words & {"session_reset", "busy"}:
        return "what is set above it counts"
    return "the defaults count"


def _row(one: Setting) -> tuple[object, ...]:
    """What somebody has set stands out."""
    style = "" if one.is_set else "dim"
    return tuple(Text(inline(value), style) for value in (one.key, one.value, one.where))
