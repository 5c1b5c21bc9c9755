"""`config`: is it right, and where does each value come from."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gateway_sessions.cli.desk import Desk, run

app = typer.Typer(help="Check the configuration, and see where its values come from.")

File = Annotated[Path | None, typer.Argument(help="Another file than that of the store.", metavar="FILE")]


@app.command()
def validate(context: typer.Context, file: File = None) -> None:
    """Say all that is wrong in a configuration, with line numbers."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.config import load_config  # noqa: PLC0415 -- --help must not wait for it

        path = file or desk.config_path
        load_config(path).policy_book()
        told = "There is no file; the environment" if path is None else str(path)
        desk.done(f"{told} is right.", file=path)

    run(context, work)


@app.command("explain")
def explain_config(
    context: typer.Context,
    key: Annotated[
        str | None, typer.Argument(help="Only this key, or what is below it.", metavar="KEY")
    ] = None,
    *,
    file: Annotated[
        Path | None, typer.Option(help="Another file than that of the store.", metavar="FILE")
    ] = None,
) -> None:
    """List the values that somebody has set, and where."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.screen import Column, table  # noqa: PLC0415 -- as above
        from gateway_sessions.config import load_config  # noqa: PLC0415 -- as above
        from gateway_sessions.config.origins import settings_of  # noqa: PLC0415 -- as above

        path = file or desk.config_path
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

    run(context, work)
