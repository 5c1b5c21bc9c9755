"""`ApiCall`: a call of a platform's API as a value, and what may have become of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

import msgspec

NO_HEADERS: Final[Mapping[str, str]] = {}
MOST_OF_PROBLEM: Final = 200
"""The characters of an answer that an error quotes: enough to recognise it, too few to flood a log."""

_BOUNDARY: Final = "gateway-sessions-7f1d0c52b7a94c3e"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One request to the API of a platform; it is made when a sender gets it."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names are in lower case. What `WebhookPlatform.authorize` adds is not here yet."""
    body: bytes = b""
    name: str = ""
    """The name of the call in logs and errors, such as `chat.postMessage`."""
    chat: str = ""
    """The chat that a pause for this call holds up; empty: the call belongs to no chat."""
    shows: bool = True
    """Whether people see a message by this call; False for an upload, a sign of typing or a token."""
    plain: ApiCall | None = None
    """The same call without markup, which is made if the platform refuses the markup."""
    then: Callable[[PlatformAnswer], ApiCall] | None = None
    """Makes the call that follows this one from its answer: a message that names an uploaded file."""

    def __repr__(self) -> str:
        """Return a short form without the body and without secrets in the address."""
        return f"ApiCall({self.method} {self.url.partition('?')[0]}, {self.name or 'unnamed'})"

    @classmethod
    def of_json(
        cls,
        url: str,
        value: object,
        *,
        name: str = "",
        chat: str = "",
        method: str = "POST",
        headers: Mapping[str, str] = NO_HEADERS,
        shows: bool = True,
        plain: ApiCall | None = None,
    ) -> ApiCall:
        """Return a call with a body in JSON."""
        kind = {"content-type": "application/json; charset=utf-8"}
        return cls(
            url=url,
            method=method,
            headers={**kind, **headers},
            body=msgspec.json.encode(value),
            name=name,
            chat=chat,
            shows=shows,
            plain=plain,
        )

    @classmethod
    def of_form(
        cls,
        url: str,
        fields: Mapping[str, str] | Sequence[tuple[str, str]],
        *,
        name: str = "",
        chat: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        shows: bool = True,
    ) -> ApiCall:
        """Return a call with a form; a name may stand in it several times."""
        kind = {"content-type": "application/x-www-form-urlencoded"}
        body = urlencode(fields).encode("ascii")
        return cls(url=url, headers={**kind, **headers}, body=body, name=name, chat=chat, shows=shows)

    @classmethod
    def of_upload(
        cls,
        url: str,
        fields: Mapping[str, str],
        files: Mapping[str, FileToSend],
        *,
        name: str = "",
        chat: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> ApiCall:
        """Return a call with a form that has files."""
        parts = [_form_part(f'name="{field_name}"', value.encode()) for field_name, value in fields.items()]
        for field_name, file in files.items():
            # A quotation mark or a line break would end the header early.
            quoted = "".join("_" if one in '"\\\r\n' else one for one in file.name)
            named = f'name="{field_name}"; filename="{quoted}"'
            parts.append(_form_part(named, file.content, file.media_type))
        body = b"".join([*parts, f"--{_BOUNDARY}--\r\n".encode()])
        kind = {"content-type": f"multipart/form-data; boundary={_BOUNDARY}"}
        return cls(url=url, headers={**kind, **headers}, body=body, name=name, chat=chat, shows=False)


@dataclass(frozen=True, slots=True)
class FileToSend:
    """A file that a call uploads."""

    name: str
    content: bytes
    media_type: str = "application/octet-stream"


def _form_part(named: str, content: bytes, media_type: str = "") -> bytes:
    kind = f"content-type: {media_type}\r\n" if media_type else ""
    head = f"--{_BOUNDARY}\r\ncontent-disposition: form-data; {named}\r\n{kind}\r\n"
    return head.encode() + content + b"\r\n"


@dataclass(frozen=True, slots=True)
class PlatformAnswer:
    """The answer of a platform's API. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether the status says that the call was carried out."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def json(self) -> Any:
        """The body as JSON; None if it is none, as in the answer of a proxy."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def member(self, *path: str | int) -> Any:
        """Return a member deep in the JSON of the body; None if it is not there."""
        value = self.json
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def retry_after(self, now: datetime) -> float | None:
        """Return the seconds of the header `retry-after`, which may be a number or a date."""
        told = self.headers.get("retry-after", "").strip()
        try:
            seconds = float(told)
        except ValueError:
            return _seconds_until(told, now)
        return seconds if math.isfinite(seconds) and seconds >= 0 else None

    @property
    def problem(self) -> str:
        """The status and the beginning of the body, for an error."""
        said = " ".join(self.body[:MOST_OF_PROBLEM].decode("utf-8", "replace").split())
        return f"answered with status {self.status}{': ' * bool(said)}{said}"


def _seconds_until(date: str, now: datetime) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(date) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):  # no date, or one without a zone
        return None


# What became of a call


@dataclass(frozen=True, slots=True)
class CallSucceeded:
    """The call was carried out."""

    message_id: str | None = None
    """The id of the message that it shows, if it shows one."""


@dataclass(frozen=True, slots=True)
class CallLimited:
    """The call was certainly not carried out: the platform asks for a pause."""

    after: float | None = None
    """The seconds of the pause, if the platform names them."""
    everywhere: bool = False
    """Whether the pause is for the whole account, and not only for the chat."""


@dataclass(frozen=True, slots=True)
class CallUnavailable:
    """The call was certainly not carried out, and may be later."""

    problem: str


@dataclass(frozen=True, slots=True)
class CallUnauthorized:
    """The call was certainly not carried out: the platform does not accept the token.

    If the platform's part can get a new one, the call is made once more with that.
    """

    problem: str


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The call was certainly not carried out, and never will be."""

    problem: str
    markup: bool = False
    """Whether only the markup is refused, so that `ApiCall.plain` may succeed."""


@dataclass(frozen=True, slots=True)
class CallSuperseded:
    """The call was certainly not carried out, and another one does what it was for."""

    call: ApiCall


@dataclass(frozen=True, slots=True)
class CallUnknown:
    """Nobody knows whether the call was carried out."""

    problem: str


CallOutcome: TypeAlias = (
    CallSucceeded
    | CallLimited
    | CallUnavailable
    | CallUnauthorized
    | CallRefused
    | CallSuperseded
    | CallUnknown
)


def outcome_of_status(
    answer: PlatformAnswer, now: datetime, *, message_id: str | None = None, everywhere: bool = False
) -> CallOutcome:
    """Return what the status of an answer says about a call, by the rules that most platforms share.

    An answer with 5xx may come from a machine in front of the platform, after the platform did the work; only
    503 says that it did not begin.
    """
    problem, after = answer.problem, answer.retry_after(now)
    outcome: CallOutcome
    match answer.status:
        case _ if answer.is_success:
            outcome = CallSucceeded(message_id)
        case HTTPStatus.TOO_MANY_REQUESTS:
            outcome = CallLimited(after, everywhere)
        case HTTPStatus.SERVICE_UNAVAILABLE:
            outcome = CallUnavailable(problem) if after is None else CallLimited(after, everywhere=True)
        case HTTPStatus.UNAUTHORIZED:
            outcome = CallUnauthorized(problem)
        case HTTPStatus.REQUEST_TIMEOUT:  # it may have been carried out after the wait for it ended
            outcome = CallUnknown(problem)
        case status if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            outcome = CallRefused(problem)
        case _:
            outcome = CallUnknown(problem)
    return outcome
