"""What to do about a database that is damaged, in the words that every surface uses."""

from __future__ import annotations

from typing import Final

MEND_FILE: Final = "stop the gateway, then: gateway-sessions sessiondb repair"
MEND_SERVER: Final = "ask whoever runs the server, who has its backups"
MEND_ELSEWHERE: Final = (
    "it is no file of this store: bring it back from a copy, or let its own program mend it"
)
