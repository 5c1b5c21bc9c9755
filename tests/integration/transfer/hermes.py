"""Hermes homes on the disk, made from what its own code has written once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from tests.raw_sql import execute_sql

DATA = Path(__file__).parents[2] / "data"
NEWEST = "hermes_0_19"
VERSIONS = [NEWEST, "hermes_0_15_like", "hermes_schema_11"]
SESSIONS = 11
MESSAGES = 24
ROOT, TIP, STALE, BRANCH, DELEGATE = (
    "20260305_150000_aaaaaaaa",
    "20260305_160000_bbbbbb",
    "20260305_160001_cccccc",
    "20260305_170000_dddddd",
    "20260305_171000_eeeeee",
)
CHAT = "agent:main:telegram:dm:4711"
OTHER_CHAT = "agent:main:discord:dm:4711"
GROUP = "agent:main:telegram:group:-100%3A7:4711"


def hermes_home(folder: Path, version: str = NEWEST, *, scope: str | None = None) -> Path:
    """A home whose routing table belongs to it, or to the directory of another one."""
    (folder / "sessions").mkdir(parents=True)
    script = (DATA / f"{version}.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(folder / "state.db")) as connection:
        connection.executescript(script.replace("{SESSIONS_DIR}", scope or str(folder / "sessions")))
        connection.commit()
    return folder


def change_hermes(home: Path, statement: str, *values: object) -> None:
    """Let Hermes have written something else."""
    execute_sql(home / "state.db", statement, *values)


def fingerprint(home: Path) -> dict[str, str]:
    """Every file of a home and what is in it."""
    files = sorted(one for one in home.rglob("*") if one.is_file())
    return {str(one.relative_to(home)): sha256(one.read_bytes()).hexdigest() for one in files}
