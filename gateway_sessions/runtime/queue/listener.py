"""`QueueListener`: what a gateway hears of the queue that it works on, and of other nodes."""

from __future__ import annotations


class QueueListener:
    """Hears what becomes of the turns of a queue; this one does nothing with it."""

    wants_versions: bool = True
    """Whether turns need the version of the transcript, to tell whether a warm agent has seen it."""

    def ready(self, session_key: str) -> None:
        """Hear of a lane on which a turn waits and none runs."""

    def overtaken(self, session_key: str, token: int) -> None:
        """Hear of a lane whose turn may not write any more, and of that turn's token."""

    def taken_out(self) -> None:
        """Hear that what waited waits no more: people may be owed a word about it."""

    def look(self) -> None:
        """Hear that other nodes may have left something to do."""

    def silence(self) -> None:
        """Hear that nothing may go on that runs here: other nodes may take the lanes over."""


DEAF = QueueListener()
