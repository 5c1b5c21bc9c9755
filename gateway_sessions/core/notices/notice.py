"""`Notice`: the words of a notice with its code and its arguments, for other words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

from gateway_sessions.core.checks import plain_text, plain_value
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage
from gateway_sessions.core.storable_text import StorableEncoder, check_word, storable_text
from gateway_sessions.core.transcript.messages import NO_EXTRA

MAX_CODE: Final = 64
"""The longest code of a notice: a code is a name, not a sentence."""


class Notice(str):
    """The text of a notice, a `str`, with the code and the arguments of which it was made.

    The code says what the notice is about, and stays the same from version to version. The arguments are
    values of JSON: numbers, names, lists, and instants as ISO text. Two notices with the same text are equal.
    """

    __slots__ = ("arguments", "code")

    code: str
    """What the notice is about, such as `queue_full`."""
    arguments: Mapping[str, Any]
    """The values of which the text was made, by name."""

    def __new__(cls, code: str, text: str, /, **arguments: Any) -> Self:
        """Return a notice; `InvalidInputError` if JSON cannot hold an argument."""
        notice = super().__new__(cls, plain_text(text))
        notice.code = check_word("the code of a notice", code, MAX_CODE)
        notice.arguments = _as_json_values(arguments)
        return notice

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], dict[str, Any]]:
        """Return what `copy` and `pickle` make the same notice of."""
        return (self.code, plain_text(self)), dict(self.arguments)

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.arguments.items())
        return f"Notice({self.code!r}, {plain_text(self)!r}{given})"


def notice_message(text: str, *, replaces: str | None = None) -> OutboundMessage:
    """Return the message that tells people a notice. A text without a code stays without one."""
    if not isinstance(text, Notice):
        return OutboundMessage(text=text, is_notice=True, replaces=replaces)
    # What is stored and sent gets a plain text: neither a database nor JSON knows notices.
    return OutboundMessage(
        text=plain_text(text),
        is_notice=True,
        notice_code=text.code,
        notice_arguments=text.arguments,
        replaces=replaces,
    )


def notice_in(message: OutboundMessage) -> Notice | None:
    """Return the notice that a message tells; None if it tells none, or one without a code."""
    if message.notice_code is None:
        return None
    return Notice(message.notice_code, message.text, **message.notice_arguments)


def _as_json_values(arguments: dict[str, Any]) -> Mapping[str, Any]:
    """Return the arguments as they come back from a database: lists for tuples, ISO text for instants."""
    if not arguments:
        return NO_EXTRA
    values: dict[str, Any] = _without_unstorable(msgspec.to_builtins(arguments, enc_hook=plain_value))
    StorableEncoder().json("the arguments of a notice", values)  # a value that passes here can be stored
    return values


def _without_unstorable(value: Any) -> Any:
    match value:
        case str():
            return storable_text(value)
        case dict():
            return {storable_text(name): _without_unstorable(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # whatever a caller gave
        case list() | tuple():
            return [_without_unstorable(one) for one in value]  # pyright: ignore[reportUnknownVariableType]  # the same
        case _:
            return value
