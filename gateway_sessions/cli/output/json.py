"""The answer of a command as one line of JSON, and the report of a failure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway_sessions.cli.exit_codes import CommandFailure, Exit
from gateway_sessions.cli.settings import name_of_program
from gateway_sessions.core.display_text import visible_text
from gateway_sessions.core.identity.row_ids import ids_to_text

ENVELOPE: Final = 1
"""The version of the JSON answers; it rises when a member is removed or changes its meaning."""


def report_failure(failure: CommandFailure, command: str, *, as_json: bool) -> Exit:
    """Write the failure of a command, and return its exit code."""
    if as_json:
        write_json({"ok": False, **answer_head(command), "results": [], "error": failure})
    else:
        what_next = f"  → {failure.what_next}\n" if failure.what_next else ""
        sys.stderr.write(f"{name_of_program()}: {visible_text(failure.message).rstrip('.')}\n{what_next}")
    return failure.exit_code


def answer_head(command: str) -> dict[str, object]:
    """Return the members with which every answer begins."""
    return {"command": command, "version": ENVELOPE}


def write_json(answer: Mapping[str, object]) -> None:
    """Write one line of JSON."""
    encoded = msgspec.json.encode(ids_to_text(answer, outside=True), enc_hook=_encode_other)
    sys.stdout.buffer.write(encoded + b"\n")
    sys.stdout.flush()


def _encode_other(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)
