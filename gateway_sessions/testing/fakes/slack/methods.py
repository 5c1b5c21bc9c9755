"""The methods of Slack's Web API that a fake knows, with the rules for their parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway_sessions.testing.fakes.slack.blocks import check_blocks, objects_in, unescaped_in
from gateway_sessions.testing.fakes.slack.refusals import SlackRefusalError
from gateway_sessions.testing.fakes.slack.workspace import (
    APP,
    BOT,
    TEAM,
    Message,
    SlackChannel,
    SlackWorkspace,
)

LONGEST_TEXT: Final = 40_000
LONGEST_UPDATE: Final = 4000
"""A message may be much longer than the text that takes its place."""
LONGEST_METADATA: Final = 16 << 10
USUAL_PAGE: Final = 100
LARGEST_PAGE: Final = 999

SCOPES: Final = {
    "chat.postMessage": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "conversations.info": "channels:read",
    "conversations.open": "im:write",
    "users.info": "users:read",
    "assistant.threads.setStatus": "assistant:write",
    "files.getUploadURLExternal": "files:write",
    "files.completeUploadExternal": "files:write",
    "files.info": "files:read",
}
"""The scope that each method needs."""

Parameters = Mapping[str, Any]
WebMethod = Callable[[Parameters], dict[str, Any]]
Changed = Callable[[str, SlackChannel, Message, Message | None], None]
"""This function hears what the bot did to a message: `said`, `changed` or `deleted`."""


class SlackMethods:
    """The methods that change or show conversations."""

    def __init__(self, workspace: SlackWorkspace, base_url: Callable[[], str], changed: Changed) -> None:
        self._workspace = workspace
        self._base_url = base_url
        self._changed = changed
        self.statuses: list[tuple[str, str, str]] = []
        """What the bot was shown to do: channel, thread, status."""
        self.ephemerals: list[dict[str, Any]] = []
        """What only one person was shown."""
        self.unescaped: list[str] = []
        """Texts in which a character stands for itself that must be escaped; Slack shows them somehow."""
        self.uploads: dict[str, dict[str, Any]] = {}
        """The uploads that are not complete, by the ids of their files."""
        self.table: dict[str, WebMethod] = {
            "api.test": lambda given: {"args": dict(given)},
            "auth.test": self._introduce,
            "chat.postMessage": self._post,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "conversations.info": lambda given: {"channel": self._channel(given, to_write=False).as_json()},
            "conversations.open": self._open,
            "users.info": self._user,
            "assistant.threads.setStatus": self._set_status,
            "files.getUploadURLExternal": self._begin_upload,
            "files.completeUploadExternal": self._complete_upload,
            "files.info": self._file,
        }

    def _introduce(self, _: Parameters) -> dict[str, Any]:
        bot = self._workspace.bot
        named = {"url": f"{self._base_url()}/", "team": "Fake", "user": bot.name}
        return {**named, "team_id": TEAM, "user_id": bot.id, "bot_id": BOT}

    def _channel(self, given: Parameters, *, to_write: bool = True) -> SlackChannel:
        return self._workspace.open_channel(given.get("channel"), to_write=to_write)

    def _user(self, given: Parameters) -> dict[str, Any]:
        user = self._workspace.user(str(given.get("user")))
        if user is None:
            raise SlackRefusalError("user_not_found")
        return {"user": user.as_json()}

    def _open(self, given: Parameters) -> dict[str, Any]:
        user = self._workspace.user(str(given.get("users")))
        if user is None:
            raise SlackRefusalError("user_not_found")
        return {"channel": {"id": self._workspace.direct(user.name).id}}

    # Messages

    def _post(self, given: Parameters) -> dict[str, Any]:
        channel = self._channel(given)
        content = self._content(given, LONGEST_TEXT)
        if metadata := _decoded(given.get("metadata")):
            content["metadata"] = _checked_metadata(metadata)
        if thread := given.get("thread_ts"):
            content["thread_ts"] = str(thread)
        message = self._workspace.add_message(channel, {**content, **self.signature()})
        self._changed("said", channel, message, None)
        return {"channel": channel.id, "ts": message["ts"], "message": message}

    def signature(self) -> Message:
        """Return the members of a message that say that the bot wrote it."""
        bot = self._workspace.bot
        return {"user": bot.id, "bot_id": BOT, "app_id": APP, "team": TEAM}

    def _content(self, given: Parameters, longest: int) -> Message:
        text = str(given.get("text") or "")
        if len(text) > longest:
            raise SlackRefusalError("msg_too_long")
        content: Message = {"text": text, **_checked_layout(given)}
        if not (text.strip() or content.get("blocks") or content.get("attachments")):
            raise SlackRefusalError("no_text")
        if given.get("mrkdwn") in (False, "false", "0", 0):
            content["mrkdwn"] = False
        if unescaped_in(text):
            self.unescaped.append(text)
        return content

    def _post_ephemeral(self, given: Parameters) -> dict[str, Any]:
        self._channel(given)
        self.ephemerals.append({**self._content(given, LONGEST_TEXT), "user": given.get("user")})
        return {"message_ts": self._workspace.new_ts()}

    def _update(self, given: Parameters) -> dict[str, Any]:
        channel = self._channel(given)
        message = self._own_message(channel, given, "cant_update_message")
        before = dict(message)
        content = self._content(given, LONGEST_UPDATE)
        message.pop("mrkdwn", None)  # what takes the place of a text is always read as mrkdwn
        content.pop("mrkdwn", None)
        if metadata := _decoded(given.get("metadata")):
            content["metadata"] = _checked_metadata(metadata)
        # Blocks and attachments that a call does not name stay as they are.
        message.update({**content, "edited": {"user": message["user"], "ts": self._workspace.new_ts()}})
        self._changed("changed", channel, message, before)
        return {"channel": channel.id, "ts": message["ts"], "text": message["text"], "message": message}

    def _delete(self, given: Parameters) -> dict[str, Any]:
        channel = self._channel(given)
        message = self._own_message(channel, given, "cant_delete_message")
        del channel.messages[message["ts"]]
        self._changed("deleted", channel, message, message)
        return {"channel": channel.id, "ts": message["ts"]}

    def _own_message(self, channel: SlackChannel, given: Parameters, refusal: str) -> Message:
        message = channel.messages.get(str(given.get("ts")))
        if message is None:
            raise SlackRefusalError("message_not_found")
        if message.get("user") != self._workspace.bot.id:
            raise SlackRefusalError(refusal)
        return message

    def _set_status(self, given: Parameters) -> dict[str, Any]:
        channel = self._workspace.open_channel(given.get("channel_id"))
        thread = str(given.get("thread_ts") or "")
        if thread not in channel.messages:
            raise SlackRefusalError("invalid_thread_ts")
        self.statuses.append((channel.id, thread, str(given.get("status"))))
        return {}

    # What was said

    def _history(self, given: Parameters) -> dict[str, Any]:
        channel = self._channel(given, to_write=False)
        roots = [one for ts, one in channel.messages.copy().items() if one.get("thread_ts", ts) == ts]
        return _page(list(reversed(roots)), given)

    def _replies(self, given: Parameters) -> dict[str, Any]:
        channel = self._channel(given, to_write=False)
        thread = channel.thread(str(given.get("ts")))
        if not thread:
            raise SlackRefusalError("thread_not_found")
        return _page(thread, given)

    # Files

    def _begin_upload(self, given: Parameters) -> dict[str, Any]:
        if not given.get("filename") or int(given.get("length") or 0) <= 0:
            raise SlackRefusalError("invalid_arguments")
        number = self._workspace.new_id("F")
        self.uploads[number] = {
            "name": str(given["filename"]),
            "length": int(given["length"]),
            "content": None,
        }
        return {"upload_url": f"{self._base_url()}/upload/v1/{number}", "file_id": number}

    def _complete_upload(self, given: Parameters) -> dict[str, Any]:
        wanted = objects_in(_decoded(given.get("files")) or [], "/files")
        uploads = [self.uploads.get(str(one.get("id")), {}) for one in wanted]
        if not uploads or any(one.get("content") is None for one in uploads):
            raise SlackRefusalError("file_not_found")
        named = str(given.get("channel_id") or given.get("channels") or "")
        channel = self._workspace.open_channel(named) if named else None
        files = [
            self._workspace.add_file(
                one["name"], one["content"], media_type_of(one["name"]), self._base_url()
            )
            for one in uploads
        ]
        for one in wanted:
            del self.uploads[one["id"]]
        if channel is not None:
            content: Message = {"text": str(given.get("initial_comment") or ""), "files": files}
            if thread := given.get("thread_ts"):
                content["thread_ts"] = str(thread)
            content |= {"subtype": "file_share", **self.signature()}
            self._changed("said", channel, self._workspace.add_message(channel, content), None)
        return {"files": files}

    def _file(self, given: Parameters) -> dict[str, Any]:
        file = self._workspace.files.get(str(given.get("file")))
        if file is None:
            raise SlackRefusalError("file_not_found")
        return {"file": file}


def media_type_of(name: str) -> str:
    """Return the type of a file by the end of its name."""
    kinds = {"png": "image/png", "jpg": "image/jpeg", "txt": "text/plain", "pdf": "application/pdf"}
    kinds |= {"mp4": "video/mp4", "mp3": "audio/mpeg", "webm": "audio/webm"}
    return kinds.get(name.rpartition(".")[2], "application/octet-stream")


def _page(messages: list[Message], given: Parameters) -> dict[str, Any]:
    """Return a page of messages; of a thread, the first message is always there."""
    oldest, latest = str(given.get("oldest") or "0"), str(given.get("latest") or "9999999999")
    inclusive = given.get("inclusive") in (True, "true", "1", 1)
    root = str(given.get("ts") or "")
    wanted = [
        one
        for one in messages
        if one["ts"] == root or oldest < one["ts"] < latest or (inclusive and one["ts"] in (oldest, latest))
    ]
    first = int(given.get("cursor") or 0)
    size = min(int(given.get("limit") or USUAL_PAGE), LARGEST_PAGE)
    shown = wanted[first : first + size]
    if given.get("include_all_metadata") not in (True, "true", "1", 1):
        shown = [{name: value for name, value in one.items() if name != "metadata"} for one in shown]
    more = first + size < len(wanted)
    cursor = {"response_metadata": {"next_cursor": str(first + size)}} if more else {}
    return {"messages": shown, "has_more": more, **cursor}


def _checked_layout(given: Parameters) -> Message:
    """Return the blocks and attachments of a call; refuse them as Slack does."""
    layout: Message = {}
    for name in ("blocks", "attachments"):
        if (value := _decoded(given.get(name))) is not None:
            layout[name] = value
    check_blocks(layout.get("blocks") or [])
    for attachment in objects_in(layout.get("attachments") or [], "/attachments"):
        check_blocks(attachment.get("blocks", []))
    return layout


def _decoded(value: object) -> Any:
    """Return a parameter that a form carries as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value else None
    except ValueError:
        raise SlackRefusalError("invalid_arguments") from None


def _checked_metadata(metadata: Any) -> dict[str, Any]:
    try:
        msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError:
        raise SlackRefusalError("invalid_metadata_format") from None
    if len(json.dumps(metadata)) > LONGEST_METADATA:
        raise SlackRefusalError("metadata_too_large")
    return dict(metadata)


class _Metadata(msgspec.Struct):
    """What an app hangs on a message for itself."""

    event_type: str
    event_payload: dict[str, Any]
