"""How the receipt of an erasure looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from gateway_sessions.cli.screen import facts, inline
from gateway_sessions.core.telling import counted

if TYPE_CHECKING:
    from gateway_sessions import ErasureReceipt


def receipt_page(receipt: ErasureReceipt) -> RenderableType:
    """What was done, and what was not."""
    rows = ", ".join(counted(count, _one_of(table), table) for table, count in receipt.rows.items() if count)
    done = facts(
        [
            ("Forgotten", receipt.owner),
            ("At", f"{receipt.erased_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("Deleted", rows or "nothing was known"),
            ("Rewritten", ", ".join(receipt.rewritten) or None),
            ("Removed", ", ".join(receipt.removed) or None),
        ]
    )
    kept = [Text(f"Not removed: {inline(one.what)}: {inline(one.why)}") for one in receipt.kept]
    return Group(done, *([Text(), *kept] if kept else []))


def _one_of(table: str) -> str:
    return f"{table.removesuffix('ies')}y" if table.endswith("ies") else table.removesuffix("s")
