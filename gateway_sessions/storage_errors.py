"""What may keep a database from being used as it is. Each is a `StorageError`, too.

StorageError
├── ForeignDatabaseError
│   └── HermesDatabaseError         the file is a database of Hermes
├── StorageUnavailableError
│   ├── MissingRightError           the login lacks a right in a database on a server
│   └── SchemaTooOldError           an older version wrote it, and whoever only reads changes nothing
└── UnsupportedStorageError
    ├── UnknownProviderError        no such kind of database is installed
    ├── BrokenProviderError         a package brings one along that cannot be used
    └── OperatorsTaskError          only whoever runs the server can do that
"""

from __future__ import annotations

from gateway_sessions.errors import ForeignDatabaseError, StorageUnavailableError, UnsupportedStorageError


class MissingRightError(StorageUnavailableError):
    """The login may not do in the database what is needed; `problem` says what, in the server's words."""

    @classmethod
    def at_opening(cls, what: str, problem: str) -> MissingRightError:
        """The same where tables may have to be brought up to date, which few logins may do."""
        upgrade = "or let somebody who may change tables run: gateway-sessions sessiondb upgrade"
        return cls(what, f"{problem}, {upgrade}")


class SchemaTooOldError(StorageUnavailableError):
    """An older version wrote the database, and its tables were not brought up to date yet."""

    def __init__(self, path: str, *, found: int, ours: int) -> None:
        self.found = found
        self.ours = ours
        super().__init__(
            path,
            f"was written by an older version (schema {found}, this program has {ours}); open the store once "
            "to bring it up to date, or run: gateway-sessions sessiondb upgrade",
        )


class HermesDatabaseError(ForeignDatabaseError):
    """The file is a database of Hermes, whose sessions can be taken in; it was left as it is."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path, "it is one of Hermes, whose home is taken in by: gateway-sessions import hermes DIR"
        )


class UnknownProviderError(UnsupportedStorageError):
    """Nobody here knows that kind of database; `problem` says which there are, and what may be meant."""


class BrokenProviderError(UnsupportedStorageError):
    """A kind of database that a package brings along cannot be used; `problem` says why."""


class OperatorsTaskError(UnsupportedStorageError):
    """A database on a server is looked after by whoever runs the server, with means of their own."""
