"""What some errors list: values that know how to say themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionCandidate:
    """A session that somebody may have meant."""

    session_id: str
    title: str | None
    source: str

    def __str__(self) -> str:
        return f"{self.session_id} ({self.source}, {self.title or 'no title'})"


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing that is wrong in a configuration: where, what, and what may have been meant."""

    path: str
    message: str
    line: int | None = None
    suggestion: str | None = None

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        hint = f" (did you mean {self.suggestion!r}?)" if self.suggestion else ""
        return f"{place}{self.path}: {self.message}{hint}"
