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


class EndpointTable:
    """Finds the endpoint of a path."""

    def __init__(self, endpoints: Iterable[WebhookEndpoint]) -> None:
        """`InvalidInputError` if two endpoints have one path, or there is none."""
        self._endpoints: dict[str, WebhookEndpoint] = {}
        for one in endpoints:
            if self._endpoints.setdefault(one.path, one) is not one:
                problem = f"two webhooks have the path {one.path!r}: give one of them another path="
                raise InvalidInputError(problem)
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


def checked_path(path: str) -> str:
    """Return a path of the settings without a slash at its end; `InvalidInputError` if it is none."""
    if not path.startswith("/") or "?" in path or "#" in path or not path.isascii() or not path.isprintable():
        problem = f"path = {path!r} must begin with a slash, and have no query"
        raise InvalidInputError(problem)
    return path.rstrip("/") or "/"
