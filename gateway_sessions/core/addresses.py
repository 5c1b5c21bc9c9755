"""Masking of URLs in text that is shown: host and path stay, user, password and query are hidden."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(\S*)")
_PLACE = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:@/?#\[\]]*)(?::[0-9]{0,5})?")
"""The pattern of a host, with or without a port."""
_PARTS = re.compile(r"([^/?#]*)([^?#]*)(.*)", re.DOTALL)
_SECRET_PART = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[^/]{20,}|[^/]*:[^/]*")
"""The pattern of a path's part that is long and random, or holds a name and a key, as addresses of bots
do."""
_SECRET_OPTION = re.compile(r"((?:pass\w*|pwd|secret|token|key)\s*=\s*)[^&\s]+", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Return the text with every address in it masked: only host and path are shown."""
    return _SECRET_OPTION.sub(rf"\1{HIDDEN}", _ADDRESS.sub(lambda found: found[1] + _masked(found[2]), text))


def _masked(rest: str) -> str:
    """Return the masked rest after `scheme://`; of an irregular address any part may be a password."""
    parts = _PARTS.fullmatch(rest)
    authority, path, options = parts.groups() if parts else ("", "", "")
    _, at, place = authority.rpartition("@")
    # A password with `/`, `?` or `#` in it goes on after the part that looks like the host.
    if "@" in path + options or not _PLACE.fullmatch(place):
        return HIDDEN
    user = f"{HIDDEN}@" if at else ""
    shown = "/".join(HIDDEN if _SECRET_PART.fullmatch(part) else part for part in path.split("/"))
    return f"{user}{place}{shown}{options[:1]}{HIDDEN if options[1:] else ''}"
