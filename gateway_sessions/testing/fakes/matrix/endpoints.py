"""Endpoints of the client-server API that a fake homeserver knows, with the rules for their parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from gateway_sessions.testing.fakes.matrix.custom_html import html_problems
from gateway_sessions.testing.fakes.matrix.device_keys import DeviceKeys
from gateway_sessions.testing.fakes.matrix.refusals import (
    MatrixRefusalError,
    bad_json,
    not_allowed,
    not_found,
)
from gateway_sessions.testing.fakes.matrix.rooms import (
    MESSAGE,
    TOMBSTONE,
    HomeserverRooms,
    HomeserverUser,
    StoredMatrixEvent,
    StoredMatrixRoom,
)
from gateway_sessions.testing.fakes.matrix.sync import as_shown, position_of

MOST_MESSAGES: Final = 100
"""The most events of one page of `messages`, whatever a client asks for."""
CUSTOM_HTML: Final = "org.matrix.custom.html"

_CLIENT: Final = r"/_matrix/client/(?:r0|v1|v3)"
_ROUTES: Final = [
    (method, re.compile(f"{_CLIENT}{path}/?"), name)
    for method, path, name in (
        ("GET", r"/account/whoami", "whoami"),
        ("GET", r"/sync", "sync"),
        ("POST", r"/logout", "logout"),
        ("PUT", r"/rooms/(?P<room>[^/]+)/send/(?P<type>[^/]+)/(?P<txn>.+)", "send"),
        ("PUT", r"/rooms/(?P<room>[^/]+)/redact/(?P<event>[^/]+)/(?P<txn>.+)", "redact"),
        ("PUT", r"/rooms/(?P<room>[^/]+)/state/(?P<type>[^/]+)/?(?P<key>[^/]*)", "set_state"),
        ("GET", r"/rooms/(?P<room>[^/]+)/messages", "messages"),
        ("GET", r"/rooms/(?P<room>[^/]+)/event/(?P<event>[^/]+)", "event"),
        ("GET", r"/rooms/(?P<room>[^/]+)/state", "state"),
        ("GET", r"/rooms/(?P<room>[^/]+)/state/(?P<type>[^/]+)/?(?P<key>[^/]*)", "state_event"),
        ("GET", r"/rooms/(?P<room>[^/]+)/joined_members", "joined_members"),
        ("PUT", r"/rooms/(?P<room>[^/]+)/typing/(?P<user>[^/]+)", "typing"),
        ("POST", r"/rooms/(?P<room>[^/]+)/receipt/(?P<type>[^/]+)/(?P<event>[^/]+)", "receipt"),
        ("POST", r"/rooms/(?P<room>[^/]+)/join", "join"),
        ("POST", r"/join/(?P<room>[^/]+)", "join"),
        ("POST", r"/rooms/(?P<room>[^/]+)/leave", "leave"),
        ("POST", r"/rooms/(?P<room>[^/]+)/invite", "invite"),
        ("POST", r"/createRoom", "create_room"),
        ("GET", r"/joined_rooms", "joined_rooms"),
        ("GET", r"/profile/(?P<user>[^/]+)(?:/displayname)?", "profile"),
        ("GET", r"/user/(?P<user>[^/]+)/account_data/(?P<type>[^/]+)", "account_data"),
        ("PUT", r"/user/(?P<user>[^/]+)/account_data/(?P<type>[^/]+)", "set_account_data"),
        ("POST", r"/user/(?P<user>[^/]+)/filter", "upload_filter"),
        ("POST", r"/keys/upload", "keys_upload"),
        ("POST", r"/keys/query", "keys_query"),
        ("POST", r"/keys/claim", "keys_claim"),
        ("PUT", r"/sendToDevice/(?P<type>[^/]+)/(?P<txn>.+)", "send_to_device"),
        ("GET", r"/media/download/(?P<server>[^/]+)/(?P<media>[^/]+)(?:/.*)?", "download"),
    )
] + [
    ("POST", re.compile(r"/_matrix/media/(?:r0|v3)/upload"), "upload"),
    (
        "GET",
        re.compile(r"/_matrix/media/(?:r0|v3)/download/(?P<server>[^/]+)/(?P<media>[^/]+)(?:/.*)?"),
        "download",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeserverCall:
    """A client asks for something."""

    name: str
    parameters: Mapping[str, Any]
    """What stands in the path, in the query and in the body."""
    user: HomeserverUser
    device_id: str
    body: bytes = b""
    content_type: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """The body, which must be a JSON object."""
        try:
            content = json.loads(self.body or b"{}")
        except ValueError as error:
            raise MatrixRefusalError(400, "M_NOT_JSON", "Content not JSON.") from error
        if not isinstance(content, dict):
            raise bad_json("Content must be an object.")
        return cast("dict[str, Any]", content)


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file in the content repository."""

    content: bytes
    media_type: str
    name: str = ""


def route_of(method: str, path: str) -> tuple[str, dict[str, str]] | None:
    """Return the name of an endpoint and what stands in its path; None if there is none."""
    for asked, pattern, name in _ROUTES:
        if asked == method and (found := pattern.fullmatch(path)) is not None:
            return name, found.groupdict()
    return None


Answer: TypeAlias = dict[str, Any] | list[Any]


@dataclass
class HomeserverEndpoints:
    """The endpoints that answer at once."""

    rooms: HomeserverRooms
    media: dict[str, MediaFile] = field(default_factory=dict[str, MediaFile])
    markup_problems: list[str] = field(default_factory=list[str])
    """What clients would not show of the texts that the bot has sent, as it was meant."""
    filters: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    account_data: dict[tuple[str, str], dict[str, Any]] = field(
        default_factory=dict[tuple[str, str], dict[str, Any]]
    )
    _transactions: dict[tuple[str, str, str, str], str] = field(
        default_factory=dict[tuple[str, str, str, str], str]
    )

    def __post_init__(self) -> None:
        self.keys: DeviceKeys = DeviceKeys(self.rooms)
        self.table: dict[str, Callable[[HomeserverCall], Answer]] = {
            "whoami": self._whoami,
            "send": self._send,
            "redact": self._redact,
            "set_state": self._set_state,
            "messages": self._messages,
            "event": self._event,
            "state": self._state,
            "state_event": self._state_event,
            "joined_members": self._joined_members,
            "typing": self._typing,
            "receipt": self._receipt,
            "join": self._join,
            "leave": self._leave,
            "invite": self._invite,
            "create_room": self._create_room,
            "joined_rooms": self._joined_rooms,
            "profile": self._profile,
            "account_data": self._account_data,
            "set_account_data": self._set_account_data,
            "upload_filter": self._upload_filter,
            "upload": self._upload,
            "keys_upload": lambda call: self.keys.upload(call.user.user_id, call.device_id, call.content),
            "keys_query": lambda call: self.keys.query(call.content),
            "keys_claim": lambda call: self.keys.claim(call.content),
            "send_to_device": self._send_to_device,
        }

    # Who

    def _whoami(self, call: HomeserverCall) -> Answer:
        return {"user_id": call.user.user_id, "device_id": call.device_id, "is_guest": False}

    def _profile(self, call: HomeserverCall) -> Answer:
        known = {one.user_id: one for one in self.rooms.people.values()}
        if (user := known.get(call.parameters["user"])) is None:
            raise not_found("Profile was not found")
        return {"displayname": user.display_name}

    def _account_data(self, call: HomeserverCall) -> Answer:
        key = call.user.user_id, str(call.parameters["type"])
        if key not in self.account_data:
            raise not_found("Account data not found")
        return self.account_data[key]

    def _set_account_data(self, call: HomeserverCall) -> Answer:
        self.account_data[call.user.user_id, str(call.parameters["type"])] = call.content
        return {}

    def _upload_filter(self, call: HomeserverCall) -> Answer:
        name = str(self.rooms.new_id())
        self.filters[name] = call.content
        return {"filter_id": name}

    # What is said

    def _send(self, call: HomeserverCall) -> Answer:
        """Send an event; what a device sends again with the same id of a transaction happens once."""
        kind = str(call.parameters["type"])
        content = call.content
        return self._once(call, kind, lambda room, of: self._sent(room, call, kind, content, of))

    def _sent(
        self,
        room: StoredMatrixRoom,
        call: HomeserverCall,
        kind: str,
        content: dict[str, Any],
        transaction: tuple[str, str],
    ) -> StoredMatrixEvent:
        if kind == MESSAGE:
            for one in (content, content.get("m.new_content")):
                if one is not None:
                    self._check_message(one)
        return self.rooms.add(room, kind, call.user.user_id, content, transaction=transaction)

    def _redact(self, call: HomeserverCall) -> Answer:
        event = str(call.parameters["event"])
        return self._once(
            call, "redact", lambda room, of: self.rooms.redact(room, call.user.user_id, event, transaction=of)
        )

    def _once(
        self,
        call: HomeserverCall,
        what: str,
        work: Callable[[StoredMatrixRoom, tuple[str, str]], StoredMatrixEvent],
    ) -> Answer:
        transaction = str(call.parameters["txn"])
        key = (call.device_id, str(call.parameters["room"]), what, transaction)
        if key not in self._transactions:
            room = self._room(call, writes=True)
            self._transactions[key] = work(room, (call.device_id, transaction)).event_id
        return {"event_id": self._transactions[key]}

    def _check_message(self, content: dict[str, Any]) -> None:
        if not isinstance(content.get("body"), str) or not isinstance(content.get("msgtype"), str):
            raise bad_json("'body' and 'msgtype' must be strings")
        if "formatted_body" in content:
            self.markup_problems += html_problems(content["formatted_body"])
            if content.get("format") != CUSTOM_HTML:
                self.markup_problems.append(f"the format is {content.get('format')!r}")

    def _typing(self, call: HomeserverCall) -> Answer:
        self.rooms.show_typing(self._room(call), call.user.user_id, typing=bool(call.content["typing"]))
        return {}

    def _receipt(self, call: HomeserverCall) -> Answer:
        self._room(call).read_up_to[call.user.user_id] = str(call.parameters["event"])
        return {}

    def _send_to_device(self, call: HomeserverCall) -> Answer:
        transaction = (call.device_id, str(call.parameters["txn"]))
        return self.keys.send(call.user.user_id, str(call.parameters["type"]), call.content, transaction)

    # What was said

    def _messages(self, call: HomeserverCall) -> Answer:
        given, room = call.parameters, self._room(call)
        backwards = given.get("dir") == "b"
        start, end = position_of(given.get("from")), position_of(given.get("to"))
        if start is None:
            start = self.rooms.position if backwards else 0
        limit = min(int(given.get("limit") or 10), MOST_MESSAGES)
        if backwards:
            found = [one for one in reversed(room.events) if (end or 0) < one.position <= start]
        else:
            found = [
                one for one in room.events if start < one.position and (end is None or one.position <= end)
            ]
        page = found[:limit]
        answer: dict[str, Any] = {
            "chunk": [as_shown(one, call.device_id, room.id) for one in page],
            "start": f"t{start}",
        }
        if len(found) > limit:
            answer["end"] = f"t{page[-1].position - backwards}"
        return answer

    def _event(self, call: HomeserverCall) -> Answer:
        room = self._room(call)
        return as_shown(room.event(str(call.parameters["event"])), call.device_id, room.id)

    def _state(self, call: HomeserverCall) -> Answer:
        room = self._room(call)
        return [as_shown(one, call.device_id, room.id) for one in room.state().values()]

    def _state_event(self, call: HomeserverCall) -> Answer:
        event = self._room(call).state().get((str(call.parameters["type"]), str(call.parameters["key"])))
        if event is None:
            raise not_found("Event not found.")
        content: dict[str, Any] = event.json["content"]
        return content

    def _set_state(self, call: HomeserverCall) -> Answer:
        kind, key = str(call.parameters["type"]), str(call.parameters["key"])
        room = self._room(call, writes=True)
        return {"event_id": self.rooms.add(room, kind, call.user.user_id, call.content, key=key).event_id}

    def _joined_members(self, call: HomeserverCall) -> Answer:
        ids = self._room(call).members()
        return {"joined": {one: {"display_name": self.rooms.display_name(one)} for one in ids}}

    # Coming and going

    def _join(self, call: HomeserverCall) -> Answer:
        room = self.rooms.rooms.get(str(call.parameters["room"]))
        if room is None:
            raise not_found(
                "Can't join remote room because no servers that are in the room have been provided."
            )
        user_id = call.user.user_id
        rule = room.state().get(("m.room.join_rules", ""))
        is_public = rule is not None and rule.json["content"].get("join_rule") == "public"
        match room.membership(user_id):
            case "join":
                pass
            case "invite":
                self.rooms.change_member(room, user_id, "join", by=user_id)
            case _ if is_public:
                self.rooms.change_member(room, user_id, "join", by=user_id)
            case _:
                raise not_allowed("You are not invited to this room.")
        return {"room_id": room.id}

    def _leave(self, call: HomeserverCall) -> Answer:
        room = self.rooms.rooms.get(str(call.parameters["room"]))
        if room is not None and room.membership(call.user.user_id) in ("join", "invite"):
            self.rooms.change_member(room, call.user.user_id, "leave", by=call.user.user_id)
        return {}

    def _invite(self, call: HomeserverCall) -> Answer:
        room = self._room(call, writes=True)
        self.rooms.change_member(room, str(call.content["user_id"]), "invite", by=call.user.user_id)
        return {}

    def _create_room(self, call: HomeserverCall) -> Answer:
        content = call.content
        room = self.rooms.create(call.user)
        if "name" in content:
            self.rooms.add(room, "m.room.name", call.user.user_id, {"name": content["name"]}, key="")
        for invited in content.get("invite", []):
            is_direct = bool(content.get("is_direct"))
            self.rooms.change_member(room, invited, "invite", by=call.user.user_id, is_direct=is_direct)
        return {"room_id": room.id}

    def _joined_rooms(self, call: HomeserverCall) -> Answer:
        rooms = self.rooms.rooms.values()
        return {"joined_rooms": [room.id for room in rooms if room.membership(call.user.user_id) == "join"]}

    # Files

    def _upload(self, call: HomeserverCall) -> Answer:
        return {
            "content_uri": self.add_media(
                call.body, call.content_type, str(call.parameters.get("filename", ""))
            )
        }

    def add_media(self, content: bytes, media_type: str, name: str = "") -> str:
        """Keep a file, and return its address."""
        media_id = f"media{self.rooms.new_id()}"
        self.media[media_id] = MediaFile(content, media_type, name)
        return f"mxc://{self.rooms.server_name}/{media_id}"

    def file(self, media_id: str) -> MediaFile:
        """Return a file, or refuse as a homeserver does."""
        if media_id not in self.media:
            raise not_found("Not found")
        return self.media[media_id]

    def _room(self, call: HomeserverCall, *, writes: bool = False) -> StoredMatrixRoom:
        return self.rooms.room_for(call.user.user_id, str(call.parameters["room"]), writes=writes)


def upgrade_room(rooms: HomeserverRooms, room: StoredMatrixRoom, by: HomeserverUser) -> StoredMatrixRoom:
    """Let a member upgrade a room: nobody can write in the old one, and everybody may join the new one."""
    upgraded = rooms.create(by, {"predecessor": {"room_id": room.id}})
    rooms.add(upgraded, "m.room.join_rules", by.user_id, {"join_rule": "public"}, key="")
    if (name := room.state().get(("m.room.name", ""))) is not None:
        rooms.add(upgraded, "m.room.name", by.user_id, name.json["content"], key="")
    content = {"body": "This room has been replaced", "replacement_room": upgraded.id}
    rooms.add(room, TOMBSTONE, by.user_id, content, key="")
    return upgraded
