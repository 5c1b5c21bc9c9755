"""`MattermostAdapter`: one bot on a server, which fetches posts and moves on when they are safe.

A server tells what happens through a socket that repeats nothing. So the adapter asks which channels have
news, and fetches what is new in them: nothing can be missed, and people wait for a second longer.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters.file_sizes import check_size
from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.adapters.webhooks.api_calls import FileToSend
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.markdown.dialects import MATTERMOST
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageError,
)
from gateway_sessions.integrations.mattermost.channel_reader import PAGE, ChannelReader
from gateway_sessions.integrations.mattermost.objects import MattermostUser
from gateway_sessions.integrations.mattermost.posts import (
    FILE,
    MattermostIdentity,
    PostRules,
    RawPost,
)
from gateway_sessions.integrations.mattermost.sending import (
    key_hash,
    post_that_shows,
    text_of,
)
from gateway_sessions.integrations.mattermost.server_api import MattermostApi
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""The pause between two looks for news: one short request, and the longest that people wait for it."""
LONGEST_PAUSE: Final = 30.0
"""The longest pause after a look that failed. Posts wait for ever; people wait for an answer."""
PENDING_LIVES: Final = timedelta(seconds=30)
"""A server knows the pending id of a post for so long; then the post itself is looked for."""
PAGES_TO_LOOK: Final = 20
"""So many pages of a channel are looked through for a post of which nobody knows whether it was made."""
MOST_BYTES: Final = 100 << 20
"""The largest file that servers take, unless they are set up otherwise."""


class MattermostAdapter:
    """An adapter for one bot on a Mattermost server."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        name: str = "",
        groups: Groups[RawPost] = GroupTalk.MENTION,
        threads: bool = True,
        look_seconds: float = LOOK_SECONDS,
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*url* is the server's address, the token is the bot's.

        With *threads*, a post in a channel begins a thread, which is a conversation of its own. What cannot
        be read is kept in the folder *unreadable*, or else only logged.
        """
        self.name = name
        self.platform: str = Platform.MATTERMOST
        self.capabilities: AdapterCapabilities = AdapterCapabilities(
            receives=ReceiveClass.CURSOR,
            edit=True,
            typing=True,
            idempotent_for=PENDING_LIVES,
            finds=True,
            dialect=MATTERMOST,
            max_length=MATTERMOST.limit,
            length_unit=LengthUnit.CHARACTERS,
        )
        self.bot: MattermostIdentity | None = None
        """The bot, once the server has told who it is."""
        self._api = MattermostApi(url, token)
        self._groups = as_group_rules(groups)
        self._threads = threads
        self._look_seconds = look_seconds
        self._unreadable = unreadable
        self._clock = clock or SystemClock()
        self._memory: AdapterMemory = ProcessMemory()
        self._reader: ChannelReader | None = None

    def remember_in(self, memory: AdapterMemory) -> None:
        """Keep the places in the channels in this memory, so that a restart goes on where they are."""
        self._memory = memory
        self._reader = None

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Look for news within the block; `AdapterUnavailableError` if the server does not know the bot.

        What was said before the first start of all is not handed over.
        """
        async with self._api.open():
            try:
                reader = await self._begin()
            except (DeliveryRefusedError, RateLimitedError, OSError, msgspec.MsgspecError) as error:
                raise self._unavailable(error) from error
            async with in_background(partial(self._look_forever, submit, reader)):
                yield

    async def _begin(self) -> ChannelReader:
        me = msgspec.convert(await self._api.get("users/me"), MattermostUser)
        self.bot = MattermostIdentity(me.id, me.username)
        if self._reader is None:  # a new connection goes on where the last one was broken
            rules = PostRules(self.bot, self.name, self._groups, self._threads)
            self._reader = ChannelReader(self, self._api, self._memory, rules, self._unreadable)
        await self._reader.begin()
        return self._reader

    def _unavailable(self, error: Exception) -> AdapterUnavailableError:
        if isinstance(error, AdapterUnavailableError):
            return error
        return AdapterUnavailableError(self.platform, f"cannot be reached ({error})")

    # In

    async def _look_forever(self, submit: Submit, reader: ChannelReader) -> None:
        pause = self._look_seconds
        while True:
            try:
                await reader.look(submit)
                pause = self._look_seconds
            except Exception as error:  # noqa: BLE001 -- whatever went wrong: the posts are still there
                self._log_failed_look(error)
                wait = error.retry_after if isinstance(error, RateLimitedError) else None
                pause = wait or min(2 * max(pause, LOOK_SECONDS), LONGEST_PAUSE)
            await self._clock.sleep(pause)

    def _log_failed_look(self, error: Exception) -> None:
        facts = {"platform": self.platform, "account": self.name}
        if isinstance(error, StorageError):
            facts["action"] = "update_not_stored"
            logger.error("posts could not be stored and are fetched again", exc_info=error, extra=facts)
        else:
            facts["action"] = "poll_failed"
            logger.warning("posts could not be fetched: %s", self._unavailable(error), extra=facts)

    # Out

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Make a post with the text and all files, and return its id."""
        draft = post_that_shows(target, message, idempotency_key)
        body = draft.body
        if draft.files:
            body = {**body, "file_ids": [await self._uploaded(target.chat_id, one) for one in draft.files]}
        made = await self._api.send("POST", "posts", body)
        return str(made["id"])

    async def _uploaded(self, channel_id: str, file: FileToSend | str) -> str:
        if isinstance(file, str):  # a file belongs to one post: another one gets a copy
            file = FileToSend("file", await self._api.download(file, most=MOST_BYTES))
        return await self._api.upload(channel_id, file)

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a post say something else; refuse if it is gone."""
        await self._api.send("PUT", f"posts/{message_id}/patch", {"message": text_of(message)})

    async def typing(self, target: ReplyTarget) -> None:
        """Show for some seconds that an answer is being made."""
        place = {"channel_id": target.chat_id, "parent_id": target.thread_id or ""}
        await self._api.send("POST", "users/me/typing", place)

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        """Look in the channel for the post that was made with that key; None: it was not made."""
        key, before = key_hash(idempotency_key), ""
        path = f"channels/{target.chat_id}/posts"
        for _ in range(PAGES_TO_LOOK):
            query = {"per_page": str(PAGE), **({"before": before} if before else {})}
            page: dict[str, Any] = await self._api.get(path, query)
            for post_id in page["order"]:
                if _is_sent_as(page["posts"][post_id], key):
                    return str(post_id)
                if post_id == target.reply_to:  # an answer stands behind what it answers
                    return None
            if len(page["order"]) < PAGE:
                return None
            before = page["order"][-1]
        raise DeliveryRefusedError(self.platform, "the post is too far back to be looked for")

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent; `InvalidInputError` if it is too large."""
        if not attachment.url.startswith(FILE):
            problem = f"{attachment.url[:40]!r} is no file of Mattermost"
            raise InvalidInputError(problem)
        check_size(attachment, most)
        return await self._api.download(attachment.url.removeprefix(FILE), most=most)


def _is_sent_as(raw: RawPost, key: str) -> bool:
    match raw.get("props"):
        case {"gateway_sessions_sent_as": found}:
            return bool(found == key)
        case _:
            return False
