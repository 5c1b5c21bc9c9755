"""`QueueListener`: what a gateway hears of the queue that it works on."""

from __future__ import annotations


class QueueListener:
    """Hears what becomes of the turns of a queue, as far as this process does it; this one is deaf."""

    @property
    def wants_versions(self) -> bool:
        """Whether turns shall know what the transcript is like, to tell whether a warm agent has seen it."""
        return True

    def ready(self, session_key: str) -> None:
        """Hear of a lane on which a turn waits and none runs."""

    def overtaken(self, session_key: str, token: int) -> None:
        """Hear of a lane whose turn may not write any more, and of that turn's token."""

    def taken_out(self) -> None:
        """Hear that what waited waits no more: people may be owed a word about it."""


DEAF = QueueListener()
