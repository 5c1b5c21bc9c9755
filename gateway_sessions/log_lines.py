"""Log records as lines of text, and a handler for programs without a configured log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from gateway_sessions.core.display_text import visible_text

_STANDARD_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {
    "action",
    "asctime",
    "message",
    "taskName",
}
"""Attributes that are not shown as facts, because each record has them or the line begins with them."""


class LogLines(logging.Formatter):
    """Formats a record as one line with its facts; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without control characters, and the traceback after it, if there is one."""
        facts = {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}
        told = "".join(f" {name}={visible_text(str(value))}" for name, value in facts.items())
        action = getattr(record, "action", record.name)
        line = f"{record.levelname} {action}: {visible_text(record.getMessage())}{told}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class UnconfiguredLogging(logging.Handler):
    """Writes warnings and errors to stderr as long as no other handler gets them.

    Python does the same for a logger without handlers, but without the facts of a record.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(LogLines())

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless the program has configured logging or has no stderr."""
        if sys.stderr is None or _has_another_handler(record.name, self):
            return
        try:
            print(self.format(record), file=sys.stderr, flush=True)  # noqa: T201 -- nothing else would show it
        except (OSError, ValueError):  # stderr is closed, or nobody reads it
            self.handleError(record)


@contextmanager
def without_log_lines(logger: logging.Logger) -> Generator[None]:
    """Keep the records of a logger from stderr in the block, because the program reports errors itself."""
    handler = logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _has_another_handler(name: str, this: logging.Handler) -> bool:
    """Return whether a record of that logger reaches any handler besides this one."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if any(handler is not this for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False
