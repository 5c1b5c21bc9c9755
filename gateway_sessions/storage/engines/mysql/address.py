"""Parsing of a MySQL or MariaDB URL, with its TLS options."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from gateway_sessions.errors import InvalidInputError

SCHEMES: Final = frozenset({"mysql", "mariadb"})
PORT: Final = 3306
_NO_ADDRESS: Final = "this is no address of a MySQL database: mysql://user@host:3306/name"
_OPTIONS: Final = frozenset({"unix-socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"})
_MODES: Final = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
_PREFERRED: Final = _MODES[1]
_UNVERIFIED: Final = frozenset(_MODES[:3])
"""The modes in which a server's certificate is not checked."""


class ClosesWithoutAnswer(ssl.SSLObject):
    """Ends a TLS connection without waiting for the server to confirm the end.

    The confirmation may take half a minute, or longer than the event loop lives.
    """

    def unwrap(self) -> None:
        """Send the end of the connection, and return at once."""
        with suppress(ssl.SSLWantReadError):
            super().unwrap()


@dataclass(frozen=True, slots=True)
class MySQLAddress:
    """Holds the parts of the URL of a MySQL or MariaDB database."""

    database: str
    host: str = "localhost"
    port: int = PORT
    user: str | None = None
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def tls_context_maker(self) -> Callable[[], ssl.SSLContext] | None:
        """Return what makes the TLS context, which reads files; None if TLS is not wanted."""
        mode = self._mode
        if mode == "DISABLED" or (mode == _PREFERRED and "unix-socket" in self.options):
            return None
        return lambda: _tls_context(mode, self.options)

    @property
    def merely_prefers_tls(self) -> bool:
        """Return True if a server without TLS will do as well."""
        return self._mode == _PREFERRED

    @property
    def _mode(self) -> str:
        return self.options.get("ssl-mode", _MODES[-1] if "ssl-ca" in self.options else _PREFERRED)

    def connect_arguments(self) -> dict[str, Any]:
        """Return the arguments of `asyncmy.connect`, without those for TLS."""
        found: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password.encode(),
            "database": self.database,
        }
        return found | ({"unix_socket": self.options["unix-socket"]} if "unix-socket" in self.options else {})


def parse_address(address: str) -> MySQLAddress:
    """Parse a URL; raise `InvalidInputError`, which does not quote the URL, if it is none of MySQL."""
    try:
        parts = urlsplit(address)
        options = {name.replace("_", "-").lower(): value for name, value in parse_qsl(parts.query)}
        found = MySQLAddress(
            database=unquote(parts.path.removeprefix("/")),
            host=unquote(parts.hostname or "localhost"),
            port=parts.port or PORT,
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password or ""),
            options=options,
        )
    except ValueError:
        # The cause would quote the address, with the password in it.
        raise InvalidInputError(_NO_ADDRESS) from None
    if parts.scheme.lower() not in SCHEMES or not found.database or "/" in found.database:
        raise InvalidInputError(_NO_ADDRESS)
    if not options.keys() <= _OPTIONS:  # the error does not name the option: it may be half of a password
        problem = f"an address has no options but {', '.join(sorted(_OPTIONS))}"
        raise InvalidInputError(problem)
    if options.get("ssl-mode", _PREFERRED) not in _MODES:
        problem = f"ssl-mode must be one of {', '.join(_MODES)}"
        raise InvalidInputError(problem)
    return found


def _tls_context(mode: str, options: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ssl-ca"))
        context.sslobject_class = ClosesWithoutAnswer
        context.check_hostname = mode == "VERIFY_IDENTITY"
        context.verify_mode = ssl.CERT_NONE if mode in _UNVERIFIED else ssl.CERT_REQUIRED
        if "ssl-cert" in options:
            context.load_cert_chain(options["ssl-cert"], options.get("ssl-key"))
    except OSError as error:
        problem = f"the certificates that the address names cannot be used: {error.strerror or error}"
        raise InvalidInputError(problem) from error
    return context
