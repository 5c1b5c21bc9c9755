"""`PtbAdapter`: the door for bots that are made with python-telegram-bot.

A message goes to the gateway unless a handler of the bot's application takes it; all other updates go to the
application. Build it with `.updater(None)`: its updater confirms updates before anybody has stored them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions.adapters.group_talk import Groups, GroupTalk
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.telegram.adapter import POLL_SECONDS, TelegramAdapter
from gateway_sessions.integrations.telegram.bot_api import BotApiError, NotSentError, Upload
from gateway_sessions.integrations.telegram.updates import Update

try:
    from httpx import ConnectError, ConnectTimeout, PoolTimeout
    from telegram import Bot, InputFile
    from telegram import Update as PtbUpdate
    from telegram import error as errors
    from telegram.ext import Application
except ModuleNotFoundError as _error:
    if _error.name not in ("telegram", "httpx"):
        raise
    _problem = "PtbAdapter needs python-telegram-bot: pip install 'gateway-sessions[ptb]'"
    raise InvalidInputError(_problem) from _error

CLOSE_SECONDS: Final = 5.0
"""The limit for the end of the application: its handlers may still work."""
SLACK_SECONDS: Final = 10.0
"""An answer to a poll may come so much later than Telegram was asked for."""

_CODES: Final[dict[type[Exception], int]] = {
    errors.BadRequest: 400,
    errors.InvalidToken: 401,
    errors.Forbidden: 403,
    errors.EndPointNotFound: 404,
    errors.Conflict: 409,
}


class PtbAdapter(TelegramAdapter):
    """An adapter for a bot of python-telegram-bot."""

    def __init__(
        self,
        application: Application[Any, Any, Any, Any, Any, Any],
        *,
        name: str = "",
        groups: Groups[Update] = GroupTalk.MENTION,
        unreadable: str | Path | None = None,
    ) -> None:
        """The handlers of the *application* see each update first."""
        if application.updater is not None:
            problem = "the application has an updater, which loses messages: build it with .updater(None)"
            raise InvalidInputError(problem)
        super().__init__(
            PtbApi(application.bot),
            name=name,
            groups=groups,
            handle=self._handle,
            updates=PtbUpdate.ALL_TYPES,
            unreadable=unreadable,
        )
        self._application = application

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Poll within the block; the application runs as well, unless the program runs it already."""
        if self._application.running:
            async with super().connect(submit):
                yield
            return
        await self._application.initialize()
        try:
            await self._application.start()
            async with super().connect(submit):
                yield
        finally:
            # Whoever leaves the block may be cancelled; the connections are closed all the same.
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                if self._application.running:
                    await self._application.stop()
                await self._application.shutdown()

    async def _handle(self, update: Update) -> bool:
        read = PtbUpdate.de_json(dict(update), self._application.bot)
        handlers = [handler for group in self._application.handlers.values() for handler in group]
        if not any(handler.check_update(read) not in (None, False) for handler in handlers):
            return False
        await self._application.process_update(read)
        return True


class PtbApi:
    """The Bot API through a bot of python-telegram-bot, with its requests and its proxy."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    async def call(self, method: str, parameters: Mapping[str, Any]) -> Any:
        """Call a method, and return its result as JSON has it."""
        given = {name: _as_input(value) for name, value in parameters.items()}
        # The library warns of methods that it knows; Telegram does not look at the case of a letter.
        endpoint = method[0].upper() + method[1:]
        try:
            if method != "getUpdates":
                return await self._bot.do_api_request(endpoint, api_kwargs=given)
            patience = POLL_SECONDS + SLACK_SECONDS
            return await self._bot.do_api_request(endpoint, api_kwargs=given, read_timeout=patience)
        except errors.RetryAfter as error:
            raise BotApiError(429, str(error), retry_after=_seconds(error)) from error
        except errors.ChatMigrated as error:
            raise BotApiError(400, str(error), migrated_to=error.new_chat_id) from error
        except errors.TelegramError as error:
            # A `RuntimeError` comes from a bot that was shut down.
            if isinstance(error.__cause__, ConnectError | ConnectTimeout | PoolTimeout | RuntimeError):
                raise NotSentError(str(error)) from error
            if (code := _CODES.get(type(error))) is None:
                raise
            raise BotApiError(code, error.message) from error

    async def download(self, file_path: str, *, most: int) -> bytes:
        """Return the content of a file."""
        content = await self._bot.request.retrieve(f"{self._bot.base_file_url}/{file_path}")
        if len(content) > most:
            problem = f"the file has more than {most} bytes"
            raise InvalidInputError(problem)
        return content


def _as_input(value: object) -> object:
    return InputFile(value.content, filename=value.name) if isinstance(value, Upload) else value


def _seconds(error: errors.RetryAfter) -> float:
    """Return the pause that Telegram asks for; the public attribute warns that its type will change."""
    pause: timedelta = error._retry_after  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return pause.total_seconds()
