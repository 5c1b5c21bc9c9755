"""`TelegramAdapter`: one bot, whose updates are confirmed when they are safe, and not before.

The adapter polls by itself: the loops of client libraries confirm an update before anybody has stored it, or
although a handler failed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import msgspec

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters.file_sizes import check_size
from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import TELEGRAM
from gateway_sessions.core.notices.command_replies import CommandHelp
from gateway_sessions.core.queue.inbound import Attachment, InboundMessage
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import (
    AdapterError,
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageError,
)
from gateway_sessions.integrations.telegram.bot_api import BotApi, BotApiError, NotSentError
from gateway_sessions.integrations.telegram.objects import ApiMessage, ApiUser
from gateway_sessions.integrations.telegram.sending import (
    LONGEST_TEXT,
    SHOWN_ATTACHMENTS,
    BotCall,
    call_that_drafts,
    call_that_edits,
    calls_that_show,
    menu_of,
)
from gateway_sessions.integrations.telegram.updates import (
    ALLOWED_UPDATES,
    FILE,
    PRESS,
    BotIdentity,
    ReadingRules,
    Update,
    read_update,
)
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

POLL_SECONDS: Final = 30
"""The time that Telegram keeps a poll open; each costs one request."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""The pauses after a poll that failed. Updates wait for a day; people wait for an answer."""
TYPING: Final = "typing"
MOST_BYTES: Final = 20 << 20
"""The Bot API gives out no larger files."""
ADVICE: Final = {
    "rights": "make the bot an administrator of the chat, or let all members write there",
    "kicked": "add the bot to the chat again",
    "not a member": "add the bot to the chat",
}
"""Words of Telegram's refusals, and what to do then."""

HandleUpdate: TypeAlias = Callable[[Update], Awaitable[bool]]
"""This function is offered each update first, and returns whether it took it."""


class TelegramAdapter:
    """An adapter for one bot on Telegram."""

    def __init__(
        self,
        api: BotApi,
        *,
        name: str = "",
        groups: Groups[Update] = GroupTalk.MENTION,
        handle: HandleUpdate | None = None,
        updates: Sequence[str] = ALLOWED_UPDATES,
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*handle* may take updates before the gateway does, *updates* are the kinds that Telegram sends.

        What cannot be read is kept in the folder *unreadable*, or else only logged.
        """
        self.name = name
        self.platform: str = Platform.TELEGRAM
        self.capabilities: AdapterCapabilities = AdapterCapabilities(
            receives=ReceiveClass.CURSOR,
            edit=True,
            typing=True,
            buttons=True,
            dialect=TELEGRAM,
            max_length=LONGEST_TEXT,
            length_unit=LengthUnit.UTF16,
            attachments=SHOWN_ATTACHMENTS,
            hyphens_in_commands=False,
        )
        self.bot: BotIdentity | None = None
        """The bot, once Telegram has told who it is."""
        self._api = api
        self._groups = as_group_rules(groups)
        self._handle_first = handle
        self.updates: Sequence[str] = updates
        self._unreadable = unreadable
        self._clock = clock or SystemClock()
        self._moved: dict[int, int] = {}
        """The ids that groups have had, and those that they have now."""

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Poll within the block; `AdapterUnavailableError` if Telegram does not know the bot."""
        await self._introduce()
        async with in_background(partial(self._poll, submit)):
            yield

    async def _introduce(self) -> None:
        try:
            me = msgspec.convert(await self._api.call("getMe", {}), ApiUser)
            self.bot = BotIdentity(me.id, me.username)
        except Exception as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> AdapterUnavailableError:
        problem = f"cannot be reached ({error})"
        if isinstance(error, BotApiError) and error.code in (401, 404):
            problem = "does not know this token: ask @BotFather for a new one"
        elif isinstance(error, BotApiError) and error.code == 409:  # noqa: PLR2004 -- the status for a conflict
            problem = (
                "gives this bot's updates to somebody else: end the other program that polls with this "
                f"token, or delete its webhook ({error.description})"
            )
        return AdapterUnavailableError(self.platform, problem)

    # In

    async def _poll(self, submit: Submit) -> None:
        """Take updates in, and confirm with each poll those of the last one."""
        offset, pause = 0, FIRST_PAUSE
        while True:
            try:
                asked = {"offset": offset, "timeout": POLL_SECONDS, "allowed_updates": [*self.updates]}
                updates = await self._api.call("getUpdates", asked)
                offset, pause = await self._take_all(submit, updates, offset), FIRST_PAUSE
            except Exception as error:  # noqa: BLE001 -- whatever a library raises: the updates are still there
                wait = error.retry_after if isinstance(error, BotApiError) else None
                self._log_failed_poll(error)
                await self._clock.sleep(wait or pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _log_failed_poll(self, error: Exception) -> None:
        facts = {"action": "poll_failed", "platform": self.platform, "account": self.name}
        logger.warning("updates could not be fetched: %s", self._unavailable(error), extra=facts)

    async def _take_all(self, submit: Submit, updates: list[Update], offset: int) -> int:
        """Take updates in, those of one chat in their order; return the offset that confirms all in a row."""
        chats: dict[object, list[Update]] = defaultdict(list)
        for update in updates:
            chats[_chat_of(update)].append(update)
        failed: list[tuple[int, StorageError]] = []

        async def take_chat(of_chat: list[Update]) -> None:
            for update in of_chat:
                try:
                    await self._take(submit, update)
                except StorageError as error:
                    failed.append((int(update["update_id"]), error))
                    return

        async with anyio.create_task_group() as tasks:
            for of_chat in chats.values():
                tasks.start_soon(take_chat, of_chat)
        if failed:
            first, error = min(failed, key=lambda one: one[0])
            facts = {"action": "update_not_stored", "platform": self.platform, "account": self.name}
            logger.error("updates could not be stored and are fetched again", exc_info=error, extra=facts)
            await self._clock.sleep(FIRST_PAUSE)
            return max(first, offset)
        return max((int(update["update_id"]) + 1 for update in updates), default=offset)

    async def _take(self, submit: Submit, update: Update) -> None:
        """Hand over what an update brings; what nobody can read must not stop what comes behind it."""
        assert self.bot is not None  # noqa: S101 -- `connect` has asked
        if await self._is_handled(update):
            return
        try:
            message = read_update(update, ReadingRules(self.bot, self.name, self._groups))
            if message is not None:
                await submit(message)
                await self._end_press(message)
        except InvalidInputError as error:
            await self._set_aside(update, error)

    async def _end_press(self, message: InboundMessage) -> None:
        """Let a pressed button stop waiting; that is a hint and may fail."""
        if message.action is not None and message.message_id is not None:
            press = {"callback_query_id": message.message_id.removeprefix(PRESS)}
            with suppress(AdapterError, OSError):
                await self._call(BotCall("answerCallbackQuery", press))

    async def _is_handled(self, update: Update) -> bool:
        """Return whether a handler of the program's own took an update, well or badly."""
        if self._handle_first is None:
            return False
        try:
            return await self._handle_first(update)
        except Exception:  # a broken handler must not stop everybody
            facts = {"action": "handler_failed", "platform": self.platform, "account": self.name}
            logger.exception("a handler of an update failed", extra=facts)
            return True

    async def _set_aside(self, update: Update, error: InvalidInputError) -> None:
        if self._unreadable is not None:
            await put_aside(self._unreadable, update, error, adapter=self)
            return
        facts = {"action": "update_unreadable", "platform": self.platform, "account": self.name}
        logger.error("an update could not be read and is passed over", exc_info=error, extra=facts)

    # Out

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Send a message and return its id: that of its text, if it takes several."""
        ids = [await self._show(call) for call in calls_that_show(target, message)]
        return ids[0] if ids else None

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a message say something else."""
        try:
            await self._show(call_that_edits(target, message_id, message))
        except DeliveryRefusedError as refused:
            if "message is not modified" not in str(refused):
                raise

    async def typing(self, target: ReplyTarget) -> None:
        """Show for five seconds that an answer is being made."""
        place: dict[str, Any] = {"chat_id": target.chat_id, "action": TYPING}
        if target.thread_id is not None:
            place["message_thread_id"] = int(target.thread_id)
        await self._call(BotCall("sendChatAction", place))

    async def show_commands(self, commands: Sequence[CommandHelp]) -> None:
        """Put commands into the bot's menu."""
        await self._call(BotCall("setMyCommands", {"commands": menu_of(commands)}))

    def can_draft(self, target: ReplyTarget) -> bool:
        """Return whether a chat shows drafts: private ones do."""
        return target.chat_id.isdigit()

    async def draft(self, target: ReplyTarget, message: OutboundMessage, *, key: str) -> None:
        """Show how far a reply has come, for half a minute or until a message is sent."""
        await self._call(call_that_drafts(target, message, key))

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent; `InvalidInputError` if it is too large."""
        if not attachment.url.startswith(FILE):
            problem = f"{attachment.url[:40]!r} is no file of Telegram"
            raise InvalidInputError(problem)
        check_size(attachment, most)
        file = await self._call(BotCall("getFile", {"file_id": attachment.url.removeprefix(FILE)}))
        return await self._api.download(str(file["file_path"]), most=most)

    async def _show(self, call: BotCall) -> str:
        try:
            shown = await self._call(call)
        except DeliveryRefusedError as refused:
            if call.plain is None or "can't parse entities" not in str(refused):
                raise
            facts = {"action": "markup_refused", "platform": self.platform, "account": self.name}
            logger.warning("a text is sent without its markup: %s", refused, extra=facts)
            shown = await self._call(BotCall(call.method, call.plain))
        return str(shown["message_id"])

    async def _call(self, call: BotCall) -> Any:
        """Make a call, and raise what its failure means."""
        chat = call.parameters.get("chat_id")
        if chat in self._moved:
            call = call._replace(parameters={**call.parameters, "chat_id": self._moved[chat]})
        try:
            return await self._api.call(call.method, call.parameters)
        except NotSentError as error:
            raise AdapterUnavailableError(self.platform, f"cannot be reached ({error})") from error
        except BotApiError as error:
            if error.migrated_to is not None and isinstance(chat, int) and chat not in self._moved:
                self._moved[chat] = error.migrated_to
                return await self._call(call)
            raise self._failure(error) from error

    def _failure(self, error: BotApiError) -> Exception:
        match error.code:
            case 429:
                return RateLimitedError(self.platform, error.retry_after)
            case 401:
                return self._unavailable(error)
            case code if code < 500:  # noqa: PLR2004 -- the server's own failures begin there
                return DeliveryRefusedError(self.platform, _with_advice(error.description))
            case _:
                return ConnectionError(error.description)


def _with_advice(refusal: str) -> str:
    """Return a refusal of Telegram, and what to do if that is known."""
    to_do = next((to_do for word, to_do in ADVICE.items() if word in refusal), None)
    return f"{refusal}: {to_do}" if to_do else refusal


def _chat_of(update: Mapping[str, Any]) -> object:
    """Return the chat of a message; all other updates keep their order among each other."""
    message = update.get("message") or update.get("edited_message")
    try:
        return msgspec.convert(message, ApiMessage).chat.id
    except msgspec.ValidationError:
        return None
