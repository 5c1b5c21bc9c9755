"""`WebhookEndpoint`: a path and what answers there, for an ASGI application and for a port of our own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Protocol, runtime_checkable

from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.errors import InvalidInputError


@runtime_checkable
class WebhookEndpoint(Protocol):
    """An endpoint answers the requests of one platform's account."""

    @property
    def path(self) -> str:
        """The path, which begins with a slash."""
        ...

    @property
    def max_body(self) -> int:
        """The most bytes of a request's body."""
        ...

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request for that path; it raises nothing."""
        ...


@runtime_checkable
class WebhookListener(WebhookEndpoint, Protocol):
    """An endpoint that may have a port of its own."""

    @property
    def listens_itself(self) -> bool:
        """Return whether it has such a port; if not, somebody else listens for it."""
        ...


@runtime_checkable
class SharingEndpoint(WebhookEndpoint, Protocol):
    """An endpoint that may have its path in common with others, each of which takes its part of a request."""

    def share_path(self, others: Sequence[WebhookEndpoint]) -> None:
        """Leave to *others* what is theirs; `InvalidInputError` if a path cannot be shared with them."""
        ...


class _SharedPath:
    """Several endpoints at one path: a request is taken when all of them have taken their parts."""

    def __init__(self, endpoints: Sequence[WebhookEndpoint]) -> None:
        self._endpoints = endpoints
        self.path: str = endpoints[0].path
        self.max_body: int = max(one.max_body for one in endpoints)

    async def answer(self, request: Request) -> Response:
        """Return the answer of the first endpoint that has not taken its part, else any; it raises nothing.

        What is delivered again for one of them is known again to the others.
        """
        answers = [await one.answer(request) for one in self._endpoints]
        return next((one for one in answers if one.status >= HTTPStatus.BAD_REQUEST), answers[-1])


class EndpointTable:
    """Finds the endpoint of a path."""

    def __init__(self, endpoints: Iterable[WebhookEndpoint]) -> None:
        """`InvalidInputError` if two endpoints cannot share their path, or there is none."""
        by_path: dict[str, list[WebhookEndpoint]] = {}
        for one in endpoints:
            by_path.setdefault(one.path, []).append(one)
        self._endpoints: dict[str, WebhookEndpoint] = {
            path: found[0] if len(found) == 1 else _shared(path, found) for path, found in by_path.items()
        }
        if not self._endpoints:
            problem = "there is no webhook to listen for"
            raise InvalidInputError(problem)

    @property
    def paths(self) -> Sequence[str]:
        """The paths, in the order of their endpoints."""
        return tuple(self._endpoints)

    @property
    def max_body(self) -> int:
        """The most bytes of a body for any of the paths."""
        return max(one.max_body for one in self._endpoints.values())

    def find(self, path: str) -> WebhookEndpoint | None:
        """Return the endpoint of a path, with or without a slash at its end."""
        return self._endpoints.get(path) or self._endpoints.get(path.rstrip("/") or "/")

    async def answer(self, request: Request) -> Response:
        """Return the answer of the endpoint that a request is for; status 404 if there is none."""
        endpoint = self.find(request.path)
        if endpoint is None:
            return Response(HTTPStatus.NOT_FOUND)
        if len(request.body) > endpoint.max_body:
            return Response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return await endpoint.answer(request)


def _shared(path: str, endpoints: Sequence[WebhookEndpoint]) -> WebhookEndpoint:
    for one in endpoints:
        if not isinstance(one, SharingEndpoint):
            problem = f"two webhooks have the path {path!r}: give one of them another path="
            raise InvalidInputError(problem)
        one.share_path([other for other in endpoints if other is not one])
    return _SharedPath(endpoints)


def checked_path(path: str) -> str:
    """Return a path of the settings without a slash at its end; `InvalidInputError` if it is none."""
    if not path.startswith("/") or "?" in path or "#" in path or not path.isascii() or not path.isprintable():
        problem = f"path = {path!r} must begin with a slash, and have no query"
        raise InvalidInputError(problem)
    return path.rstrip("/") or "/"
