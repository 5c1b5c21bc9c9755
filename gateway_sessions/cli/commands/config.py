"""`config validate` and `config explain`: check the configuration, and tell where each value comes from."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import command
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

ANOTHER: Final = "The file, if not that of the store."

app: Final = typer.Typer(help="Check the configuration, and show where its values come from.")


@command(app, "validate")
async def validate(
    context: CommandContext,
    *,
    file: Annotated[Path | None, typer.Argument(help=ANOTHER, metavar="FILE")] = None,
) -> None:
    """Report all problems of a configuration, with line numbers."""
    from gateway_sessions.config import load_config
    from gateway_sessions.config.misspellings import misspelt_names
    from gateway_sessions.integrations.registry import make_adapters
    from gateway_sessions.storage.files.threads import in_thread

    path = file or context.config_path
    config = load_config(path)
    config.policy_book()
    await in_thread(partial(make_adapters, config.serve.adapters))
    checked = "There is no file; the environment" if path is None else str(path)
    doubts = misspelt_names(path)
    context.answer_text(f"{checked} is right.", file=path, warnings=doubts)
    context.note_misspellings(doubts)


@command(app, "explain")
async def explain_config(
    context: CommandContext,
    *,
    key: Annotated[str | None, typer.Argument(help="Only this key, or the keys below it.", metavar="KEY")] = (
        None
    ),
    file: Annotated[Path | None, typer.Option(help=ANOTHER, metavar="FILE")] = None,
    only_set: Annotated[bool, typer.Option("--set", help="Without defaults.")] = False,
) -> None:
    """List the values in force, and where each was set; other values are marked as default."""
    from gateway_sessions.cli.output.reports import settings_table
    from gateway_sessions.config import load_config
    from gateway_sessions.config.origins import effective_settings

    path = file or context.config_path
    if key is not None:
        _check_key(key)
    load_config(path, lenient=True)
    found = [
        one
        for one in effective_settings(path)
        if (one.is_set or not only_set) and (key is None or one.key == key or one.key.startswith(f"{key}."))
    ]
    if not found:
        context.answer([], lambda: None)
        context.note(f"Nobody has set {key or 'anything'}: {_what_counts_unset(key)}.")
        return
    context.answer(found, partial(settings_table, found))


def _check_key(key: str) -> None:
    """Raise for a key that no configuration has; names of platforms and chat types are free."""
    from gateway_sessions.config.keys import value_paths
    from gateway_sessions.config.model import ALL_KEYS

    wanted = key.split(".")
    known = [*value_paths(ALL_KEYS)]
    if any(all(a in (b, "*") for a, b in zip(one, wanted, strict=False)) for one in known):
        return
    close = get_close_matches(key, [".".join(one) for one in known], 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    problem = f"there is no key {key!r}{hint}"
    raise InvalidInputError(problem)


def _what_counts_unset(key: str | None) -> str:
    """Return in words what counts where nothing is set; a platform inherits policies and rules."""
    words = set(key.split(".")) if key else set[str]()
    if "platforms" in words and words & {"session_reset", "busy"}:
        return "what is set above it counts"
    return "the defaults count"
