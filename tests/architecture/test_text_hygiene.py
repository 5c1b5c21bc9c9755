"""What is committed works anywhere: it names no folder of one machine and no host to install from."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Joined here, or this file would be the first to fail.
FORBIDDEN = tuple(
    "".join(parts)
    for parts in (
        ("/", "work", "/"),
        ("/", "root", "/"),
        ("/", "opt", "/", "wheels"),
        ("/", "opt", "/", "pypi"),
        ("pypi", ".org"),
        ("python", "hosted", ".org"),
        ("npmjs", ".org"),
        ("debian", ".org"),
    )
)


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git work tree: nothing says which files are tracked")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_tracked_file_names_a_folder_of_one_machine_or_a_package_index():
    found = [
        f"{path.relative_to(ROOT)}: {words}"
        for path in tracked_files()
        for text in [path.read_bytes().decode("utf-8", errors="replace")]
        for words in FORBIDDEN
        if words in text
    ]
    assert found == []
