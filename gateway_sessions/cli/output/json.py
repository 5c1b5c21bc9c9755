"""What programs read, and how a command says that it has failed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from gateway_sessions.cli.exit_codes import Exit, Failure
from gateway_sessions.core.row_ids import with_text_ids
from gateway_sessions.core.untrusted import visible

NAMES: Final = ("gateway-sessions", "gsess")
ENVELOPE: Final = 1
"""The version of what --json writes; it rises when a member goes or means something else."""


def name_of_program() -> str:
    """What people have called it."""
    called = Path(sys.argv[0]).name
    return called if called in NAMES else NAMES[0]


def say(failure: Failure, command: str, *, as_json: bool) -> Exit:
    """Say how a command has failed; returns its exit code."""
    if as_json:
        write_json({"ok": False, **head(command), "results": [], "error": failure})
    else:
        what_next = f"  → {failure.what_next}\n" if failure.what_next else ""
        sys.stderr.write(f"{name_of_program()}: {visible(failure.message).rstrip('.')}\n{what_next}")
    return failure.exit_code


def head(command: str) -> dict[str, object]:
    """What every answer begins with."""
    return {"command": command, "version": ENVELOPE}


def write_json(answer: Mapping[str, object]) -> None:
    """One line of JSON."""
    encoded = msgspec.json.encode(with_text_ids(answer, outside=True), enc_hook=_as_json)
    sys.stdout.buffer.write(encoded + b"\n")
    sys.stdout.flush()


def _as_json(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)
