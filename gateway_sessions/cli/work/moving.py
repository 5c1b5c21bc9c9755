"""`sessiondb`: move the database, and bring its tables up to date."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from gateway_sessions.cli.commands.sessiondb import Migrate, Upgrade
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.runtime.places import database_of
from gateway_sessions.storage.moving import MigrationProgress, migrate_store
from gateway_sessions.storage.opened import Opening
from gateway_sessions.storage.upgrading import upgrade_schema

NEXT_STEPS: Final = (
    "Name the new place in the configuration (sessiondb), and keep the old one until you are content."
)


async def migrate(context: CommandContext, asked: Migrate) -> None:
    """Move all that the store holds, and check it there."""
    home, config = context.place()
    origin, _ = database_of(home, config.sessiondb.url)
    if asked.source is not None:
        origin = database_at(asked.source)
    moved = partial(
        migrate_store,
        prepared_statements=config.sessiondb.prepared_statements,
        allow_network=config.sessiondb.allow_network_filesystem,
    )
    with context.progress("Copying") as tell:

        def show(one: MigrationProgress) -> None:
            tell(one.rows, one.total_rows, f"{'Checking' if one.checking else 'Copying'} {one.table}")

        report = await moved(origin, database_at(asked.target), dry_run=asked.dry_run, progress=show)
    context.answer_text(str(report), report)
    if report.already:
        context.note("All of it had been moved before; it was checked once more.")
    elif not asked.dry_run:
        context.note(NEXT_STEPS)


def database_at(place: str) -> str | Path:
    """The database that people mean by a path, a directory or an address."""
    path = Path(place).expanduser()
    return path / "sessions.db" if "://" not in place and (path.is_dir() or not path.suffix) else place


async def upgrade(context: CommandContext, asked: Upgrade) -> None:
    """Bring the tables up to date with this version."""
    home, config = context.place()
    database, beside = database_of(home, config.sessiondb.url)
    opening = Opening(
        home=beside,
        prepared_statements=config.sessiondb.prepared_statements,
        allow_network=config.sessiondb.allow_network_filesystem,
    )
    with context.progress("Bringing the tables up to date"):
        report = await upgrade_schema(database, opening, dry_run=asked.dry_run)
    context.answer_text(f"{report}.", report)
