"""`ChannelReader`: finds the channels with news, and hands over what is new in each, in its order."""

from __future__ import annotations

import logging
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec

from gateway_sessions.adapters.protocol import Adapter, AdapterMemory, Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageError,
)
from gateway_sessions.integrations.mattermost.objects import (
    MattermostChannel,
    MattermostPost,
    MattermostUser,
    PostList,
)
from gateway_sessions.integrations.mattermost.posts import (
    PostChange,
    PostPlace,
    PostRules,
    RawPost,
    UnreadablePostError,
    changes_since,
    joins,
    may_be_message,
    post_of,
    read_post,
)
from gateway_sessions.integrations.mattermost.server_api import MattermostApi

logger: Final = logging.getLogger(__name__)

PAGE: Final = 60
"""The posts of a page: with the longest texts, their answer has four megabytes."""
MOST_CHANGED: Final = 1000
"""With `since`, a server returns no more posts, and says not which ones it left out."""
MOST_PAGES: Final = 500
"""What is more than 30 000 posts back in one channel is given up: nobody waits for these answers."""
OVERLAP: Final = 2000
"""So many milliseconds are asked for a second time: posts that are made at once may appear out of order."""
LOOKS_BETWEEN_CHANGES: Final = 5
"""Edits and deletions move no channel's time; each fifth look asks for them, where people just talked."""
RECENT: Final = 15 * 60 * 1000
"""For so long after the last post, people change what they wrote."""
MOST_KNOWN: Final = 5000
"""So many changes, names and threads are remembered."""
BEGUN: Final = "begun"
PLACE: Final = "place:"
"""The beginning of the names under which the place in each channel is remembered, in milliseconds."""
CHANNEL_TYPES: Final = frozenset("DGOP")


class ReadingPlace(NamedTuple):
    """A place in a channel, in milliseconds."""

    read_to: int
    """The time of the newest change that was read."""
    start: int
    """The time before which nothing is for the bot."""


class ChannelReader:
    """Reads the channels of one bot; the place in a channel moves when its posts are stored."""

    def __init__(
        self,
        adapter: Adapter,
        api: MattermostApi,
        memory: AdapterMemory,
        rules: PostRules,
        unreadable: str | Path | None = None,
    ) -> None:
        self._adapter = adapter
        self._api = api
        self._memory = memory
        self._rules = rules
        self._unreadable = unreadable
        self._places: dict[str, ReadingPlace] = {}
        self._done: OrderedDict[tuple[str, PostChange, int], None] = OrderedDict()
        """The changes that were handed over by this process."""
        self._unread: OrderedDict[str, None] = OrderedDict()
        self._names: OrderedDict[str, str | None] = OrderedDict()
        self._threads: OrderedDict[str, bool] = OrderedDict()
        """Of threads, whether the bot has written there; once it has, that stays."""
        self._looks = 0

    async def begin(self) -> None:
        """Set the places at the very first start: what was said before is not for the bot."""
        if await self._memory.get(BEGUN) is not None:
            return
        for channel in await self._channels():
            start = max(channel.last_post_at, channel.create_at)
            await self._move(channel.id, ReadingPlace(start, start))
        await self._memory.put(BEGUN, "1")

    async def look(self, submit: Submit) -> None:
        """Hand over what is new; the first failure is raised when all channels were looked at."""
        self._looks += 1
        channels = await self._channels()
        newest = max((channel.last_post_at for channel in channels), default=0)
        failed: list[Exception] = []

        async def read_channel(channel: MattermostChannel) -> None:
            try:
                place = await self._place_of(channel)
                asks_for_changes = self._looks % LOOKS_BETWEEN_CHANGES == 0
                is_recent = asks_for_changes and channel.last_post_at > newest - RECENT
                if channel.last_post_at > place.read_to or is_recent:
                    await self._read(submit, channel, place)
            except (
                StorageError, AdapterUnavailableError, DeliveryRefusedError, RateLimitedError, OSError,
                msgspec.MsgspecError,
            ) as error:  # fmt: skip
                failed.append(error)  # the other channels go on

        async with anyio.create_task_group() as tasks:
            for channel in channels:
                tasks.start_soon(read_channel, channel)
        if failed:
            raise failed[0]

    async def _channels(self) -> list[MattermostChannel]:
        listed = msgspec.convert(await self._api.get("users/me/channels"), list[MattermostChannel])
        return [one for one in listed if one.type in CHANNEL_TYPES and not one.delete_at]

    # Places

    async def _place_of(self, channel: MattermostChannel) -> ReadingPlace:
        """Return the time up to which a channel was read; a new one is read from where the bot came in."""
        if channel.id not in self._places:
            told = await self._memory.get(PLACE + channel.id)
            if told is not None:
                self._places[channel.id] = ReadingPlace(*map(int, told.split()))
            else:
                entry = await self._entry(channel)
                await self._move(channel.id, ReadingPlace(entry, entry))
        return self._places[channel.id]

    async def _entry(self, channel: MattermostChannel) -> int:
        if channel.type in "DG":
            return channel.create_at - 1
        found = await self._page(channel.id, "")
        came = [
            post.create_at for post in map(_readable, found) if post and joins(post, self._rules.bot.user_id)
        ]
        return max(came, default=channel.last_post_at)

    async def _move(self, channel_id: str, place: ReadingPlace) -> None:
        if self._places.get(channel_id) != place:
            await self._memory.put(PLACE + channel_id, f"{place.read_to} {place.start}")
            self._places[channel_id] = place

    # Posts

    async def _read(self, submit: Submit, channel: MattermostChannel, place: ReadingPlace) -> None:
        since = max(place.read_to - OVERLAP, place.start)
        changed: list[tuple[int, str, PostChange, RawPost]] = []
        newest = max(place.read_to, channel.last_post_at)
        for raw in await self._changed(channel.id, since):
            try:
                post = post_of(raw)
            except UnreadablePostError as error:
                await self._set_aside(raw, error)
                continue
            newest = max(newest, post.update_at)
            if post.create_at > place.read_to:  # a new post is handed over as it is, with its edits
                _remember(self._done, (post.id, PostChange.EDITED, post.edit_at), None)
            changed += [(at, post.id, what, raw) for at, what in changes_since(post, since)]
        for at, post_id, what, raw in sorted(changed, key=lambda one: one[:2]):
            if (post_id, what, at) not in self._done:
                await self._hand_over(submit, channel, what, raw)
                _remember(self._done, (post_id, what, at), None)
        # Where posts came out of order, one may be older than the newest; it is within the overlap.
        await self._move(channel.id, ReadingPlace(newest, place.start))

    async def _changed(self, channel_id: str, since: int) -> list[Any]:
        """Return the posts that are new or changed since a time."""
        try:
            answer = await self._api.get(f"channels/{channel_id}/posts", {"since": str(max(since, 1))})
            posts = list(msgspec.convert(answer, PostList).posts.values())
        except msgspec.DecodeError:  # the answer was too large to be read
            posts = []
        else:
            if len(posts) < MOST_CHANGED:
                return posts
        before = ""
        for _ in range(MOST_PAGES):
            page = await self._page(channel_id, before)
            posts += page
            created = [post.create_at for post in map(_readable, page) if post is not None]
            if len(page) < PAGE or min(created, default=0) <= since:
                break
            before = str(page[-1]["id"])
        return posts

    async def _page(self, channel_id: str, before: str) -> list[Any]:
        """Return a page of a channel, the newest post first."""
        query = {"per_page": str(PAGE), **({"before": before} if before else {})}
        found = msgspec.convert(await self._api.get(f"channels/{channel_id}/posts", query), PostList)
        return [found.posts[post_id] for post_id in found.order]

    async def _hand_over(
        self, submit: Submit, channel: MattermostChannel, change: PostChange, raw: RawPost
    ) -> None:
        """Hand a message over; what nobody can read must not stop what comes behind it."""
        post = post_of(raw)
        if not may_be_message(post, self._rules):
            return
        try:
            author = await self._name_of(post.user_id)
            place = PostPlace(channel, author, await self._takes_part(post))
            message = read_post(raw, change, place, self._rules)
            if message is not None:
                await submit(message)
        except InvalidInputError as error:
            await self._set_aside(raw, error)

    async def _set_aside(self, raw: Any, error: InvalidInputError) -> None:
        """Keep what cannot be read; it is found again as long as it is new, and kept once."""
        if (known := str(raw)) in self._unread:
            return
        if self._unreadable is not None:
            await put_aside(self._unreadable, raw, error, adapter=self._adapter)
        else:
            facts = {"platform": self._adapter.platform, "account": self._adapter.name}
            facts["action"] = "update_unreadable"
            logger.error("a post could not be read and is passed over", exc_info=error, extra=facts)
        _remember(self._unread, known, None)

    # What a post does not tell

    async def _name_of(self, user_id: str) -> str | None:
        if user_id not in self._names:
            try:
                user = msgspec.convert(await self._api.get(f"users/{user_id}"), MattermostUser)
                name = user.name
            except (DeliveryRefusedError, msgspec.ValidationError):
                name = None
            _remember(self._names, user_id, name)
        return self._names[user_id]

    async def _takes_part(self, post: MattermostPost) -> bool:
        """Return whether the bot has written in the thread of a post."""
        root_id = post.root_id
        if not root_id:
            return False
        if not self._threads.get(root_id):
            try:
                thread = msgspec.convert(await self._api.get(f"posts/{root_id}/thread"), PostList)
            except DeliveryRefusedError:  # the thread is gone
                return False
            bot = self._rules.bot.user_id
            wrote = any(
                one is not None and one.user_id == bot for one in map(_readable, thread.posts.values())
            )
            _remember(self._threads, root_id, wrote)
        return self._threads[root_id]


def _readable(raw: Any) -> MattermostPost | None:
    try:
        return post_of(raw)
    except UnreadablePostError:
        return None


def _remember(known: OrderedDict[Any, Any], key: object, value: object) -> None:
    """Remember something, and forget the oldest if there is too much."""
    known[key] = value
    while len(known) > MOST_KNOWN:
        known.popitem(last=False)
