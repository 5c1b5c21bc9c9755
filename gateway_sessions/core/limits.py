"""What the values of a configuration may be: each check says what is wrong with one key, or nothing."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from gateway_sessions.core.instants import LONGEST
from gateway_sessions.error_details import ConfigProblem
from gateway_sessions.errors import ConfigError

MOST: Final = 1_000_000
"""More of anything is a mistake."""

Finding: TypeAlias = tuple[str, str] | None
"""A key and what is wrong with it."""


def check_section(section: str, *findings: Finding) -> None:
    """Raise `ConfigError` with all that was found wrong in a section."""
    problems = [ConfigProblem(f"{section}.{key}", message) for key, message in filter(None, findings)]
    if problems:
        raise ConfigError(section, problems)


def choice(key: str, value: str, choices: type[StrEnum]) -> Finding:
    """Say what is wrong with a word."""
    return None if value in set(choices) else (key, f"must be one of {', '.join(choices)}")


def count(key: str, value: int, *, most: int = MOST) -> Finding:
    """Say what is wrong with a number of things."""
    return None if 1 <= value <= most else (key, f"must be from 1 to {most}")


def time(key: str, value: timedelta, *, zero: bool = False) -> Finding:
    """Say what is wrong with a duration."""
    if value < timedelta(0) or (not value and not zero):
        return key, f"must be {'0 or more' if zero else 'more than 0'}"
    return None if value <= LONGEST else (key, "must be a century at most")


def off_or_time(key: str, value: timedelta | None) -> Finding:
    """Say what is wrong with a duration that can be off."""
    if value is None or timedelta(0) < value <= LONGEST:
        return None
    return key, "must be 0 (off) or more, and a century at most"
