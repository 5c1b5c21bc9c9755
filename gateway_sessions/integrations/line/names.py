"""`LineNames`: the names of people and groups, which LINE's events do not carry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import quote

import anyio
import msgspec

from gateway_sessions.adapters.known_names import KnownNames, Turns
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.webhooks import ApiCall, PlatformAnswer
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import InboundMessage, Receipt
from gateway_sessions.errors import AdapterError, DeliveryRefusedError
from gateway_sessions.ports import Clock

NAME_SECONDS: Final = 2.0
"""The longest wait for the names of a message."""
_PLACES: Final = {"C": "group", "R": "room"}
"""What the first letter of a chat's id says; that of a person is U."""

Ask: TypeAlias = Callable[[ApiCall], Awaitable[PlatformAnswer]]
"""This function makes a call, and raises what its failure means."""


class LineNames:
    """Hands messages over with names, each of which is asked for once an hour."""

    def __init__(self, api_url: str, ask: Ask, clock: Clock) -> None:
        self._bot_url = f"{api_url}/v2/bot"
        self._ask = ask
        self._names = KnownNames(clock)
        self._turns = Turns()

    async def submit(self, submit: Submit, message: InboundMessage) -> Receipt:
        """Hand a message over with its names, behind those that came before it in its chat."""
        # Webhooks are read side by side; without turns, one that asks for a name would be overtaken.
        async with self._turns.of(message.source.chat_id):
            named = msgspec.structs.replace(message, source=await self._named(message.source))
            return await submit(named)

    async def _named(self, source: SessionSource) -> SessionSource:
        """Return a source with the names that can be had in time; a message is never held up by a name."""
        chat, user = source.chat_id, source.user_id or ""
        place = _PLACES.get(chat[:1], "")
        person = f"{chat}/{user}"
        member = f"{place}/{quote(chat)}/member" if place else "profile"
        with anyio.move_on_after(NAME_SECONDS):
            if user:
                await self._learn(person, f"{member}/{quote(user)}", "displayName")
            if place == "group":  # a room has no name
                await self._learn(chat, f"group/{quote(chat)}/summary", "groupName")
        return replace(
            source,
            user_name=self._names.name_of(person) or source.user_name,
            chat_name=self._names.name_of(chat) or source.chat_name,
        )

    async def _learn(self, who: str, path: str, member: str) -> None:
        call = ApiCall(url=f"{self._bot_url}/{path}", method="GET", name="name", shows=False)
        await self._names.learn(who, partial(self._asked_name, call, member))

    async def _asked_name(self, call: ApiCall, member: str) -> str | None:
        try:
            return str((await self._ask(call)).member(member) or "")
        except DeliveryRefusedError:
            return ""  # LINE does not tell the name of everybody
        except (AdapterError, OSError):
            return None  # a later message asks again
