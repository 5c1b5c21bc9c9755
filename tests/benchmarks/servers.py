"""A PostgreSQL server that contenders measure on: a database of its own for each of them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import asyncpg

SERVER: Final = os.environ.get("GATEWAY_SESSIONS_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres")
"""Whoever this names may create databases."""


@asynccontextmanager
async def own_database(name: str) -> AsyncGenerator[str]:
    """The address of an empty database of that name, which is gone afterwards."""
    admin = await asyncpg.connect(SERVER, timeout=5)
    try:
        await admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        await admin.execute("CHECKPOINT")
        try:
            yield urlsplit(SERVER)._replace(path=f"/{name}").geturl()
        finally:
            await admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    finally:
        await admin.close()
