"""`DatabaseListener`: hears what a database reports, and does for an erasure what only the store can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway_sessions.core.committed_changes import CommittedChange


@dataclass(frozen=True, slots=True)
class FilesBeside:
    """Files of a store besides its database, after an erasure."""

    rewritten: tuple[str, ...] = ()
    copies: tuple[Path, ...] = ()
    """Files that may hold rows of the database."""


class DatabaseListener:
    """Ignores everything, for a database without a store. A store makes a listener of its own first."""

    def hear_news(self, news: Sequence[CommittedChange]) -> None:
        """Hear of the changes that a commit made, after that commit."""

    def hear_index_fault(self, problem: str, place: Path | None) -> None:
        """Hear that the search index was damaged and is being made again."""

    def hear_silence(self) -> None:
        """Hear that this node must stop all its work at once: other nodes may take over its turns."""

    def hear_call(self, epochs: frozenset[int]) -> None:
        """Hear that another node asks the nodes of these epochs to look at once; all if none are named."""

    async def resolve_alias(self, platform: str, user_id: str) -> str:
        """Return the one id that all ids of a person share, where the store knows one."""
        del platform
        return user_id

    async def purge_erased_from_files(self) -> FilesBeside:
        """Rewrite the files of the store besides the database, once the rows of an erasure are gone."""
        return FilesBeside()
