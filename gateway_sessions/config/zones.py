"""The zone of the machine, and suggestions for misspelt names of zones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final
from zoneinfo import available_timezones

from gateway_sessions.core.sessions.reset_times import zone_named
from gateway_sessions.errors import InvalidPolicyError

_ETC: Final = Path("/etc")
_IN_ZONE_DATABASE = re.compile(r"zoneinfo[^/]*/(.+)$")


def system_zone_name(environ: Mapping[str, str] | None = None, *, etc: Path = _ETC) -> str:
    """Return the IANA name of the machine's zone; "UTC" if none is known."""
    for name in _zone_candidates(os.environ if environ is None else environ, etc):
        try:
            return zone_named(name).key
        except InvalidPolicyError:
            continue
    return "UTC"


def similar_zone(name: str) -> str | None:
    """Return the zone whose name or city is most similar to *name*, if any is."""
    known = sorted(available_timezones())
    names = {zone.rpartition("/")[2].casefold(): zone for zone in known} | {
        zone.casefold(): zone for zone in known
    }
    found = get_close_matches(name.strip().replace(" ", "_").casefold(), names, n=1, cutoff=0.7)
    return names[found[0]] if found else None


def _zone_candidates(environ: Mapping[str, str], etc: Path) -> Iterator[str]:
    """Yield the names that the C library would try, then the one in a file of some distributions."""
    if (variable := environ.get("TZ")) is not None:
        yield _zone_name_in_path(variable.removeprefix(":")) or "UTC"
    with suppress(OSError):
        yield _zone_name_in_path((etc / "localtime").readlink().as_posix())
    with suppress(OSError, UnicodeDecodeError):
        yield (etc / "timezone").read_text(encoding="ascii").strip()


def _zone_name_in_path(name: str) -> str:
    found = _IN_ZONE_DATABASE.search(name)
    return found[1] if found else name
