"""`config`: is it right, and where does each value come from."""

from __future__ import annotations

from functools import partial

from gateway_sessions.cli.commands.configuration import ExplainConfig, Validate
from gateway_sessions.cli.desk import Desk
from gateway_sessions.cli.screen import Column, table
from gateway_sessions.config import load_config
from gateway_sessions.config.origins import settings_of


async def validate(desk: Desk, asked: Validate) -> None:
    """Say all that is wrong in a configuration."""
    path = asked.file or desk.config_path
    load_config(path).policy_book()
    told = "There is no file; the environment" if path is None else str(path)
    desk.done(f"{told} is right.", file=path)


async def explain_config(desk: Desk, asked: ExplainConfig) -> None:
    """List the values that somebody has set, and where."""
    path, key = asked.file or desk.config_path, asked.key
    load_config(path)
    found = [
        one for one in settings_of(path) if key is None or one.key == key or one.key.startswith(f"{key}.")
    ]
    if not found:
        desk.answer([], lambda: None)
        desk.note(f"Nobody has set {key or 'anything'}: the defaults count.")
        return
    columns = (Column("Key", whole=True), Column("Value"), Column("Set in"))
    desk.answer(found, partial(table, columns, [(one.key, one.value, one.where) for one in found]))
