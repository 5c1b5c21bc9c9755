"""Write the commands of cli.md as the command line has them: `python docs/reference/make_cli.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gateway_sessions.cli.app import command_line

PAGE = Path(__file__).with_name("cli.md")
MARK = "\n<!-- The rest is made by make_cli.py. -->\n"


def commands() -> str:
    """All commands with what they take."""
    parts: list[str] = []
    for name, one in command_line().commands.items():
        below: dict[str, Any] = getattr(one, "commands", {})
        parts += [f"\n## `{name}`\n", one.help or "", *_parameters(one)]
        for transaction, command in below.items():
            parts += [f"\n### `{name} {transaction}`\n", command.help or "", *_parameters(command)]
    return "\n".join(parts) + "\n"


def _parameters(command: Any) -> Iterator[str]:
    rows = [_row(one) for one in command.params if one.name != "help"]
    if rows:
        yield from ("", "| | |", "|---|---|", *rows)


def _row(one: Any) -> str:
    if one.param_type_name == "argument":
        name = one.metavar or one.name.upper()
        return f"| `{name if one.required else f'[{name}]'}` | {_told(one)} |"
    value = "" if one.is_flag else f" {one.metavar or {'int': 'N', 'float': 'N'}.get(_kind(one), 'TEXT')}"
    default = f" Default: `{one.default}`." if one.default and not one.is_flag else ""
    return f"| `{'`, `'.join(one.opts)}{value}` | {_told(one)}{default} |"


def _kind(one: Any) -> str:
    return str(getattr(one.type_descriptor.annotation, "__name__", ""))


def _told(one: Any) -> str:
    return str(one.help or "").replace("|", "\\|")


def page(written: str) -> str:
    """The page with its commands as they are."""
    head, _, _ = written.partition(MARK)
    return head + MARK + commands()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    sys.stdout.write(f"{PAGE} written\n")
