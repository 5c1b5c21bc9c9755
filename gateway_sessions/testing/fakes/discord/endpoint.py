"""The webhook at which an application gets its interactions in place of the gateway, with signatures."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio

from gateway_sessions.adapters._http import NotConnectedError, Url, post
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.discord.rest import ANSWER_SECONDS, FakeInteraction
from gateway_sessions.testing.fakes.platform_server import LOOK_SECONDS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

TakeResponse = Callable[[FakeInteraction, dict[str, Any]], None]


class InteractionsEndpoint:
    """Posts interactions to the webhook of an application, once it has one."""

    def __init__(self, clock: Clock, take: TakeResponse) -> None:
        self.url: str = ""
        """The address of the webhook; empty: interactions come through the gateway."""
        self.statuses: list[int] = []
        """What the webhook has answered; 0: nothing in time."""
        self._clock = clock
        self._take = take
        self._owed: list[tuple[FakeInteraction, dict[str, Any]]] = []
        self._last: tuple[FakeInteraction, dict[str, Any]] | None = None

    @property
    def public_key(self) -> str:
        """The key by which signatures are checked, in hexadecimal digits."""
        return self._key.public_key().public_bytes_raw().hex()

    def add(self, interaction: FakeInteraction, event: dict[str, Any]) -> None:
        """Post an interaction soon."""
        self._last = interaction, event
        self._owed.append(self._last)

    def add_again(self) -> None:
        """Post the last interaction once more, as a machine in front of the webhook may do."""
        assert self._last is not None, "nothing was posted"
        self._owed.append(self._last)

    def signed(self, body: bytes, *, at: int | None = None) -> dict[str, str]:
        """Return the headers of a request with that body, signed now or at a time in seconds."""
        timestamp = str(int(self._clock.now().timestamp()) if at is None else at)
        signature = self._key.sign(timestamp.encode() + body).hex()
        kind = {"content-type": "application/json"}
        return {**kind, "x-signature-ed25519": signature, "x-signature-timestamp": timestamp}

    async def post_interactions(self) -> None:
        """Post interactions one after the other, each once."""
        while True:
            if not self._owed:
                await anyio.sleep(LOOK_SECONDS)
                continue
            interaction, event = self._owed.pop(0)
            body = json.dumps(event).encode()
            status = 0
            try:
                with anyio.fail_after(ANSWER_SECONDS):
                    answer = await post(Url.parse(self.url), self.signed(body), body, tls=None)
                status = answer.status
                if status == 200:
                    self._take(interaction, json.loads(answer.body))
            except (NotConnectedError, OSError, EOFError, TimeoutError):
                pass  # the application did not respond
            self.statuses.append(status)
            interaction.has_failed = not interaction.is_answered

    @cached_property
    def _key(self) -> Ed25519PrivateKey:
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 -- only this needs it
                Ed25519PrivateKey,
            )
        except ModuleNotFoundError as error:
            problem = "signatures of interactions need cryptography: pip install 'gateway-sessions[webhooks]'"
            raise InvalidInputError(problem) from error
        return Ed25519PrivateKey.generate()
