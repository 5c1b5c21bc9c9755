"""The port to a homeserver: what a client library has to do for the adapter, and how calls fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol, cast
from urllib.parse import quote

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.matrix.encryption import RoomEncryption

CLIENT_API: Final = "/_matrix/client/v3"
MEDIA_DOWNLOAD: Final = "/_matrix/client/v1/media/download"
MEDIA_UPLOAD: Final = "/_matrix/media/v3/upload"
MXC: Final = "mxc://"
"""The beginning of the address of a file on a homeserver."""


class MatrixApi(Protocol):
    """A client of the client-server API with the token of one account."""

    @property
    def encryption(self) -> RoomEncryption | None:
        """The encryption with the keys of the client's device; None: it has none."""
        ...

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
        patience: float = 60,
    ) -> Any:
        """Call an endpoint, and return its answer as JSON has it; give up after *patience* seconds.

        Raise `MatrixApiError` for an answer that refuses, `HomeserverNotReachedError` if nothing was sent,
        and any other error if nobody knows. Do not try again: the adapter does.
        """
        ...

    async def upload(self, content: bytes, *, media_type: str, name: str) -> str:
        """Keep a file on the homeserver, and return its address."""
        ...

    async def download(self, path: str, *, most: int) -> bytes:
        """Return a file; raise `MatrixApiError`, or `InvalidInputError` if it has more than *most* bytes."""
        ...

    async def hand_on(self, answer: Mapping[str, Any]) -> None:
        """Tell the rest of the program what a sync has brought."""
        ...


class MatrixApiError(Exception):
    """The homeserver refuses a call."""

    def __init__(
        self,
        status: int,
        errcode: str,
        error: str,
        *,
        retry_after: float | None = None,
        soft_logout: bool = False,
    ) -> None:
        self.status = status
        self.errcode = errcode
        """The code of the refusal; empty: something in front of the homeserver has answered."""
        self.error = error
        self.retry_after = retry_after
        self.soft_logout = soft_logout
        """Whether the same device may log in again."""
        super().__init__(f"{error} ({' '.join(filter(None, (errcode, str(status))))})")


class HomeserverNotReachedError(Exception):
    """There was no connection, so the call was not made."""


def api_path(*parts: str) -> str:
    """Return the path of an endpoint; what stands between slashes may be any text."""
    return "/".join((CLIENT_API, *(quote(part, safe="") for part in parts)))


def download_path(mxc: str) -> str:
    """Return the path of a file; refuse what is no address of one."""
    server, _, media_id = mxc.removeprefix(MXC).partition("#")[0].partition("/")
    if not mxc.startswith(MXC) or not server or not media_id:
        problem = f"{mxc[:40]!r} is no file of Matrix"
        raise InvalidInputError(problem)
    return f"{MEDIA_DOWNLOAD}/{quote(server, safe='')}/{quote(media_id, safe='')}"


def result_of(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """Return what an answer holds, or raise its refusal; `ValueError` if it is no answer of a homeserver."""
    try:
        answer = json.loads(body)
    except ValueError:
        if 200 <= status < 300:  # noqa: PLR2004 -- these statuses are success
            raise
        answer = None
    if 200 <= status < 300:  # noqa: PLR2004 -- the same
        return answer
    told = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    errcode, error = told.get("errcode"), told.get("error")
    raise MatrixApiError(
        status,
        errcode if isinstance(errcode, str) else "",
        error if isinstance(error, str) else f"an answer that is none of a homeserver: {body[:80]!r}",
        retry_after=_pause(told, headers),
        soft_logout=told.get("soft_logout") is True,
    )


def _pause(told: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a homeserver asks to wait."""
    milliseconds = told.get("retry_after_ms")
    if isinstance(milliseconds, int | float) and milliseconds >= 0:
        return milliseconds / 1000
    seconds = headers.get("Retry-After", "")
    return float(seconds) if seconds.isdigit() else None
