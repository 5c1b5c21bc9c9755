"""The answer of a fake homeserver to a sync: what happened in one's rooms since a token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from gateway_sessions.testing.fakes.matrix.device_keys import DeviceKeys
from gateway_sessions.testing.fakes.matrix.rooms import (
    MEMBER,
    HomeserverRooms,
    StoredMatrixEvent,
    StoredMatrixRoom,
)

TIMELINE: Final = 10
"""The events of a room in one sync, unless the filter says otherwise."""
_STRIPPED: Final = ("m.room.create", "m.room.name", "m.room.join_rules", "m.room.encryption")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """Who syncs, from where, and with which filter."""

    user_id: str
    device_id: str
    since: int | None
    full_state: bool = False
    timeline_limit: int = TIMELINE
    lazy_members: bool = False


def position_of(token: str | None) -> int | None:
    """Return the position that a token stands for: everything up to it has been told."""
    if token is None or token[:1] not in ("s", "t") or not token[1:].isdigit():
        return None
    return int(token[1:])


def has_news(rooms: HomeserverRooms, keys: DeviceKeys, request: SyncRequest) -> bool:
    """Return whether a sync would tell anything."""
    answer = sync_answer(rooms, keys, request)
    told = (answer["rooms"], answer["to_device"], answer["device_lists"])
    return request.since is None or any(any(one.values()) for one in told)


def sync_answer(rooms: HomeserverRooms, keys: DeviceKeys, request: SyncRequest) -> dict[str, Any]:
    """Return the answer to a sync."""
    now = rooms.position
    found: dict[str, dict[str, Any]] = {"join": {}, "invite": {}, "leave": {}}
    for room in list(rooms.rooms.values()):
        match room.membership(request.user_id, now):
            case "join":
                if joined := _joined(room, request, now):
                    found["join"][room.id] = joined
            case "invite":
                if invited := _invited(room, request):
                    found["invite"][room.id] = invited
            case _:
                if request.since and room.membership(request.user_id, request.since) == "join":
                    found["leave"][room.id] = {"timeline": {"events": [], "limited": False}}
    return {
        "next_batch": f"s{now}",
        "rooms": found,
        "account_data": {"events": []},
        "presence": {"events": []},
        **keys.synced(request.user_id, request.device_id, request.since, now),
    }


def _joined(room: StoredMatrixRoom, request: SyncRequest, now: int) -> dict[str, Any] | None:
    since = request.since
    # To a member who is new to the room, the sync shows its last events, also those before the join.
    fresh = since is None or room.membership(request.user_id, since) != "join"
    after = 0 if fresh or since is None else since
    news = [event for event in room.events if after < event.position <= now]
    timeline = news[-request.timeline_limit :] if request.timeline_limit else []
    start = timeline[0].position - 1 if timeline else now
    whole_state = fresh or request.full_state
    state = [event for event in room.state(start).values() if whole_state or event.position > after]
    typing = room.typing_changed_at > after
    if not (timeline or state or typing or whole_state):
        return None
    senders = {event.json.get("sender") for event in timeline} | {request.user_id}
    shown = [one for one in state if not _is_left_out(one, request, senders)]
    return {
        "timeline": {
            "events": [as_shown(event, request.device_id) for event in timeline],
            "limited": len(news) > len(timeline),
            "prev_batch": f"t{start}",
        },
        "state": {"events": [as_shown(event, request.device_id) for event in shown]},
        "ephemeral": {"events": [_typing_event(room)] if typing else []},
        "account_data": {"events": []},
        "unread_notifications": {"notification_count": 0, "highlight_count": 0},
        "summary": _summary(room, request) if fresh or _has_members(timeline) else {},
    }


def _is_left_out(event: StoredMatrixEvent, request: SyncRequest, senders: Iterable[object]) -> bool:
    is_member = event.json["type"] == MEMBER
    return request.lazy_members and is_member and event.json["state_key"] not in senders


def _has_members(timeline: list[StoredMatrixEvent]) -> bool:
    return any(event.json.get("type") == MEMBER for event in timeline)


def _summary(room: StoredMatrixRoom, request: SyncRequest) -> dict[str, Any]:
    """Return the counts; as with Synapse, only clients that load members lazily are told."""
    if not request.lazy_members:
        return {}
    others = [one for one in room.members() if one != request.user_id]
    return {
        "m.heroes": others[:5],
        "m.joined_member_count": len(room.members()),
        "m.invited_member_count": len(room.members("invite")),
    }


def _typing_event(room: StoredMatrixRoom) -> dict[str, Any]:
    return {"type": "m.typing", "content": {"user_ids": sorted(room.typing)}}


def _invited(room: StoredMatrixRoom, request: SyncRequest) -> dict[str, Any] | None:
    state = room.state()
    invite = state[MEMBER, request.user_id]
    if request.since is not None and invite.position <= request.since:
        return None
    known = [event for (kind, _), event in state.items() if kind in _STRIPPED]
    inviter = state.get((MEMBER, invite.json["sender"]))
    stripped = [*known, *([inviter] if inviter else []), invite]
    return {"invite_state": {"events": [_stripped(event.json) for event in stripped]}}


def _stripped(event: dict[str, Any]) -> dict[str, Any]:
    return {name: event[name] for name in ("type", "sender", "state_key", "content")}


def as_shown(event: StoredMatrixEvent, device_id: str, room_id: str | None = None) -> dict[str, Any]:
    """Return an event as a client gets it: with the id of the transaction, if the same device sent it."""
    shown = {**event.json, **({"room_id": room_id} if room_id else {})}
    device, transaction = event.transaction
    if transaction and device == device_id:
        shown["unsigned"] = {**event.json.get("unsigned", {}), "transaction_id": transaction}
    return shown
