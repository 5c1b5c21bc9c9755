"""All errors that a caller can meet, in one tree under `GatewaySessionsError`.

    GatewaySessionsError
    ├── InvalidInputError
    │   ├── InvalidSourceError          a message source that cannot name a lane
    │   │   └── UnidentifiedSourceError no identifier at all
    │   ├── InvalidSessionIdError
    │   ├── InvalidTitleError           empty, or too long
    │   ├── TitleTakenError             another session of that owner has it
    │   ├── AmbiguousSessionError       a text that means several sessions
    │   ├── InvalidPolicyError
    │   ├── UnknownTargetError          nobody can be addressed by that name
    │   ├── NotGivenUpError             no dead letter with that number can be retried
    │   └── ConfigError                 all problems of a configuration at once
    ├── InvalidTransitionError          a state does not allow an event
    ├── AliasUnknownError               an alias of a person cannot be resolved now
    ├── SessionNotFoundError
    ├── SessionEndedError               a session is over, and cannot be split
    ├── SentBeforeErasureError          a late message of a person who was erased since
    ├── SessionBusyError                a turn of that session is running
    ├── SessionOnLaneError              a lane has that session: change the lane instead
    ├── TurnEndedError                  a turn can be ended only once
    ├── FencedError                     a turn that was stopped or overtaken may not write any more
    ├── NoTurnError                     `current_turn()` was called where no turn runs
    ├── NotAcceptedError                a message that was asked was refused
    ├── UnansweredError                 the turn of a message that was asked gave no answer
    ├── CancelledItselfError            foreign code ended by a cancellation that nobody asked for
    ├── NothingToUndoError
    ├── StorageError
    │   ├── StoreBusyError              another process owns the store
    │   ├── StoreStoppedError           the store is closed, or crashed
    │   ├── StorageUnavailableError     the database cannot be reached, or is locked
    │   │   ├── NodeSilentError         the other nodes may take this one for dead
    │   │   ├── StorageLockedError      another program keeps the database locked
    │   │   ├── NoStoreError            there is no store yet
    │   │   ├── MissingRightError       the login lacks a right on a server
    │   │   └── SchemaTooOldError       written by an older version, and opened only for reading
    │   ├── StorageFullError
    │   ├── StorageCorruptError
    │   ├── ForeignDatabaseError        the file belongs to another program
    │   │   └── HermesDatabaseError     the file is a database of Hermes
    │   ├── SchemaTooNewError           written by a newer version
    │   ├── MigrationError              a store cannot be moved there, or differs after the move
    │   ├── UnsupportedStorageError     this place cannot hold a store safely
    │   │   ├── UnknownProviderError    no such kind of database is installed
    │   │   ├── BrokenProviderError     an installed provider cannot be used
    │   │   └── OperatorsTaskError      only the operator of the server can do that
    │   └── ControlError                the owner of the store could not be asked, or did not answer
    ├── EventLoopRunningError           a blocking call was made where an event loop runs
    ├── AdapterError                    a message was certainly not sent
    │   ├── AdapterUnavailableError     the platform cannot be reached now
    │   ├── RateLimitedError            the platform asks to wait
    │   └── DeliveryRefusedError        the platform will never accept this message
    ├── ModelError                      a model has not answered
    │   ├── ModelUnavailableError       it cannot be reached, or is too busy now
    │   ├── ModelRefusedError           the request has to be corrected first
    │   │   └── ContextTooLongError     the conversation is longer than the model can read
    │   └── ModelAnswerError            the answer cannot be read, or broke off
    ├── SnapshotError                   sessions.json could not be written
    └── InvalidSnapshotError            sessions.json is damaged, or was changed by somebody else

Constructors take facts, keep them as attributes and build the message from them. No error of a model holds a
key: the answer of an endpoint is quoted without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

__all__ = [
    "AdapterError", "AdapterUnavailableError", "AliasUnknownError", "AmbiguousSessionError",
    "BrokenProviderError", "CancelledItselfError", "ConfigError", "ConfigProblem", "ContextTooLongError",
    "ControlError", "DeliveryRefusedError", "EventLoopRunningError", "FencedError", "ForeignDatabaseError",
    "GatewaySessionsError", "HermesDatabaseError", "InvalidInputError", "InvalidPolicyError",
    "InvalidSessionIdError", "InvalidSnapshotError", "InvalidSourceError", "InvalidTitleError",
    "InvalidTransitionError", "MigrationError", "MissingRightError", "ModelAnswerError", "ModelError",
    "ModelRefusedError", "ModelUnavailableError", "NoStoreError", "NoTurnError", "NodeSilentError",
    "NotAcceptedError", "NotGivenUpError", "NothingToUndoError", "OperatorsTaskError", "RateLimitedError",
    "SchemaTooNewError", "SchemaTooOldError", "SentBeforeErasureError", "SessionBusyError",
    "SessionCandidate", "SessionEndedError", "SessionNotFoundError", "SessionOnLaneError", "SnapshotError",
    "StorageCorruptError", "StorageError", "StorageFullError", "StorageLockedError",
    "StorageUnavailableError", "StoreBusyError", "StoreStoppedError", "TitleTakenError", "TurnEndedError",
    "UnansweredError", "UnidentifiedSourceError", "UnknownProviderError", "UnknownTargetError",
    "UnsupportedStorageError",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionCandidate:
    """A session that an ambiguous text may stand for."""

    session_id: str
    title: str | None
    source: str
    """The platform on which the session began."""

    def __str__(self) -> str:
        return f"{self.session_id} ({self.source}, {self.title or 'no title'})"


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One problem of a configuration: its place, its message, and a suggestion."""

    path: str
    """The key, as a path with dots."""
    message: str
    line: int | None = None
    """The line of the file; None if the key stands in no file."""
    suggestion: str | None = None
    """A key or value that may be meant."""

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        hint = f" (did you mean {self.suggestion!r}?)" if self.suggestion else ""
        return f"{place}{self.path}: {self.message}{hint}"


class GatewaySessionsError(Exception):
    """Base class of all errors raised on purpose by this package."""


class InvalidInputError(GatewaySessionsError, ValueError):
    """A value given by the caller cannot be used."""


class InvalidSourceError(InvalidInputError):
    """A message source carries a field that cannot be used as an identifier."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"source field {field!r} {problem}")


class UnidentifiedSourceError(InvalidSourceError):
    """A message source names neither a chat, nor a person, nor a thread."""

    def __init__(self, platform: str) -> None:
        self.platform = platform
        super().__init__(
            "chat_id",
            f"is empty and the {platform} source has no user or thread either: everybody without an "
            "identifier would share one session. Give one, or set allow_unidentified_sources to accept that",
        )


class InvalidSessionIdError(InvalidInputError):
    """A session id that is empty, too long, or could be taken for a path."""

    def __init__(self, session_id: object, problem: str) -> None:
        self.session_id = session_id
        super().__init__(f"session id {session_id!r} {problem}")


class InvalidTitleError(InvalidInputError):
    """A title that is empty or too long without its invisible characters."""

    def __init__(self, length: int, limit: int) -> None:
        self.length = length
        self.limit = limit
        too_long = f"the title has {length} characters, {limit} are allowed"
        super().__init__(too_long if length else "the title is empty")


class TitleTakenError(InvalidInputError):
    """Another session of the same owner has that title; `holder` is its id, if the caller may see it."""

    def __init__(self, title: str, holder: str | None) -> None:
        self.title = title
        self.holder = holder
        by = f"session {holder!r}" if holder is not None else "another session"
        super().__init__(f"the title {title!r} is taken by {by}; choose another")


class AmbiguousSessionError(InvalidInputError):
    """A text stands for several sessions, which `candidates` lists."""

    def __init__(self, text: str, candidates: Sequence[SessionCandidate]) -> None:
        self.text = text
        self.candidates: tuple[SessionCandidate, ...] = tuple(candidates)
        lines = "".join(f"\n  {one}" for one in self.candidates)
        super().__init__(f"{text!r} could be any of these sessions; give the whole id:{lines}")


class InvalidPolicyError(InvalidInputError):
    """A reset policy that could never be evaluated."""

    def __init__(self, field: str, value: object, problem: str) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        super().__init__(f"reset policy: {field} = {value!r} {problem}")


class UnknownTargetError(InvalidInputError):
    """Raised when a target names no place that the gateway can reach; `known` are those that it can."""

    def __init__(self, target: str, known: Sequence[str], problem: str) -> None:
        self.target = target
        self.known: tuple[str, ...] = tuple(known)
        self.problem = problem
        can = ", ".join(known) if known else "nothing, as the gateway has no adapters"
        super().__init__(f"{target!r} cannot be addressed: {problem}; what can be addressed: {can}")


class NotGivenUpError(InvalidInputError):
    """A retry was asked for, and nothing of that number was given up, or its retry runs already."""


class ConfigError(InvalidInputError):
    """A configuration has problems; `problems` lists all of them."""

    def __init__(self, origin: str, problems: Sequence[ConfigProblem]) -> None:
        self.origin = origin
        self.problems: tuple[ConfigProblem, ...] = tuple(problems)
        count = len(self.problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{origin}: {count} problem{'s' if count != 1 else ''}{lines}")


class InvalidTransitionError(GatewaySessionsError):
    """The state machine has no such move; nothing was changed."""

    def __init__(self, state: str, event: str, thing: str = "a session") -> None:
        self.state = state
        self.event = event
        self.thing = thing
        super().__init__(f"{thing} that is {state} does not take {event}")


class AliasUnknownError(GatewaySessionsError):
    """An alias of a person cannot be resolved now; nothing was done, so deliver the message again."""

    def __init__(self, platform: str, problem: str) -> None:
        self.platform = platform
        self.problem = problem
        super().__init__(f"an alias on {platform} could not be looked up: {problem}; nothing was done")


class SessionNotFoundError(GatewaySessionsError, LookupError):
    """No session with that id is visible to the caller."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"there is no session {session_id!r} in sight")


class SessionEndedError(GatewaySessionsError):
    """The session was ended meanwhile, so it cannot go on in another one."""

    def __init__(self, session_id: str, end_reason: str | None) -> None:
        self.session_id = session_id
        self.end_reason = end_reason
        super().__init__(f"session {session_id!r} has ended ({end_reason}); nothing was changed")


class SessionOnLaneError(GatewaySessionsError):
    """A lane has the session now, so it cannot be ended or reopened behind the lane's back."""

    def __init__(self, session_key: str, session_id: str) -> None:
        self.session_key = session_key
        self.session_id = session_id
        where = f"session {session_id!r} is the current one of lane {session_key!r}"
        super().__init__(f"{where}; reset, switch or prune the lane instead")


class SessionBusyError(GatewaySessionsError):
    """A turn of the session is running; try again when it has ended."""

    def __init__(self, session_key: str, session_id: str) -> None:
        self.session_key = session_key
        self.session_id = session_id
        turn = f"a turn on lane {session_key!r}"
        super().__init__(f"session {session_id!r} is in the middle of {turn}; stop it first")


class FencedError(GatewaySessionsError):
    """A turn has lost its lane: it was stopped or overtaken, and its changes are refused."""

    def __init__(self, session_key: str, token: int) -> None:
        self.session_key = session_key
        self.token = token
        turn = f"turn {token} of lane {session_key!r}"
        super().__init__(f"{turn} is over: it was stopped or overtaken; nothing was changed")


class NoTurnError(GatewaySessionsError, LookupError):
    """The current turn was asked for where no turn runs."""

    def __init__(self) -> None:
        super().__init__("no turn runs here: current_turn() is for agents and what they call")


class NotAcceptedError(GatewaySessionsError):
    """Raised when a message that was asked was refused; `retry_after`: seconds after which to try again."""

    def __init__(self, reason: str, text: str, retry_after: float | None = None) -> None:
        self.reason = reason
        self.text = text
        self.retry_after = retry_after
        super().__init__(f"the message was refused ({reason}): {text}")


class UnansweredError(GatewaySessionsError):
    """Raised when the turn of a message ended without an answer: it failed, was stopped or was cancelled."""

    def __init__(self, session_key: str, seq: int, outcome: str, problem: str | None = None) -> None:
        self.session_key = session_key
        self.seq = seq
        self.outcome = outcome
        self.problem = problem
        why = f": {problem}" if problem else ""
        super().__init__(f"message {seq} of {session_key} was not answered ({outcome}){why}")


class CancelledItselfError(GatewaySessionsError):
    """Foreign code ended by a cancellation of its own."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} cancelled itself")


class TurnEndedError(GatewaySessionsError):
    """A turn is ended once: it was committed, given up, stopped or released before."""

    def __init__(self, session_key: str, token: int) -> None:
        self.session_key = session_key
        self.token = token
        super().__init__(f"turn {token} of lane {session_key!r} has ended; claim the next one")


class NothingToUndoError(GatewaySessionsError):
    """A lane has no session to bring back after a reset, or a session has no turns to bring back."""

    def __init__(self, where: str, why: str) -> None:
        self.where = where
        super().__init__(f"nothing can be undone in {where!r}: {why}")


class SentBeforeErasureError(GatewaySessionsError):
    """A message was sent before its owner was erased: drop it. Later messages are accepted."""

    def __init__(self, session_id: str, erased_at: datetime) -> None:
        self.session_id = session_id
        self.erased_at = erased_at
        late = f"sent before its owner was erased, at {erased_at:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"a message for session {session_id!r} was {late}; drop it")


class StorageError(GatewaySessionsError):
    """The store could not do its work; changes that were acknowledged before are safe."""

    def __init__(self, what: str, problem: str, *, in_doubt: bool = False) -> None:
        self.what = what
        self.problem = problem
        self.in_doubt = in_doubt  # True if the change may have been committed all the same
        super().__init__(f"{what}: {problem}")


class StoreBusyError(StorageError):
    """Another process, or another store object of this one, owns the store."""

    def __init__(self, path: str, owner: str) -> None:
        self.owner = owner
        super().__init__(path, f"is in use by {owner}; stop it, or wait for it")


class StoreStoppedError(StorageError):
    """The store is not open (any more); `__cause__` tells of a crash, if there was one."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "is not running; open it, once, with `async with`")


class StorageUnavailableError(StorageError):
    """The database cannot be reached, is locked or cannot be written now; trying later may help."""


class NodeSilentError(StorageUnavailableError):
    """The node was silent for too long, and changes nothing until it has joined the cluster anew."""


class StorageLockedError(StorageUnavailableError):
    """Another program has locked the database, and did not release the lock in time."""


class NoStoreError(StorageUnavailableError):
    """There is no store yet; its owner creates it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "there is no store here yet; its owner makes it")


class StorageFullError(StorageError):
    """There is no room on the disk; free some, nothing acknowledged was lost."""


class StorageCorruptError(StorageError):
    """The database is damaged; it was left as it is."""


class ForeignDatabaseError(StorageError):
    """The file is a database of another program; it was left as it is."""

    def __init__(self, path: str, detail: str) -> None:
        self.detail = detail
        problem = f"is not a gateway_sessions database ({detail}); choose another place for the store"
        super().__init__(path, problem)


class SchemaTooNewError(StorageError):
    """The store was written by a newer version that this one cannot read; it was left as it is."""

    def __init__(self, path: str, *, readable_from: int, ours: int) -> None:
        self.readable_from = readable_from
        self.ours = ours
        needs = f"needs at least schema version {readable_from}, this program knows {ours}"
        super().__init__(path, f"{needs}: install a newer gateway_sessions")


class MigrationError(StorageError):
    """A store cannot be moved to that target, or differs there; the source was not changed."""


class UnsupportedStorageError(StorageError):
    """The place or the database library cannot hold a store safely."""


class ControlError(StorageError):
    """The owner of a store could not be asked, or did not answer.

    `may_have_happened` is True if the operation may have been carried out: check before a retry.
    `passing` is True if the owner is just ending: nothing has happened, and another one may answer soon.
    """

    def __init__(self, what: str, problem: str, *, may_have_happened: bool, passing: bool = False) -> None:
        self.may_have_happened = may_have_happened
        self.passing = passing
        super().__init__(what, problem)


class EventLoopRunningError(GatewaySessionsError, RuntimeError):
    """A blocking call was made in a thread whose event loop it would block."""

    def __init__(self) -> None:
        super().__init__(
            "this thread runs an event loop, which a blocking call would stop: use SessionStore or SessionDB "
            "with await, or make the call in another thread, as with asyncio.to_thread"
        )


class AdapterError(GatewaySessionsError):
    """A message was certainly not sent; any other error of an adapter means that nobody knows."""

    def __init__(self, platform: str, problem: str) -> None:
        self.platform = platform
        self.problem = problem
        super().__init__(f"{platform}: {problem}")


class AdapterUnavailableError(AdapterError):
    """The platform cannot be reached now; the message was not sent, and may be sent later."""


class RateLimitedError(AdapterError):
    """The platform takes no messages for `retry_after` seconds, if it named a time; nothing was sent."""

    def __init__(self, platform: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        pause = f"for {retry_after:g} s" if retry_after is not None else "for a while"
        super().__init__(platform, f"takes no messages {pause}; this one was not sent")


class DeliveryRefusedError(AdapterError):
    """The platform refuses this message for good: do not send it again."""


class SnapshotError(GatewaySessionsError):
    """sessions.json could not be written; `committed` is True if the database has the change all the same."""

    def __init__(self, path: str, reason: str, *, committed: bool) -> None:
        self.path = path
        self.committed = committed
        kept = "the change itself is safe in the database" if committed else "the old file stands"
        super().__init__(f"{path} could not be written ({reason}); {kept}")


class InvalidSnapshotError(GatewaySessionsError):
    """sessions.json is damaged, incomplete, or was changed by somebody else."""


class MissingRightError(StorageUnavailableError):
    """The login lacks a right in the database; `problem` names the right in the server's words."""

    @classmethod
    def at_opening(cls, what: str, problem: str) -> MissingRightError:
        """Return the error for an opening that has to migrate the tables, which few logins may do."""
        upgrade = "or let somebody who may change tables run: gateway-sessions sessiondb upgrade"
        return cls(what, f"{problem}, {upgrade}")


class SchemaTooOldError(StorageUnavailableError):
    """An older version wrote the database, and its tables were not migrated yet."""

    def __init__(self, path: str, *, found: int, ours: int) -> None:
        self.found = found
        self.ours = ours
        super().__init__(
            path,
            f"was written by an older version (schema {found}, this program has {ours}); open the store once "
            "to bring it up to date, or run: gateway-sessions sessiondb upgrade",
        )


class HermesDatabaseError(ForeignDatabaseError):
    """The file is a database of Hermes, whose sessions can be imported; it was left as it is."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path, "it is one of Hermes, whose home is taken in by: gateway-sessions import hermes DIR"
        )


class UnknownProviderError(UnsupportedStorageError):
    """That kind of database is not installed; `problem` lists those that are, with a suggestion."""


class BrokenProviderError(UnsupportedStorageError):
    """The provider of a package cannot be used; `problem` says why."""


class OperatorsTaskError(UnsupportedStorageError):
    """The task belongs to the operator of the database server, who has tools for it."""


class ModelError(GatewaySessionsError):
    """A model did not answer; `endpoint` is the host that was asked."""

    def __init__(self, endpoint: str, problem: str) -> None:
        self.endpoint = endpoint
        self.problem = problem
        super().__init__(f"{endpoint} {problem}")


class ModelUnavailableError(ModelError):
    """The model cannot be reached or is too busy now; later it may answer.

    `asked` is True if the model may have received the question; `retry_after` is the number of seconds after
    which a retry is allowed, if the model named one.
    """

    def __init__(
        self, endpoint: str, problem: str, *, asked: bool = True, retry_after: float | None = None
    ) -> None:
        self.asked = asked
        self.retry_after = retry_after
        super().__init__(endpoint, problem)


class ModelRefusedError(ModelError):
    """The model refuses the request: a key, an address or a name has to be corrected first."""


class ContextTooLongError(ModelRefusedError):
    """The conversation is longer than the model can read."""


class ModelAnswerError(ModelError):
    """The answer of the model cannot be read, or broke off; the model may have worked on it all the same."""
