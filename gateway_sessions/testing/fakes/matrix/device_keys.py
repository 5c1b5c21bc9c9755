"""Keys of devices on a fake homeserver, and the messages that devices send each other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway_sessions.testing.fakes.matrix.rooms import HomeserverRooms

ONE_TIME: Final = "signed_curve25519"
"""The only kind of one-time keys that today's clients use."""
ALL_DEVICES: Final = "*"


@dataclass(frozen=True, slots=True)
class DeviceMessage:
    """A message to one device, which waits until that device has told that it has it."""

    position: int
    user_id: str
    device_id: str
    event: dict[str, Any]


@dataclass
class DeviceKeys:
    """The keys that devices have uploaded. The homeserver hands them out, and can read nothing by them."""

    rooms: HomeserverRooms
    devices: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=dict[str, dict[str, dict[str, Any]]]
    )
    """The keys of devices, by the ids of their users and their own."""
    waiting: list[DeviceMessage] = field(default_factory=list[DeviceMessage])
    holds_back_from: str | None = None
    """The user whose devices get their messages later than what is said in rooms, as from a slow server."""
    _one_time: dict[tuple[str, str], dict[str, Any]] = field(
        default_factory=dict[tuple[str, str], dict[str, Any]]
    )
    _changed_at: dict[str, int] = field(default_factory=dict[str, int])
    _transactions: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _held_back: list[tuple[str, str, dict[str, Any]]] = field(
        default_factory=list[tuple[str, str, dict[str, Any]]]
    )

    def upload(self, user_id: str, device_id: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the keys of a device, and return how many of them can still be given out."""
        if (keys := content.get("device_keys")) is not None:
            self.devices.setdefault(user_id, {})[device_id] = keys
            self._changed_at[user_id] = self.rooms.next_position()
        self._one_time.setdefault((user_id, device_id), {}).update(content.get("one_time_keys", {}))
        return {"one_time_key_counts": self.counts(user_id, device_id)}

    def counts(self, user_id: str, device_id: str) -> dict[str, int]:
        """Return how many one-time keys of a device can still be given out."""
        return {ONE_TIME: len(self._one_time.get((user_id, device_id), {}))}

    def query(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of all devices of some users."""
        asked = content.get("device_keys", {})
        return {"device_keys": {user_id: self.devices.get(user_id, {}) for user_id in asked}, "failures": {}}

    def claim(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Give out one key for each device, and none a second time."""
        given: dict[str, dict[str, Any]] = {}
        for user_id, devices in content.get("one_time_keys", {}).items():
            for device_id in devices:
                left = self._one_time.get((user_id, device_id), {})
                if left:
                    name = next(iter(left))
                    given.setdefault(user_id, {})[device_id] = {name: left.pop(name)}
        return {"one_time_keys": given, "failures": {}}

    def send(
        self, sender: str, kind: str, content: Mapping[str, Any], transaction: tuple[str, str]
    ) -> dict[str, Any]:
        """Let messages wait for devices; the same transaction happens once."""
        if transaction in self._transactions:
            return {}
        self._transactions.add(transaction)
        for user_id, messages in content.get("messages", {}).items():
            for named, message in messages.items():
                event = {"type": kind, "sender": sender, "content": message}
                for device_id in [*self.devices.get(user_id, {})] if named == ALL_DEVICES else [named]:
                    self._held_back.append((user_id, device_id, event))
        self._let_go()
        return {}

    def release(self) -> None:
        """Hold nothing back any more."""
        self.holds_back_from = None
        self._let_go()

    def _let_go(self) -> None:
        held, self._held_back = self._held_back, []
        for user_id, device_id, event in held:
            if user_id == self.holds_back_from:
                self._held_back.append((user_id, device_id, event))
            else:
                self.waiting.append(DeviceMessage(self.rooms.next_position(), user_id, device_id, event))

    def synced(self, user_id: str, device_id: str, since: int | None, now: int) -> dict[str, Any]:
        """Return what a sync tells a device of keys and messages; forget the messages that it has."""

        def is_old(one: DeviceMessage) -> bool:
            is_its_own = (one.user_id, one.device_id) == (user_id, device_id)
            return is_its_own and since is not None and one.position <= since

        self.waiting = list(itertools.filterfalse(is_old, self.waiting))
        mine = [
            one.event
            for one in self.waiting
            if (one.user_id, one.device_id) == (user_id, device_id) and one.position <= now
        ]
        changed = [one for one, at in self._changed_at.items() if (since or 0) < at <= now]
        return {
            "to_device": {"events": mine},
            "device_lists": {"changed": changed, "left": []},
            "device_one_time_keys_count": self.counts(user_id, device_id),
        }
