"""Writes `tests/data/hermes_vectors.json`: what Hermes 0.19.0 answers, as data that our tests compare with.

Needs an environment of its own with `hermes-agent==0.19.0` and `freezegun`. From the root of the repository:

    TZ=UTC <environment>/bin/python -m tests.benchmarks.peers.hermes_vectors

Only the peer's public functions and classes are called, on homes that are thrown away. The output is the same
every time: clocks are frozen, random ids are seeded, and the home's path is replaced by a word.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[2] / "data" / "hermes_vectors.json"

NOTES = {
    "keys": "source and flags -> key; fields and flags that are left out have their defaults",
    "whatsapp_keys": "alias_files: what the bridge wrote; canonical: what the peer makes of each identifier",
    "keys_without_identifier": "nothing but a platform and a chat type: everybody shares one lane there",
    "deliberate_differences": "the peer joins parts raw; equal keys in this list are its collisions",
    "shared": "is_shared_multi_user_session over the same fields and flags",
    "resets": "policy, updated_at and now (naive, the zone is UTC) -> reason or null; the session is plain",
    "sources": "SessionSource.to_dict() with its order of members, and description",
    "sources_read": "SessionSource.from_dict(stored).to_dict(), or the name of the error",
    "decisions": "one get_or_create_session on a lane whose session has no row in the database",
    "scenarios": "steps on one lane, with what each left behind",
    "files": "sessions.json as the peer wrote it, and rows of its routing table; {SESSIONS_DIR} is the scope",
}


def main() -> None:
    """Ask the peer everything, in a home of its own, and write the answers."""
    if time.tzname[0] != "UTC":
        sys.exit("run me with TZ=UTC")
    with tempfile.TemporaryDirectory() as home:
        os.environ["HERMES_HOME"] = home
        sections = ask(Path(home))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(rendered(sections), encoding="utf-8")
    for name, items in sections.items():
        print(f"{len(items):5} {name}")
    print(f"{TARGET.stat().st_size:5} bytes")


def ask(home: Path) -> dict[str, Any]:
    """Every section. The peer reads its home at import, so the import waits for the environment."""
    from tests.benchmarks.peers import hermes_files, hermes_keys, hermes_resets  # noqa: PLC0415

    return {
        "keys": hermes_keys.keys(),
        "whatsapp_keys": hermes_keys.whatsapp_keys(home),
        "keys_without_identifier": hermes_keys.keys_without_identifier(),
        "deliberate_differences": hermes_keys.deliberate_differences(),
        "shared": hermes_keys.shared(),
        "sources": hermes_keys.sources(),
        "sources_read": hermes_keys.sources_read(),
        "resets": hermes_resets.resets(home),
        "decisions": hermes_resets.decisions(home),
        "scenarios": hermes_files.scenarios(home),
        "files": hermes_files.files(home),
    }


def rendered(sections: dict[str, Any]) -> str:
    """JSON with one item per line, so that a difference is readable."""
    peer = {"name": "hermes-agent", "version": version("hermes-agent")}
    parts = [f'"peer": {json.dumps(peer)}', f'"notes": {json.dumps(NOTES, indent=1)}']
    for name, items in sections.items():
        lines = ",\n".join(json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items)
        parts.append(f'"{name}": [\n{lines}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main()
