"""`AiogramAdapter`: the door for bots that are made with aiogram.

A message goes to the gateway unless a handler of the bot's dispatcher takes it; all other updates go to the
dispatcher. Do not call `Dispatcher.start_polling` as well: it confirms updates whatever became of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions.adapters.group_talk import Groups, GroupTalk
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.telegram.adapter import TelegramAdapter
from gateway_sessions.integrations.telegram.bot_api import BotApiError, NotSentError, Upload
from gateway_sessions.integrations.telegram.updates import ALLOWED_UPDATES, Update

try:
    from aiogram import Bot, Dispatcher, exceptions
    from aiogram.dispatcher.event.bases import UNHANDLED
    from aiogram.methods import TelegramMethod
    from aiogram.types import BufferedInputFile
    from aiohttp import ClientConnectorError, ConnectionTimeoutError
except ModuleNotFoundError as _error:
    if _error.name not in ("aiogram", "aiohttp"):
        raise
    _problem = "AiogramAdapter needs aiogram: pip install 'gateway-sessions[aiogram]'"
    raise InvalidInputError(_problem) from _error

CLOSE_SECONDS: Final = 5.0
"""The limit for the dispatcher's handlers of the end."""

_CODES: Final[dict[type[Exception], int]] = {
    exceptions.TelegramBadRequest: 400,
    exceptions.TelegramUnauthorizedError: 401,
    exceptions.TelegramForbiddenError: 403,
    exceptions.TelegramNotFound: 404,
    exceptions.TelegramConflictError: 409,
    exceptions.TelegramEntityTooLarge: 413,
}


class AiogramAdapter(TelegramAdapter):
    """An adapter for a bot of aiogram."""

    def __init__(
        self,
        bot: Bot,
        *,
        dispatcher: Dispatcher | None = None,
        name: str = "",
        groups: Groups[Update] = GroupTalk.MENTION,
        unreadable: str | Path | None = None,
    ) -> None:
        """With a *dispatcher*, its handlers see each update first."""
        super().__init__(
            AiogramApi(bot),
            name=name,
            groups=groups,
            handle=self._handle if dispatcher is not None else None,
            updates=ALLOWED_UPDATES,
            unreadable=unreadable,
        )
        self._aiogram_bot = bot
        self._dispatcher = dispatcher

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Poll within the block, and tell the dispatcher's handlers of start and end."""
        dispatcher, bot = self._dispatcher, self._aiogram_bot
        if dispatcher is None:
            async with super().connect(submit):
                yield
            return
        self.updates: Sequence[str] = sorted({*ALLOWED_UPDATES, *dispatcher.resolve_used_update_types()})
        known = {"dispatcher": dispatcher, "bots": (bot,), "bot": bot, **dispatcher.workflow_data}
        await dispatcher.emit_startup(**known)
        try:
            async with super().connect(submit):
                yield
        finally:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):  # whoever leaves the block may be cancelled
                await dispatcher.emit_shutdown(**known)

    async def _handle(self, update: Update) -> bool:
        assert self._dispatcher is not None  # noqa: S101 -- it is not called without one
        answer = await self._dispatcher.feed_raw_update(self._aiogram_bot, dict(update))
        if isinstance(answer, TelegramMethod):  # a handler may return a call
            await self._dispatcher.silent_call_request(self._aiogram_bot, answer)  # pyright: ignore[reportUnknownArgumentType]
        return answer is not UNHANDLED


class AiogramApi:
    """The Bot API through a bot of aiogram, with its session, proxy and middlewares."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    async def call(self, method: str, parameters: Mapping[str, Any]) -> Any:
        """Call a method, and return its result as JSON has it."""
        given = {name: _as_input(value) for name, value in parameters.items()}
        try:
            return await self._bot(_method_class(method)(**given))
        except exceptions.TelegramRetryAfter as error:
            raise BotApiError(429, error.message, retry_after=error.retry_after) from error
        except exceptions.TelegramMigrateToChat as error:
            raise BotApiError(400, error.message, migrated_to=error.migrate_to_chat_id) from error
        except exceptions.TelegramNetworkError as error:
            if isinstance(error.__cause__, ClientConnectorError | ConnectionTimeoutError):
                raise NotSentError(str(error)) from error
            raise
        except exceptions.TelegramAPIError as error:
            raise BotApiError(_CODES.get(type(error), 500), error.message) from error

    async def download(self, file_path: str, *, most: int) -> bytes:
        """Return the content of a file."""
        received = await self._bot.download_file(file_path)
        content = received.read() if received is not None else b""
        if len(content) > most:
            problem = f"the file has more than {most} bytes"
            raise InvalidInputError(problem)
        return content


@cache
def _method_class(name: str) -> type[TelegramMethod[Any]]:
    """Return a method of the Bot API whose parameters and result are not looked at by aiogram."""
    members = {"__module__": __name__, "__returning__": Any, "__api_method__": name}
    return type(name, (TelegramMethod,), members)


def _as_input(value: object) -> object:
    return BufferedInputFile(value.content, value.name) if isinstance(value, Upload) else value
