"""`ProcessMemory`: the memory of an adapter that no gateway has given a durable one."""

from __future__ import annotations


class ProcessMemory:
    """Keeps texts by name as long as the process runs, for adapters that are used without a gateway."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def get(self, name: str) -> str | None:
        """Return the text that was kept under that name; None if there is none."""
        return self._kept.get(name)

    async def put(self, name: str, value: str | None) -> None:
        """Keep a text; None forgets it."""
        if value is None:
            self._kept.pop(name, None)
        else:
            self._kept[name] = value
