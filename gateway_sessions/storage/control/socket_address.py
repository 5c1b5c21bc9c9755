"""The path of the control socket of a home, and the check of the user at its other end.

The system bounds the path of a socket to about a hundred bytes. A home with a longer path has its socket in
a directory of this user, below the one that the system gives to running programs, and a note in the home
holds the path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import struct
import sys
import tempfile
from pathlib import Path
from typing import Final

from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.storage.files.atomic_file import read_whole_file, write_atomically
from gateway_sessions.storage.files.private_files import make_private_directory

SOCKET_FILE: Final = "sessions.sock"
NOTE_FILE: Final = "sessions.sock.path"
LONGEST_PATH: Final = 103
"""Bytes: what macOS allows, which is a few less than on Linux."""
HAS_SOCKETS: Final = hasattr(socket, "AF_UNIX") and sys.platform != "win32"

_LINUX: Final = struct.Struct("3i")
"""The process, user and group of a peer."""
_BSD: Final = struct.Struct("2I")
"""The version of the structure, and the user of a peer."""


def prepare_address(home: Path) -> Path:
    """Return a path at which a socket for *home* can be bound, after removing an old socket there."""
    near = home / SOCKET_FILE
    place = near
    if len(os.fsencode(near)) > LONGEST_PATH:
        place = _short_path_for(home)
        write_atomically(home / NOTE_FILE, os.fsencode(place))
    else:
        (home / NOTE_FILE).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(place.lstat().st_mode):
            raise UnsupportedStorageError(str(place), "is in the way of the control socket; remove it")
        place.unlink()
    return place


def find_address(home: Path) -> Path | None:
    """Return the socket at which the owner of *home* listens, if there is one."""
    if not HAS_SOCKETS:
        return None
    note = read_whole_file(home / NOTE_FILE)
    place = home / SOCKET_FILE if note is None else Path(os.fsdecode(note))
    return place if place.is_socket() else None


def forget_address(home: Path) -> None:
    """Remove the socket and its note."""
    with contextlib.suppress(OSError):
        if (place := find_address(home)) is not None:
            place.unlink(missing_ok=True)
        (home / NOTE_FILE).unlink(missing_ok=True)


def is_trusted_peer(connection: socket.socket, *, trusted: int | None = None) -> bool:
    """Return True if the program at the other end runs as this user, as root, or as the *trusted* user."""
    return _peer_user(connection) in {0, os.geteuid(), trusted}


def owner_of_home(home: Path) -> int:
    """Return the user that the home belongs to, whom root trusts as well."""
    return home.stat().st_uid


def _peer_user(connection: socket.socket) -> int:
    """Return the user of the other end; where the system does not tell, the files' modes keep others out."""
    if hasattr(socket, "SO_PEERCRED"):
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX.size)
        return int(_LINUX.unpack(told)[1])
    if sys.platform == "darwin":  # pragma: no cover -- the option of another system
        level, option = 0, 1
        return int(_BSD.unpack_from(connection.getsockopt(level, option, 128))[1])
    return os.geteuid()  # pragma: no cover -- systems without either


def _short_path_for(home: Path) -> Path:
    """Return a short path of a socket for *home*, in a directory that only this user can open."""
    directory = _runtime_directory()
    make_private_directory(directory)
    status = directory.lstat()
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    name = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
    place = directory / f"{name}.sock"
    if not private or len(os.fsencode(place)) > LONGEST_PATH:
        raise UnsupportedStorageError(
            str(directory), "is no private directory with a short path, so there is no control socket"
        )
    return place


def _runtime_directory() -> Path:
    """Return the directory of this user's sockets: among temporary files if the system gives none."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and Path(given).is_dir():
        return Path(given) / "gateway-sessions"
    return Path(tempfile.gettempdir()) / f"gateway-sessions-{os.geteuid()}"
