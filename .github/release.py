"""Say whether a tag, the version and the changelog agree: `python .github/release.py v1.2.3`.

With `--notes` it prints what the changelog says of that version, for the page of the release.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
UNRELEASED = "Unreleased"


@dataclass(frozen=True)
class Entry:
    """One version in the changelog: its heading, and what stands below it."""

    version: str
    date: str | None
    notes: str


def entries(changelog: str) -> list[Entry]:
    """Return what the changelog has, the newest first."""
    found = list(HEADING.finditer(changelog))
    ends = [one.start() for one in found[1:]] + [len(changelog)]
    return [
        Entry(one["version"], one["date"], changelog[one.end() : end].strip())
        for one, end in zip(found, ends, strict=False)  # without a heading there is one end
    ]


def version_of(pyproject: str) -> str:
    """Return the version of the package, which stands in one place."""
    return str(tomllib.loads(pyproject)["project"]["version"])


def disagreements(tag: str, version: str, changelog: str) -> Iterator[str]:
    """Yield why the tag must not be released, a sentence each."""
    if tag != f"v{version}":
        yield f"The tag is {tag}, and pyproject.toml says {version}."
    all_entries = entries(changelog)
    released = [one for one in all_entries if one.version != UNRELEASED]
    if not released or released[0].version != version:
        newest = released[0].version if released else "nothing"
        yield f"The newest version of CHANGELOG.md is {newest}, and pyproject.toml says {version}."
    elif released[0].date is None:
        yield f"The heading of {version} in CHANGELOG.md has no date: ## [{version}] - YYYY-MM-DD."
    elif not released[0].notes:
        yield f"CHANGELOG.md says nothing of {version}."
    if any(one.version == UNRELEASED and one.notes for one in all_entries):
        yield "CHANGELOG.md has changes under [Unreleased], which would be released unnamed."


def main(tag: str, *options: str) -> int:
    """Print the disagreements, or the notes; return 1 if there are any of the former."""
    version = version_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    wrong = list(disagreements(tag, version, changelog))
    if wrong:
        sys.stderr.writelines(f"{line}\n" for line in wrong)
        return 1
    if "--notes" in options:
        sys.stdout.write(next(one.notes for one in entries(changelog) if one.version == version) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
