"""`QueueListener`: hears, for a gateway, of the turns of its queue and of other nodes."""

from __future__ import annotations


class QueueListener:
    """Hears of the turns of a queue; this one ignores everything."""

    wants_versions: bool = True
    """Whether turns need the version of the transcript, to tell whether a warm agent has seen it."""

    def hear_waiting_turn(self, session_key: str) -> None:
        """Hear of a lane on which a turn waits and none runs."""

    def hear_overtaken_turn(self, session_key: str, token: int) -> None:
        """Hear of a lane whose turn may not write any more, and of that turn's token."""

    def hear_removed_turns(self) -> None:
        """Hear that waiting turns were removed: people may be owed notices about that."""

    def look_for_work(self) -> None:
        """Hear that other nodes may have left work to this one."""

    def stop_all_turns(self) -> None:
        """Hear that no turn may go on here, because other nodes may take the lanes over."""


DEAF = QueueListener()
