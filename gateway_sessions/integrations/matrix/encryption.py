"""The port to encryption: what a client library does where only devices with keys can read what is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import parse_qs, urlencode

from gateway_sessions.errors import InvalidInputError

MEGOLM: Final = "m.megolm.v1.aes-sha2"
"""The only algorithm for rooms that the specification has."""


class UnreadableEventError(InvalidInputError):
    """An event does not have the form that the specification describes."""


class MissingKeyError(UnreadableEventError):
    """Nobody has given this device the key of an event; it may come later."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__("it is encrypted, and its key was not given to this device")


class RoomEncryption(Protocol):
    """The keys of one device, and what can be done with them."""

    @property
    def device_id(self) -> str:
        """The device to which the keys belong."""
        ...

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Use the keys within the block, and nobody else; `AdapterUnavailableError` if somebody else does."""
        ...

    def take_keys(self, answer: Mapping[str, Any]) -> None:
        """Take the keys that a sync brings. They are durable when this returns: they come only once."""
        ...

    async def catch_up(self) -> None:
        """Give the homeserver keys to hand out, and tell other devices what they have to know."""
        ...

    def knows(self, room_id: str, session_id: str) -> bool:
        """Return whether the device can read what was encrypted in that session of the room."""
        ...

    def in_clear(self, room_id: str, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return an encrypted event as it was written; `UnreadableEventError` if that is impossible."""
        ...

    async def encrypted(
        self, room_id: str, members: Iterable[str], content: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the content of a message as only the devices of the members can read it."""
        ...

    def encrypted_file(self, content: bytes) -> tuple[bytes, dict[str, Any]]:
        """Return a file as nobody can read it, and what is needed to read it."""
        ...

    def file_in_clear(self, content: bytes, key: FileKey) -> bytes:
        """Return a file as it was; `InvalidInputError` if it is not the one that the key belongs to."""
        ...


class FileKey(NamedTuple):
    """What is needed to read an encrypted file."""

    key: str
    iv: str
    sha256: str


def address_with_key(file: object) -> str:
    """Return the address of an encrypted file, which carries its key behind a #; empty if it is none."""
    match file:
        case {
            "url": str(url),
            "key": {"k": str(key)},
            "iv": str(iv),
            "hashes": {"sha256": str(sha256)},
        } if key and iv and sha256:
            return f"{url}#{urlencode(FileKey(key, iv, sha256)._asdict())}"
        case _:
            return ""


def key_in(address: str) -> FileKey | None:
    """Return the key in an address; None: the file is not encrypted."""
    told = parse_qs(address.partition("#")[2])
    values = [told.get(name, [""])[0] for name in FileKey._fields]
    return FileKey(*values) if all(values) else None


def file_content(address: str, key: FileKey) -> dict[str, Any]:
    """Return what an event says of an encrypted file."""
    json_web_key = {
        "kty": "oct", "alg": "A256CTR", "ext": True, "key_ops": ["encrypt", "decrypt"], "k": key.key,
    }  # fmt: skip
    hashes = {"sha256": key.sha256}
    return {"v": "v2", "url": address.partition("#")[0], "key": json_web_key, "iv": key.iv, "hashes": hashes}


def session_of(content: Mapping[str, Any]) -> str:
    """Return the session in which an event was encrypted; empty if it does not say so."""
    session = cast("object", content.get("session_id"))
    return session if isinstance(session, str) else ""
