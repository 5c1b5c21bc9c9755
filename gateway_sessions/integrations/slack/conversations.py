"""What an app of Slack asks and does: who people are, what was sent, files, and the status of the bot."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import msgspec
from cachetools import LRUCache

from gateway_sessions.adapters.file_sizes import check_size
from gateway_sessions.adapters.group_talk import Hearing, hearing_in_thread
from gateway_sessions.adapters.known_names import KnownNames, Turns
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.core.delivery.outbound_messages import ReplyTarget
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.queue.inbound import (
    Attachment,
    InboundMessage,
    MessageKind,
    Receipt,
    Rejected,
    RejectReason,
)
from gateway_sessions.errors import (
    AdapterError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
)
from gateway_sessions.integrations.slack.platform import SlackPlatform
from gateway_sessions.integrations.slack.reading import FILE, THREAD, UNDECIDED
from gateway_sessions.integrations.slack.sending import metadata_of
from gateway_sessions.ports import Clock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

logger: Final = logging.getLogger(__name__)

MOST_BYTES: Final = 20 << 20
"""The largest file that is fetched if nobody says otherwise."""
NAME_SECONDS: Final = 1.0
"""The longest wait for names: Slack waits three seconds for everything."""
MOST_MENTIONS: Final = 20
"""The names that one message asks for."""
THREADS: Final = 10_000
"""The threads of which it is remembered whether the bot takes part."""
MOST_PAGES: Final = 10
"""The pages that are read in search of a message: 2000 messages."""

_MENTION: Final = re.compile(r"<@([UW]\w+)>")

Ask: TypeAlias = Callable[[ApiCall], Awaitable[PlatformAnswer]]
"""This function makes a call, and raises what its failure means."""
Download: TypeAlias = Callable[[ApiCall, int], Awaitable[bytes]]
"""This function fetches a file of up to so many bytes, with the token."""


class SlackConversations:
    """Knows people, channels and threads of one workspace as far as messages need that."""

    def __init__(self, platform: SlackPlatform, ask: Ask, download: Download, clock: Clock) -> None:
        self._platform = platform
        self._ask = ask
        self._download = download
        self._names = KnownNames(clock)
        self._threads: LRUCache[tuple[str, str], bool] = LRUCache(THREADS)
        self._turns = Turns()
        self._told: set[str] = set()
        self._without_status: set[str] = set()

    # In

    async def submit(self, submit: Submit, message: InboundMessage) -> Receipt:
        """Hand a message over with the names in it, behind those that came before it in its thread."""
        # Messages are read side by side; without turns, one that asks for a name would be overtaken.
        async with self._turns.of(f"{message.source.chat_id} {message.source.thread_id}"):
            completed = await self._completed(message)
            if completed is None:
                return Rejected(reason=RejectReason.NOT_ADDRESSED, text="")
            return await submit(completed)

    async def _completed(self, message: InboundMessage) -> InboundMessage | None:
        """Return a message with names; None if its thread is not the bot's, and nothing is observed."""
        facts = dict(message.metadata)
        undecided = facts.pop(UNDECIDED, None)
        source = message.source
        thread = undecided or source.thread_id or facts.get(THREAD) or message.message_id or ""
        if undecided is not None:
            takes_part = await self._takes_part(source.chat_id, str(undecided))
            hearing = hearing_in_thread(takes_part=takes_part)
            if not self._platform.groups.keeps(hearing):
                return None
            message = msgspec.structs.replace(message, observed=hearing is Hearing.OVERHEARD)
        if message.kind is MessageKind.NEW and not message.observed:
            self._threads[source.chat_id, str(thread)] = True
        mentioned = dict.fromkeys(_MENTION.findall(message.text))
        users = [one for one in (source.user_id, *list(mentioned)[:MOST_MENTIONS]) if one]
        channels = [source.chat_id] if source.chat_type != "dm" else []
        names = await self._names_of(users, channels)
        text = _MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", message.text)
        named = replace(
            source,
            user_name=names.get(source.user_id or "") or source.user_name,
            chat_name=names.get(source.chat_id) or source.chat_name,
        )
        return msgspec.structs.replace(message, text=text, source=named, metadata=facts)

    async def _takes_part(self, channel: str, thread: str) -> bool:
        """Return whether the bot was mentioned in a thread, or has spoken there."""
        if (known := self._threads.get((channel, thread))) is not None:
            return known
        own = self._platform.bot.user_id
        target = ReplyTarget(platform=Platform.SLACK, chat_id=channel, thread_id=thread)
        found = False
        try:
            async for message in self._said_in(target):
                if message.get("user") == own or f"<@{own}" in str(message.get("text")):
                    found = True
                    break
        except DeliveryRefusedError as refused:
            self._tell_once(f"threads cannot be read: {refused.problem}")
        self._threads[channel, thread] = found
        return found

    async def _names_of(self, users: Iterable[str], channels: Iterable[str]) -> dict[str, str]:
        """Return the names that can be had in time; a message is never held up by a name."""
        bot = self._platform.bot
        with anyio.move_on_after(NAME_SECONDS):
            for user in users:
                await self._learn_name(user, "users.info", "user")
            for channel in channels:
                await self._learn_name(channel, "conversations.info", "channel")
        found = {one: name for one in (*users, *channels) if (name := self._names.name_of(one))}
        return {bot.user_id: bot.name, **found}

    async def _learn_name(self, who: str, method: str, kind: str) -> None:
        call = self._platform.calls.method(method, {kind: who})
        await self._names.learn(who, partial(self._asked_name, call, kind))

    async def _asked_name(self, call: ApiCall, kind: str) -> str | None:
        try:
            return _name_in(await self._ask(call), kind)
        except DeliveryRefusedError as refused:
            self._tell_once(f"names cannot be read: {refused.problem}")
        except (AdapterError, OSError):
            pass  # the next message asks again
        return None

    # Out

    async def find(self, target: ReplyTarget, idempotency_key: str) -> str | None:
        """Return the id of the message that was sent with a key; None: it was not sent."""
        wanted = metadata_of(idempotency_key)
        async for message in self._said_in(target):
            metadata = message.get("metadata")
            if metadata == wanted:
                return str(message["ts"])
            if metadata == {**wanted, "event_payload": {}}:  # then nobody knows whose it is
                problem = "the metadata of messages is not told in full"
                raise DeliveryRefusedError(Platform.SLACK, problem)
        return None

    async def _said_in(self, target: ReplyTarget) -> AsyncGenerator[dict[str, Any]]:
        """Yield the messages in the place of a reply; refuse if there are too many to read them all."""
        cursor = ""
        for _ in range(MOST_PAGES):
            answer = await self._ask(self._platform.calls.said_since(target, cursor))
            for message in msgspec.convert(answer.member("messages") or [], list[dict[str, Any]]):
                yield message
            cursor = str(answer.member("response_metadata", "next_cursor") or "")
            if not cursor:
                return
        problem = "so much was said since that it cannot be read again"
        raise DeliveryRefusedError(Platform.SLACK, problem)

    async def typing(self, target: ReplyTarget) -> None:
        """Show the bot's status in a thread, where Slack can."""
        call = self._platform.render_typing(target)
        if call is None or target.chat_id in self._without_status:
            return
        try:
            await self._ask(call)
        except RateLimitedError:
            raise
        except DeliveryRefusedError as refused:
            # It is a hint: where it cannot be shown, it is not tried again and again.
            self._without_status.add(target.chat_id)
            self._tell_once(f"the status cannot be shown: {refused.problem}")

    async def fetch(self, attachment: Attachment, *, most: int) -> bytes:
        """Return the content of a file that somebody sent."""
        if not attachment.url.startswith(FILE):
            problem = f"{attachment.url[:40]!r} is no file of Slack"
            raise InvalidInputError(problem)
        check_size(attachment, most)
        asked = self._platform.calls.method("files.info", {"file": attachment.url.removeprefix(FILE)})
        answer = await self._ask(asked)
        address = answer.member("file", "url_private_download") or answer.member("file", "url_private")
        call = ApiCall(url=str(address), method="GET", name="file", shows=False)
        content = await self._download(call, most)
        if content[:15].lower() == b"<!doctype html>" and attachment.media_type != "text/html":
            name = attachment.name or "the file"
            problem = f"Slack shows its login page in place of {name}: the app lacks the scope files:read"
            raise InvalidInputError(problem)
        return content

    def _tell_once(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            facts = {"action": "slack_limited", "platform": Platform.SLACK}
            logger.warning("something of Slack does without: %s", problem, extra=facts)


def _name_in(answer: PlatformAnswer, kind: str) -> str:
    if kind == "channel":
        return str(answer.member("channel", "name") or "")
    for path in (("profile", "display_name"), ("profile", "real_name"), ("name",)):
        if name := answer.member("user", *path):
            return str(name)
    return ""
