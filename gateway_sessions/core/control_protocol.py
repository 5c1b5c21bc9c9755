"""The frames and messages that a store's owner and its clients exchange over the control socket.

A frame is four bytes with the length of a JSON text, then that text. The owner greets first; then the client
asks and the owner answers, one request after another. An error travels as the name of its class and the facts
that it was made of, and becomes an error of the same class on the other side.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import tzinfo
from typing import Any, Final, TypeVar, cast

import msgspec

from gateway_sessions import errors
from gateway_sessions.core.checks import plain_value
from gateway_sessions.core.identity.row_ids import has_id_fields, ids_to_numbers, ids_to_text
from gateway_sessions.core.sessions.reset_times import zone_named
from gateway_sessions.errors import ControlError, GatewaySessionsError, InvalidInputError

PROTOCOL: Final = 1
"""The version of the protocol, raised when one side would misunderstand the other; a new operation needs
none."""
# A request names one operation: a megabyte also carries a long text for it.
MAX_REQUEST_BYTES: Final = 1 << 20
# An answer holds a page of sessions or messages.
MAX_ANSWER_BYTES: Final = 4 << 20

T = TypeVar("T")

_LENGTH: Final = struct.Struct(">I")
_NOTHING: Final = msgspec.Raw(b"{}")
_NULL: Final = msgspec.Raw(b"null")


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """The first message of a store's owner."""

    protocol: int
    program: str
    """The version of gateway_sessions."""
    schema: int
    """The version of the database's schema."""
    pid: int
    database: str
    """The path of the database, for clients that read it themselves."""


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for one operation."""

    do: str
    parameters: msgspec.Raw = _NOTHING
    seconds: float
    """The seconds that the client waits; after them the answer is not needed any more."""


class ControlFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An error on its way to the client."""

    kind: str
    message: str
    facts: dict[str, Any]


class ControlAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a request: a result, unless there is a failure."""

    result: msgspec.Raw = _NULL
    failure: ControlFailure | None = None


class FrameDecoder:
    """Cuts the bytes that arrive into frames. It never keeps more than one unfinished frame."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()

    @property
    def has_partial_frame(self) -> bool:
        """Whether a frame has begun to arrive."""
        return bool(self._pending)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that *data* completes; raise `InvalidInputError` for one beyond the limit."""
        self._pending += data
        while len(self._pending) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._pending)
            if length > self._limit:
                raise _frame_too_large(length, self._limit)
            end = _LENGTH.size + length
            if len(self._pending) < end:
                return
            body = bytes(self._pending[_LENGTH.size : end])
            del self._pending[:end]
            yield body


def encode_frame(value: object, limit: int) -> bytes:
    """Return the frame that carries a value, or raise `InvalidInputError` if no frame can."""
    body = encode(value)
    if len(body) > limit:
        raise _frame_too_large(len(body), limit)
    return _LENGTH.pack(len(body)) + body


def encode(value: object) -> bytes:
    """Return the JSON text of a value."""
    try:
        return msgspec.json.encode(ids_to_text(value), enc_hook=_encode_unknown)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        problem = f"cannot be sent to the owner of the store: {error}"
        raise InvalidInputError(problem) from error


def decode(body: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Return the value of that type, or raise `InvalidInputError` for other JSON or endless nesting."""
    try:
        if not has_id_fields(cast("Any", kind)):
            return msgspec.json.decode(body, type=kind, dec_hook=_decode_unknown)
        numbered = ids_to_numbers(msgspec.json.decode(body), kind)
        return msgspec.convert(numbered, type=kind, dec_hook=_decode_unknown)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        name = getattr(kind, "__name__", str(kind)).removeprefix("Control")
        problem = f"not a {name} as expected: {error}"
        raise InvalidInputError(problem) from error


def failure_from_error(error: GatewaySessionsError) -> ControlFailure:
    """Return the error in the form that travels."""
    facts = {name: value for name, value in vars(error).items() if _is_sendable(value)}
    return ControlFailure(kind=type(error).__name__, message=str(error), facts=facts)


def error_from_failure(failure: ControlFailure) -> GatewaySessionsError:
    """Return the error of its own class, or a `ControlError` for a class that only a newer program knows."""
    kind = _ERRORS.get(failure.kind)
    if kind is None:
        problem = f"answered with {failure.kind}: {failure.message}"
        return ControlError("the owner of the store", problem, may_have_happened=True)
    error = kind.__new__(kind, failure.message)
    error.__dict__.update(failure.facts)
    return error


def _is_sendable(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(isinstance(one, str) for one in cast("list[object]", value))
    return value is None or isinstance(value, (str, int, float))


def _encode_unknown(value: object) -> object:
    return str(value) if isinstance(value, tzinfo) else plain_value(value)


def _decode_unknown(kind: type[Any], value: Any) -> Any:
    if kind is object:
        return value
    if issubclass(kind, tzinfo):
        return zone_named(value)
    problem = f"{kind.__name__} does not travel"
    raise TypeError(problem)


def _frame_too_large(length: int, limit: int) -> InvalidInputError:
    return InvalidInputError(f"a frame of {length} bytes is larger than {limit}")


_ERRORS: Final = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, GatewaySessionsError)
}
