"""`hide_in_request_log`: keeps the tokens that stand in addresses out of the log of the HTTP client."""

from __future__ import annotations

import logging
import re
from typing import Final

_REQUESTS: Final = logging.getLogger("httpx2")
"""The logger to which the client writes each request at INFO, with its whole address."""


def hide_in_request_log(secret: re.Pattern[str]) -> None:
    """Let the log show `…` in place of each part of an address that *secret* matches.

    Some platforms want a token in the path. Whoever can read a log could then speak as the bot.
    """
    _REQUESTS.addFilter(_Hiding(secret))


class _Hiding(logging.Filter):
    """Passes every record on, without the secret in its arguments."""

    def __init__(self, secret: re.Pattern[str]) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                self._secret.sub("…", str(one)) if self._secret.search(str(one)) else one
                for one in record.args
            )
        return True
