"""`FakeMattermost`: a Mattermost server on loopback, with people who write to its bot."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.faults import (
    AskedPauses,
    CutConnection,
    Delay,
    Fault,
    RateLimit,
    RefusedCall,
    ServerFault,
)
from gateway_sessions.testing.fakes.http_server import (
    ConnectionCutError,
    FakeRequest,
    FakeResponse,
    UploadedFile,
)
from gateway_sessions.testing.fakes.mattermost.workspace import (
    PENDING_SECONDS,
    MattermostRefusalError,
    Workspace,
    WorkspaceChannel,
    WorkspaceFile,
    WorkspaceUser,
    no_permission,
)
from gateway_sessions.testing.fakes.platform_server import BotMessage, FakePlatformServer

TOKEN: Final = "faketokenofabotthatnobodykn"  # noqa: S105 -- it opens nothing
PAGE: Final = 60
JSON: Final = {"content-type": "application/json"}
"""Some clients read an answer only if its type is this one, without a charset."""
MOST_PAGE: Final = 200
MOST_CHANGED: Final = 1000
_ROUTES: Final = [
    (method, re.compile(f"/api/v4{path}"), name)
    for method, path, name in (
        ("GET", r"/users/me", "me"),
        ("GET", r"/users/me/channels", "channels"),
        ("GET", r"/users/(?P<user>\w+)", "user"),
        ("POST", r"/users/\w+/typing", "typing"),
        ("GET", r"/channels/(?P<channel>\w+)/posts", "channel_posts"),
        ("POST", r"/posts", "create_post"),
        ("GET", r"/posts/(?P<post>\w+)/thread", "thread"),
        ("PUT", r"/posts/(?P<post>\w+)/patch", "patch_post"),
        ("POST", r"/files", "upload"),
        ("GET", r"/files/(?P<file>\w+)", "download"),
    )
]


class FakeMattermost(FakePlatformServer):
    """A server for one bot, to be used as `async with FakeMattermost() as mattermost`.

    Point a client at `mattermost.url`. A person writes to the bot alone, or in a channel with a name.
    """

    def __init__(self, *, token: str = TOKEN, username: str = "helper", clock: Clock | None = None) -> None:
        super().__init__()
        self.token = token
        self.workspace: Workspace = Workspace(clock or SystemClock())
        self.bot: WorkspaceUser = self.workspace.user(username, is_bot=True)
        self._direct: dict[str, str] = {}
        self._named: dict[str, str] = {}
        self._pending: dict[str, tuple[float, str]] = {}
        """The posts of pending ids, with the times at which they are forgotten."""
        self._looked_at: deque[int] = deque([0, 0], maxlen=2)
        """When the bot has asked for its channels, the last time and the time before."""
        self._pauses = AskedPauses()
        self._answers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "me": lambda _: self.bot.as_json(),
            "channels": self._channels,
            "user": self._user,
            "typing": self._typing,
            "channel_posts": self._posts,
            "create_post": self._create,
            "thread": self._thread,
            "patch_post": self._patch,
            "upload": self._upload,
        }

    # People

    def says(
        self, person: str, text: str, *, channel: str | None = None, thread: str | None = None, **more: Any
    ) -> str:
        """Let a person write, alone with the bot or in a channel; return the id of the post."""
        content = {"message": text, "root_id": thread or "", **more}
        where = self.channel(person, channel)
        return str(self.workspace.add(where, self.workspace.user(person).id, content)["id"])

    def sends(
        self,
        person: str,
        content: bytes,
        *,
        name: str = "file",
        mime_type: str = "application/octet-stream",
        text: str = "",
        channel: str | None = None,
    ) -> str:
        """Let a person send a file; return the id of the post."""
        file = WorkspaceFile(self.workspace.new_id("file"), name, content, mime_type)
        self.workspace.files[file.id] = file
        return self.says(person, text, channel=channel, file_ids=[file.id])

    def edits(self, post_id: str, text: str) -> None:
        """Let a person change what they wrote."""
        self.workspace.edit(self.workspace.post_for(self.bot.id, post_id), text)

    def deletes(self, post_id: str) -> None:
        """Let a person take back what they wrote."""
        self.workspace.delete(self.workspace.post_for(self.bot.id, post_id))

    def adds_bot(self, person: str, channel: str) -> None:
        """Let a person add the bot to a channel that was there before."""
        found = self.channel(person, channel, with_bot=False)
        found.members.add(self.bot.id)
        self._tell_of_bot(self.workspace.user(person), found)

    def removes_bot(self, person: str, channel: str) -> None:
        """Let a person remove the bot from a channel."""
        found = self.channel(person, channel)
        found.members.discard(self.bot.id)
        props = {"removedUserId": self.bot.id}
        told = {"message": "removed", "type": "system_remove_from_channel", "props": props}
        self.workspace.add(found, self.workspace.user(person).id, told)

    def again(self, post_id: str) -> None:
        """Let a post appear a second time as a new one, as after an import."""
        post = self.workspace.post_for(self.bot.id, post_id)
        post["create_at"] = post["update_at"] = self.workspace.now()

    def delivers(self, person: str, post: dict[str, Any]) -> None:
        """Keep a post as it is given, even a garbled one."""
        channel = self.channel(person)
        channel.posts[str(post["id"])] = post

    def _tell_of_bot(self, by: WorkspaceUser, channel: WorkspaceChannel) -> None:
        told = {"message": "added", "type": "system_add_to_channel", "props": {"addedUserId": self.bot.id}}
        self.workspace.add(channel, by.id, told)

    # What people see

    def channel(self, person: str, title: str | None = None, *, with_bot: bool = True) -> WorkspaceChannel:
        """Return the conversation of a person with the bot, or the channel with that title."""
        member, known = self.workspace.user(person), self._direct if title is None else self._named
        name = person if title is None else title
        if name not in known:
            bot = {self.bot.id} if with_bot or title is None else set[str]()
            kind = "D" if title is None else "O"
            created = self.workspace.create(kind, title or "", member.id, *bot)
            known[name] = created.id
            if title is not None and with_bot:
                self._tell_of_bot(member, created)
        found = self.workspace.channels[known[name]]
        found.members.add(member.id)
        return found

    def shown(self, person: str = "", *, channel: str | None = None) -> list[dict[str, Any]]:
        """Return the bot's posts that people see."""
        found = self._named.get(channel) if channel is not None else self._direct.get(person)
        posts = self.workspace.channels[found].posts if found is not None else {}
        return [one for one in list(posts.values()) if one["user_id"] == self.bot.id and not one["delete_at"]]

    def texts(self, person: str = "", *, channel: str | None = None, thread: str | None = None) -> list[str]:
        """Return what the bot has said to a person, in a channel or in one of its threads."""
        shown = self.shown(person, channel=channel)
        return [str(one["message"]) for one in shown if thread is None or one["root_id"] == thread]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all posts of the bot that people see, wherever they stand."""
        places = {channel_id: person for person, channel_id in self._direct.items()}
        places |= {channel_id: f"#{title}" for title, channel_id in self._named.items()}
        for channel in list(self.workspace.channels.values()):
            for post in list(channel.posts.values()):
                if post["user_id"] == self.bot.id and not post["delete_at"]:
                    files = [f"[{one['name']}]" for one in post["metadata"].get("files", [])]
                    text = "\n".join(filter(None, [post["message"], *files]))
                    yield BotMessage(places.get(channel.id, channel.id), post["id"], text)

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        return {"url": self.url, "token": self.token}

    @property
    def pending(self) -> int:
        """The number of people's posts that the bot may not have read: it has not looked twice since."""
        posts = [one for channel in list(self.workspace.channels.values()) for one in channel.posts.values()]
        return sum(one["create_at"] >= self._looked_at[0] for one in posts if one["user_id"] != self.bot.id)

    @property
    def looks(self) -> int:
        """The number of times that the bot has asked which channels have news."""
        return sum(call.method == "channels" for call in list(self.calls))

    async def is_read(self, *, seconds: float = 10) -> None:
        """Wait until the bot has read all that was written up to now, and looks again."""
        begun = self.looks
        await self.wait_until(lambda: self.looks >= begun + 2, seconds=seconds)

    def forget_pending(self) -> None:
        """Forget all pending ids, as a server does after half a minute."""
        self._pending.clear()

    # The server

    async def _answer(self, request: FakeRequest) -> FakeResponse:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            problem = "Invalid or expired session, please login again."
            return _refused(MattermostRefusalError(401, "api.context.session_expired.app_error", problem))
        for method, pattern, name in _ROUTES:
            if method == request.method and (found := pattern.fullmatch(request.path)) is not None:
                parameters = {**request.parameters(), **found.groupdict()}
                fault = self.faults.next_for(name, parameters)
                response = await self._response(name, parameters, fault)
                self._log_call(name, parameters, response)
                return response
        return _refused(MattermostRefusalError(404, "api.context.404.app_error", "Sorry, not found."))

    async def _response(self, name: str, parameters: Mapping[str, Any], fault: Fault | None) -> FakeResponse:
        match fault:
            case CutConnection():
                if fault is CutConnection.AFTER:
                    self._outcome(name, parameters)
                raise ConnectionCutError
            case ServerFault():
                if fault.done:
                    self._outcome(name, parameters)
                return FakeResponse(fault.status, fault.body.encode(), {"content-type": "text/html"})
            case RefusedCall():
                return _refused(MattermostRefusalError(fault.status, "api.fault.app_error", fault.problem))
            case RateLimit():
                return _asked_to_wait(self._pauses.ask(_place(parameters), fault.retry_after))
            case Delay() | None:
                await anyio.sleep(fault.seconds if fault else 0)
                return self._outcome(name, parameters)

    def _outcome(self, name: str, parameters: Mapping[str, Any]) -> FakeResponse:
        longer = self._pauses.broken(_place(parameters)) if name == "create_post" else None
        if longer is not None:
            return _asked_to_wait(longer)
        try:
            if name == "download":
                file = self.workspace.files.get(parameters["file"])
                if file is None:
                    raise no_permission()
                return FakeResponse(200, file.content, {"content-type": file.mime_type})
            return FakeResponse.of_json(self._answers[name](parameters), headers=JSON)
        except MattermostRefusalError as refusal:
            return _refused(refusal)

    def _channels(self, _: Mapping[str, Any]) -> list[dict[str, Any]]:
        self._looked_at.append(self.workspace.now())
        known = list(self.workspace.channels.values())
        return [channel.as_json() for channel in known if self.bot.id in channel.members]

    def _user(self, given: Mapping[str, Any]) -> dict[str, Any]:
        for user in list(self.workspace.users.values()):
            if user.id == given["user"]:
                return user.as_json()
        raise MattermostRefusalError(404, "app.user.missing_account.const", "Unable to find the user.")

    def _typing(self, given: Mapping[str, Any]) -> dict[str, str]:
        channel = self.workspace.channel_for(self.bot.id, given["channel_id"])
        channel.typing.append(given.get("parent_id", ""))
        return {"status": "OK"}

    def _posts(self, given: Mapping[str, Any]) -> dict[str, Any]:
        channel = self.workspace.channel_for(self.bot.id, given["channel"])
        posts = list(channel.posts.values())
        if "since" in given:
            changed = [one for one in posts if _changed_at(one) > int(given["since"])][:MOST_CHANGED]
            return _listed(channel, changed)
        kept = [one for one in posts if not one.get("delete_at")]
        if before := given.get("before"):
            kept = kept[: [one["id"] for one in kept].index(before)]
        per_page = min(int(given.get("per_page", PAGE)), MOST_PAGE)
        return _listed(channel, kept[-per_page:])

    def _create(self, given: Mapping[str, Any]) -> dict[str, Any]:
        channel = self.workspace.channel_for(self.bot.id, given["channel_id"], writes=True)
        pending, now = str(given.get("pending_post_id", "")), time.monotonic()
        until, known = self._pending.get(pending, (0.0, ""))
        if pending and now < until:
            return channel.posts[known]
        post = self.workspace.add(channel, self.bot.id, dict(given))
        post["props"]["from_bot"] = "true"
        self._pending[pending] = (now + PENDING_SECONDS, post["id"])
        return post

    def _thread(self, given: Mapping[str, Any]) -> dict[str, Any]:
        root = self.workspace.post_for(self.bot.id, given["post"])
        channel = self.workspace.channels[root["channel_id"]]
        posts = [one for one in channel.posts.values() if root["id"] in (one["id"], one["root_id"])]
        return _listed(channel, posts)

    def _patch(self, given: Mapping[str, Any]) -> dict[str, Any]:
        post = self.workspace.post_for(self.bot.id, given["post"])
        if post["user_id"] != self.bot.id:
            raise no_permission()
        self.workspace.edit(post, str(given["message"]))
        return post

    def _upload(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self.workspace.channel_for(self.bot.id, given["channel_id"], writes=True)
        sent = given["files"]
        assert isinstance(sent, UploadedFile)
        file = WorkspaceFile(self.workspace.new_id("file"), sent.name, sent.content, sent.media_type)
        self.workspace.files[file.id] = file
        return {"file_infos": [file.as_json()], "client_ids": []}


def _changed_at(post: Mapping[str, Any]) -> int:
    changed = post.get("update_at")
    return changed if isinstance(changed, int) else 1 << 60


def _listed(channel: WorkspaceChannel, posts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return posts as the API lists them, the newest first, with the posts that began their threads."""
    roots = {one["root_id"] for one in posts if one.get("root_id")}
    found = {one["id"]: one for one in [*posts, *(channel.posts[root] for root in roots)]}
    return {"order": [one["id"] for one in reversed(posts)], "posts": json.loads(json.dumps(found))}


def _place(parameters: Mapping[str, Any]) -> str:
    return str(parameters.get("channel_id", ""))


def _asked_to_wait(seconds: float) -> FakeResponse:
    headers = {"x-ratelimit-limit": "11", "x-ratelimit-remaining": "0", "retry-after": str(seconds)}
    return FakeResponse(429, b"limit exceeded", headers)


def _refused(refusal: MattermostRefusalError) -> FakeResponse:
    return FakeResponse.of_json(refusal.as_json(), status=refusal.status, headers=JSON)
