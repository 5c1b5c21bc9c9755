"""The exit codes, and the advice for each error."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gateway_sessions.core.notices.human_units import MEND_FILE
from gateway_sessions.errors import (
    AmbiguousSessionError,
    BrokenProviderError,
    ConfigError,
    ControlError,
    ForeignDatabaseError,
    GatewaySessionsError,
    HermesDatabaseError,
    InvalidInputError,
    MigrationError,
    MissingRightError,
    NoStoreError,
    NotGivenUpError,
    NothingToUndoError,
    OperatorsTaskError,
    SchemaTooNewError,
    SchemaTooOldError,
    SessionBusyError,
    SessionNotFoundError,
    SessionOnLaneError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StoreBusyError,
    TitleTakenError,
    UnknownProviderError,
    UnsupportedStorageError,
)


class Exit(IntEnum):
    """The exit codes. They are part of the interface: scripts rely on them."""

    DONE = 0
    FAILED = 1  # the store could not do its work, or something unforeseen happened
    WRONG_USE = 2  # an option, an argument or the configuration is wrong
    NOT_FOUND = 3  # there is no such session, lane, message, reply or store
    AMBIGUOUS = 4  # several sessions could be meant
    BUSY = 5  # somebody else has the store, or a turn of the session runs
    DECLINED = 6  # not confirmed
    UNSOUND = 7  # a check has found something
    INTERRUPTED = 130  # Ctrl-C


class Declined(Exception):  # noqa: N818 -- not an error: somebody said no
    """A person has not confirmed what was asked."""


class NotWaitingError(InvalidInputError):
    """The message to cancel does not wait on that lane."""

    def __init__(self, lane: str, seq: int | None) -> None:
        super().__init__(f"message {seq} does not wait on {lane} (any more)")


class AddressTakenError(InvalidInputError):
    """Another program listens at the configured address."""

    def __init__(self, key: str, where: str) -> None:
        super().__init__(f"{key}: another program listens at {where}")


@dataclass(frozen=True, slots=True)
class Advice:
    """The exit code for an error, and advice for people."""

    code: Exit
    what_next: str


# The first class that fits counts.
_ADVICE: Final[tuple[tuple[type[BaseException], Advice], ...]] = (
    (AmbiguousSessionError, Advice(Exit.AMBIGUOUS, "see what each is: gateway-sessions sessions show ID")),
    (TitleTakenError, Advice(Exit.WRONG_USE, "choose another title, or rename that session first")),
    (
        ConfigError,
        Advice(
            Exit.WRONG_USE,
            "correct the configuration, then look at it again: gateway-sessions config validate",
        ),
    ),
    (NotGivenUpError, Advice(Exit.NOT_FOUND, "see what was given up: gateway-sessions queue list --dead")),
    (NotWaitingError, Advice(Exit.NOT_FOUND, "see what waits: gateway-sessions queue list")),
    (AddressTakenError, Advice(Exit.BUSY, "stop that program, or wait for it: serve --wait SECONDS")),
    (InvalidInputError, Advice(Exit.WRONG_USE, "see --help of the command")),
    (SessionNotFoundError, Advice(Exit.NOT_FOUND, "look it up: gateway-sessions sessions list")),
    (NothingToUndoError, Advice(Exit.NOT_FOUND, "see what happened: gateway-sessions explain KEY")),
    (
        NoStoreError,
        Advice(Exit.NOT_FOUND, "name the store's directory: --home DIR; or begin one: gateway-sessions chat"),
    ),
    (SessionBusyError, Advice(Exit.BUSY, "try again when the turn has ended")),
    (
        SessionOnLaneError,
        Advice(Exit.BUSY, "a lane goes on with that session; sessions delete --end ends it first"),
    ),
    (StorageLockedError, Advice(Exit.BUSY, "close that program, or try again when it is done")),
    (StoreBusyError, Advice(Exit.BUSY, "stop that process first, or try again when it is done")),
    (ControlError, Advice(Exit.BUSY, "look whether it was done before you ask again")),
    (MigrationError, Advice(Exit.FAILED, "nothing was changed at the source")),
    (SchemaTooNewError, Advice(Exit.FAILED, "install a newer gateway-sessions")),
    (HermesDatabaseError, Advice(Exit.WRONG_USE, "take it in: gateway-sessions import hermes DIR")),
    (ForeignDatabaseError, Advice(Exit.WRONG_USE, "name another place")),
    (StorageCorruptError, Advice(Exit.FAILED, MEND_FILE)),
    (StorageFullError, Advice(Exit.FAILED, "free some room on the disk")),
    (UnknownProviderError, Advice(Exit.FAILED, "correct the address, or install the package that knows it")),
    (BrokenProviderError, Advice(Exit.FAILED, "see what is installed: gateway-sessions doctor")),
    (OperatorsTaskError, Advice(Exit.FAILED, "ask whoever runs the server")),
    (
        MissingRightError,
        Advice(Exit.FAILED, "grant the right; then gateway-sessions doctor tells whether all is well"),
    ),
    (SchemaTooOldError, Advice(Exit.FAILED, "bring it up to date: gateway-sessions sessiondb upgrade")),
    (UnsupportedStorageError, Advice(Exit.FAILED, "choose another place for the store")),
    (StorageError, Advice(Exit.FAILED, "see what is wrong: gateway-sessions doctor")),
    (GatewaySessionsError, Advice(Exit.FAILED, "see what is wrong: gateway-sessions doctor")),
)


@dataclass(frozen=True, slots=True)
class CommandFailure:
    """The failure of a command: its message, advice for people, and the exit code."""

    kind: str
    message: str
    what_next: str
    exit_code: Exit


INTERRUPTED: Final = CommandFailure(
    "Interrupted", "interrupted; what was finished is kept", "", Exit.INTERRUPTED
)


def failure_of(error: BaseException) -> CommandFailure:
    """Return the failure of a command for an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, Declined):
        return CommandFailure("Declined", str(error), "mean it: --yes", Exit.DECLINED)
    if isinstance(error, OSError):
        text = f"{error.filename or 'the system'}: {error.strerror or error}"
        return CommandFailure("OSError", text, "check the path and its rights", Exit.FAILED)
    advice = _advice_for(error)
    return CommandFailure(type(error).__name__, str(error), advice.what_next, advice.code)


def _advice_for(error: BaseException) -> Advice:
    for kind, advice in _ADVICE:
        if isinstance(error, kind):
            return advice
    return Advice(Exit.FAILED, "this should not happen; --debug shows where")
