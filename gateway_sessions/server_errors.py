"""What only a database on a server can say. Each is a `StorageError`, too.

StorageError
├── StorageUnavailableError
│   └── MissingRightError           the login lacks a right in the database
└── UnsupportedStorageError
└── OperatorsTaskError          only whoever runs the server can do that
"""

from __future__ import annotations

from gateway_sessions.errors import StorageUnavailableError, UnsupportedStorageError


class MissingRightError(StorageUnavailableError):
    """The login may not do in the database what is needed; `problem` says what, and who may do it instead."""


class OperatorsTaskError(UnsupportedStorageError):
    """A database on a server is looked after by whoever runs the server, with means of their own."""
