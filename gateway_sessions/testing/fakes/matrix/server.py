"""`FakeMatrix`: a homeserver on loopback, with people who write to its bot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

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
from gateway_sessions.testing.fakes.http_server import ConnectionCutError, FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.matrix.endpoints import (
    HomeserverCall,
    HomeserverEndpoints,
    route_of,
    upgrade_room,
)
from gateway_sessions.testing.fakes.matrix.refusals import (
    MatrixRefusalError,
    limit_exceeded,
    not_allowed,
    unknown_token,
)
from gateway_sessions.testing.fakes.matrix.rooms import (
    ENCRYPTION,
    MESSAGE,
    HomeserverRooms,
    HomeserverUser,
    StoredMatrixRoom,
    displayed,
    relation_of,
)
from gateway_sessions.testing.fakes.matrix.sync import (
    TIMELINE,
    SyncRequest,
    has_news,
    position_of,
    sync_answer,
)
from gateway_sessions.testing.fakes.platform_server import LOOK_SECONDS, BotMessage, FakePlatformServer

SERVER_NAME: Final = "fake.example"
TOKEN: Final = "syt_fake_token_of_a_bot"  # noqa: S105 -- it opens nothing
PASSWORD: Final = "correct horse"  # noqa: S105 -- likewise
DEVICE: Final = "BOTDEVICE"
LONGEST_POLL: Final = 60.0
PATIENCE_SECONDS: Final = 2.0
"""The longest time until a program that lives syncs again."""
_MSGTYPES: Final = {"photo": "m.image", "video": "m.video", "audio": "m.audio", "document": "m.file"}


class FakeMatrix(FakePlatformServer):
    """A homeserver for one bot, to be used as `async with FakeMatrix() as matrix`.

    Point a client library at `matrix.url`. What people say stays, also while no bot runs. A person writes to
    the bot in a room for the two of them, or in a room with a name.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = "helper",
        clock: Clock | None = None,
        server_name: str = SERVER_NAME,
    ) -> None:
        super().__init__()
        self.token = token
        self.password = PASSWORD
        self.rooms: HomeserverRooms = HomeserverRooms(server_name, clock or SystemClock())
        self.bot: HomeserverUser = self.rooms.person(username)
        self.endpoints: HomeserverEndpoints = HomeserverEndpoints(self.rooms)
        self.synced_to: int = 0
        """The position that the bot has told last that it has everything up to there."""
        self.delivered_to: int = 0
        """The position up to which the bot was told everything, whether it kept it or not."""
        self._devices: dict[str, tuple[HomeserverUser, str]] = {token: (self.bot, DEVICE)}
        self._revoked: dict[str, bool] = {}
        self._direct: dict[str, str] = {}
        self._named: dict[str, str] = {}
        self._pauses = AskedPauses()
        self._syncs_begun = 0
        self._sync_waits = False

    # People

    def says(
        self,
        person: str,
        text: str,
        *,
        room: str | None = None,
        thread: str | None = None,
        reply_to: str | None = None,
        mentions: bool = False,
        **content: Any,
    ) -> str:
        """Let a person write, in private or in a room with a name; return the id of the event.

        With *mentions*, their client names the bot in `m.mentions`, as all of today's do.
        """
        said: dict[str, Any] = {"msgtype": "m.text", "body": text, **content}
        said["m.mentions"] = {"user_ids": [self.bot.user_id]} if mentions else {}
        return self._adds(person, said, room=room, thread=thread, reply_to=reply_to)

    def sends(
        self,
        person: str,
        kind: str,
        content: bytes,
        *,
        caption: str | None = None,
        name: str = "file",
        media_type: str = "application/octet-stream",
        room: str | None = None,
    ) -> str:
        """Let a person send a photo, a video, a document or a sound; return the id of the event."""
        url = self.endpoints.add_media(content, media_type, name)
        info = {"mimetype": media_type, "size": len(content)}
        said = {
            "msgtype": _MSGTYPES[kind],
            "body": caption or name,
            "filename": name,
            "url": url,
            "info": info,
        }
        return self._adds(person, said, room=room)

    def edits(self, event_id: str, text: str, *, by: str | None = None) -> str:
        """Let a person change what they wrote; return the id of the edit."""
        room = self.room_of_event(event_id)
        new: dict[str, Any] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        relation = {"rel_type": "m.replace", "event_id": event_id}
        content = {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation}
        sender = self.rooms.person(by).user_id if by else str(room.event(event_id).json["sender"])
        return self.rooms.add(room, MESSAGE, sender, content).event_id

    def deletes(self, event_id: str) -> str:
        """Let a person take back what they wrote; return the id of the redaction."""
        room = self.room_of_event(event_id)
        return self.rooms.redact(room, str(room.event(event_id).json["sender"]), event_id).event_id

    def reacts(self, person: str, event_id: str, key: str = "👍") -> str:
        """Let a person put a sign on a message."""
        relation = {"m.relates_to": {"rel_type": "m.annotation", "event_id": event_id, "key": key}}
        room = self.room_of_event(event_id)
        return self.rooms.add(room, "m.reaction", self.rooms.person(person).user_id, relation).event_id

    def invites(self, person: str, *, room: str | None = None, text: str | None = None) -> str:
        """Let a person invite the bot, to a room for the two of them or to one with a name; return its id.

        With a *text*, the person writes it at once, before the bot has joined.
        """
        sender = self.rooms.person(person)
        created = self.rooms.create(sender)
        if room is not None:
            self.rooms.add(created, "m.room.name", sender.user_id, {"name": room}, key="")
            self._named[room] = created.id
        else:
            self._direct[person] = created.id
        self.rooms.change_member(
            created, self.bot.user_id, "invite", by=sender.user_id, is_direct=room is None
        )
        if text is not None:
            self.rooms.add(created, MESSAGE, sender.user_id, {"msgtype": "m.text", "body": text})
        return created.id

    def logs_in(self, person: str, device: str) -> str:
        """Let a person log in with a client library, and return the token for it."""
        token = f"syt_{person}_{device}_{self.rooms.new_id()}"
        self._devices[token] = (self.rooms.person(person), device)
        return token

    def encrypts(self, person: str, *, room: str | None = None) -> None:
        """Let a person turn on encryption."""
        algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
        self.rooms.add(
            self.room(person, room), ENCRYPTION, self.rooms.person(person).user_id, algorithm, key=""
        )

    def says_encrypted(self, person: str, *, room: str | None = None) -> str:
        """Let a person write what only devices with the key can read; return the id of the event."""
        content = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA", "session_id": "s"}
        sender = self.rooms.person(person).user_id
        return self.rooms.add(self.room(person, room), "m.room.encrypted", sender, content).event_id

    def upgrades(self, person: str, *, room: str | None = None) -> str:
        """Let a person upgrade a room, and go on in the new one; return its id."""
        upgraded = upgrade_room(self.rooms, self.room(person, room), self.rooms.person(person))
        if room is None:
            self._direct[person] = upgraded.id
        else:
            self._named[room] = upgraded.id
        return upgraded.id

    def removes_bot(self, person: str, *, room: str | None = None, bans: bool = False) -> str:
        """Let a person remove the bot from a room, or ban it there; return the id of the event."""
        sender = self.rooms.person(person).user_id
        membership = "ban" if bans else "leave"
        left = self.rooms.change_member(self.room(person, room), self.bot.user_id, membership, by=sender)
        return left.event_id

    def delivers(self, person: str, event: dict[str, Any], *, room: str | None = None) -> int:
        """Deliver an event as it is given, even a garbled one; return its position."""
        return self.rooms.add_raw(self.room(person, room), event).position

    def again(self, event_id: str) -> int:
        """Deliver an event a second time, as a server does that was set back; return its new position."""
        room = self.room_of_event(event_id)
        return self.rooms.add_raw(room, room.event(event_id).json, is_repeat=True).position

    def revoke(self, *, soft: bool = False) -> None:
        """End the bot's session; *soft*: its device may log in again."""
        for token in [token for token, (user, _) in self._devices.items() if user is self.bot]:
            self._revoked[token] = soft

    # What people see

    def room(self, person: str, title: str | None = None) -> StoredMatrixRoom:
        """Return the room of a person and the bot, or the one with that title, which the person joins."""
        member = self.rooms.person(person)
        known = self._direct.get(person) if title is None else self._named.get(title)
        if known is None:
            created = self.rooms.create(member)
            if title is None:
                self._direct[person] = created.id
            else:
                self.rooms.add(created, "m.room.name", member.user_id, {"name": title}, key="")
                self._named[title] = created.id
                # A room with a name has a third member from the beginning, so that it is none for two.
                self.rooms.change_member(
                    created, self.rooms.person("carol").user_id, "join", by=member.user_id
                )
            self.rooms.change_member(created, self.bot.user_id, "join", by=member.user_id)
            return created
        found = self.rooms.rooms[known]
        if found.membership(member.user_id) != "join":
            self.rooms.change_member(found, member.user_id, "join", by=member.user_id)
        return found

    def room_of_event(self, event_id: str) -> StoredMatrixRoom:
        """Return the room in which an event happened."""
        for room in self.rooms.rooms.values():
            if any(event.event_id == event_id for event in room.events):
                return room
        problem = f"there is no event {event_id!r}"
        raise AssertionError(problem)

    def shown(self, person: str = "", *, room: str | None = None) -> list[dict[str, Any]]:
        """Return the bot's messages that people see, as the homeserver keeps them, with their last edits."""
        title = self._named.get(room or "") if room is not None else self._direct.get(person)
        events = self.rooms.rooms[title].events if title is not None else []
        return [one for one in displayed(list(events)) if one["sender"] == self.bot.user_id]

    def texts(self, person: str = "", *, room: str | None = None, thread: str | None = None) -> list[str]:
        """Return what the bot has said to a person, in a room or in one of its threads, as plain text."""
        shown = self.shown(person, room=room)
        return [
            str(one["content"]["body"])
            for one in shown
            if thread is None or relation_of(one, "m.thread") == thread
        ]

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the bot that people see, wherever they stand."""
        places = {room_id: person for person, room_id in self._direct.items()}
        places |= {room_id: f"#{title}" for title, room_id in self._named.items()}
        for room in list(self.rooms.rooms.values()):
            for one in displayed(list(room.events)):
                if one["sender"] == self.bot.user_id:
                    yield BotMessage(places.get(room.id, room.id), one["event_id"], one["content"]["body"])

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake."""
        account = {"user": self.bot.user_id, "access_token": self.token, "device": DEVICE}
        return {"homeserver": self.url, **account}

    async def is_taken(self, event: str | int, *, seconds: float = 10) -> bool:
        """Wait for the sync behind the one that told of an event; return whether the bot has it."""
        position = event if isinstance(event, int) else self.room_of_event(event).event(event).position
        await self.wait_until(lambda: self.delivered_to >= position, seconds=seconds)
        begun = self._syncs_begun
        with anyio.move_on_after(PATIENCE_SECONDS):  # who has gone syncs no more
            while self.synced_to < position and self._syncs_begun <= begun + 1:
                await anyio.sleep(LOOK_SECONDS)
        return self.synced_to >= position

    @property
    def syncs(self) -> bool:
        """Whether a sync waits for news since the last one."""
        return self._sync_waits

    @property
    def pending(self) -> int:
        """The number of messages of people that the bot has not told to have."""
        return sum(
            event.position > self.synced_to and event.json.get("sender") != self.bot.user_id
            for room in list(self.rooms.rooms.values())
            for event in list(room.events)
        )

    # The server

    async def _answer(self, request: FakeRequest) -> FakeResponse:
        if request.path == "/_matrix/client/versions":
            return FakeResponse.of_json({"versions": ["r0.6.1", "v1.1", "v1.11", "v1.13"]})
        try:
            call = self._call_of(request)
        except MatrixRefusalError as refusal:
            return _refused(refusal)
        if not isinstance(call, HomeserverCall):
            return call
        fault = self.faults.next_for(call.name, call.parameters)
        response = await self._response(call, fault)
        self._log_call(call.name, call.parameters, response)
        return response

    def _call_of(self, request: FakeRequest) -> HomeserverCall | FakeResponse:
        """Return what is asked for, and by whom; a login, which nobody has to be known for, is answered."""
        if request.path.endswith("/login") and request.path.startswith("/_matrix/client/"):
            return self._login(request)
        user, device = self._caller(request)
        route = route_of(request.method, request.path)
        if route is None:
            raise MatrixRefusalError(404, "M_UNRECOGNIZED", "Unrecognized request")
        name, given = route
        is_json = name != "upload" and request.body.startswith(b"{")
        body = _object(request.body) if is_json else {}
        kind = request.headers.get("content-type", "")
        return HomeserverCall(
            name=name,
            parameters={**request.query, **body, **given},
            user=user,
            device_id=device,
            body=request.body,
            content_type=kind,
        )

    def _caller(self, request: FakeRequest) -> tuple[HomeserverUser, str]:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        token = token or request.query.get("access_token", "")
        if not token:
            raise MatrixRefusalError(401, "M_MISSING_TOKEN", "Missing access token")
        if token not in self._devices or token in self._revoked:
            raise unknown_token(soft=self._revoked.get(token, False))
        return self._devices[token]

    def _login(self, request: FakeRequest) -> FakeResponse:
        if request.method == "GET":
            return FakeResponse.of_json({"flows": [{"type": "m.login.password"}, {"type": "m.login.token"}]})
        given = _object(request.body)
        name = str(given.get("identifier", {}).get("user") or given.get("user") or "")
        named = name in (self.bot.user_id, self.bot.user_id[1:].partition(":")[0])
        is_known = named and given.get("password") == self.password
        if given.get("type") == "m.login.token":
            is_known = given.get("token") == self.token
        if not is_known:
            return _refused(not_allowed("Invalid username or password"))
        device = str(given.get("device_id") or f"DEVICE{self.rooms.new_id()}")
        token = f"syt_{self.rooms.new_id()}"
        self._devices[token] = (self.bot, device)
        facts = {"user_id": self.bot.user_id, "access_token": token, "device_id": device}
        return FakeResponse.of_json(facts)

    async def _response(self, call: HomeserverCall, fault: Fault | None) -> FakeResponse:
        match fault:
            case CutConnection():
                if fault is CutConnection.AFTER:
                    await self._outcome(call)
                raise ConnectionCutError
            case ServerFault():
                if fault.done:
                    await self._outcome(call)
                return FakeResponse(fault.status, fault.body.encode(), {"content-type": "text/html"})
            case RefusedCall():
                return _refused(not_allowed(fault.problem), status=fault.status)
            case RateLimit():
                return _refused(self._asked_to_wait(_place(call), fault.retry_after))
            case Delay() | None:
                await anyio.sleep(fault.seconds if fault else 0)
                return await self._outcome(call)

    async def _outcome(self, call: HomeserverCall) -> FakeResponse:
        try:
            if (longer := self._pauses.broken(_place(call))) is not None:
                raise limit_exceeded(longer)
            match call.name:
                case "sync":
                    return FakeResponse.of_json(await self._sync(call))
                case "download":
                    file = self.endpoints.file(str(call.parameters["media"]))
                    return FakeResponse(200, file.content, {"content-type": file.media_type})
                case "logout":
                    self.revoke()
                    return FakeResponse.of_json({})
                case _:
                    return FakeResponse.of_json(self.endpoints.table[call.name](call))
        except MatrixRefusalError as refusal:
            return _refused(refusal)

    def _asked_to_wait(self, place: str, seconds: float) -> MatrixRefusalError:
        # What belongs to no room, such as a sync, is refused once and not watched.
        return limit_exceeded(self._pauses.ask(place, seconds) if place else seconds)

    async def _sync(self, call: HomeserverCall) -> dict[str, Any]:
        request = self._sync_request(call)
        is_bot = call.user is self.bot
        if is_bot:
            self._syncs_begun += 1
            self.synced_to = max(self.synced_to, request.since or 0)
        wait = min(float(call.parameters.get("timeout") or 0) / 1000, LONGEST_POLL)
        self._sync_waits = is_bot and request.since is not None
        looked_at = -1
        with anyio.move_on_after(wait):
            while not request.full_state:
                position = self.rooms.position
                if position != looked_at and has_news(self.rooms, self.endpoints.keys, request):
                    break
                looked_at = position
                await anyio.sleep(LOOK_SECONDS)
        self._sync_waits = False
        answer = sync_answer(self.rooms, self.endpoints.keys, request)
        if is_bot:
            self.delivered_to = max(self.delivered_to, position_of(answer["next_batch"]) or 0)
        return answer

    def _sync_request(self, call: HomeserverCall) -> SyncRequest:
        since = call.parameters.get("since")
        if since is not None and position_of(since) is None:
            raise MatrixRefusalError(400, "M_INVALID_PARAM", "Invalid stream token")
        named = str(call.parameters.get("filter") or "{}")
        asked = json.loads(named) if named.startswith("{") else self.endpoints.filters[named]
        room = asked.get("room", {})
        return SyncRequest(
            user_id=call.user.user_id,
            device_id=call.device_id,
            since=position_of(since),
            full_state=call.parameters.get("full_state") == "true",
            timeline_limit=int(room.get("timeline", {}).get("limit", TIMELINE)),
            lazy_members=bool(room.get("state", {}).get("lazy_load_members")),
        )

    # Helpers of people

    def _adds(
        self,
        person: str,
        content: dict[str, Any],
        *,
        room: str | None,
        thread: str | None = None,
        reply_to: str | None = None,
    ) -> str:
        relation: dict[str, Any] = {}
        if thread is not None:
            relation = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": reply_to is None}
        if (answered := reply_to or thread) is not None:
            relation["m.in_reply_to"] = {"event_id": answered}
        where, sender = self.room(person, room), self.rooms.person(person).user_id
        return self.rooms.add(
            where, MESSAGE, sender, {**content, **({"m.relates_to": relation} if relation else {})}
        ).event_id


def _object(body: bytes) -> dict[str, Any]:
    try:
        read = json.loads(body or b"{}")
    except ValueError:
        return {}
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def _place(call: HomeserverCall) -> str:
    """Return the room and its user, who alone is asked to wait; "" for what belongs to no room."""
    room = call.parameters.get("room")
    return f"{call.user.user_id} in {room}" if room else ""


def _refused(refusal: MatrixRefusalError, *, status: int | None = None) -> FakeResponse:
    return FakeResponse.of_json(refusal.as_json(), status=status or refusal.status)
