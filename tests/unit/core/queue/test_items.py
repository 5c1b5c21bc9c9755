"""What would be cancelled is what is."""

from datetime import UTC, datetime

import pytest

from gateway_sessions import InboundMessage, SessionSource
from gateway_sessions.core.queue.items import QueuedMessage, messages_to_cancel

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MESSAGE = InboundMessage(source=SessionSource(platform="irc", chat_id="1"), text="x")


def queued(seq: int, *, running: bool = False, merged_into: int | None = None) -> QueuedMessage:
    return QueuedMessage(
        seq=seq, session_key="k", message=MESSAGE, admitted_at=NOW, running=running, merged_into=merged_into
    )


LISTED = [queued(1, running=True), queued(2), queued(3, merged_into=2), queued(4)]


@pytest.mark.parametrize(
    ("seq", "gone"), [(None, [2, 3, 4]), (1, []), (2, [2, 3]), (3, [3]), (4, [4]), (5, [])]
)
def test_a_turn_goes_with_all_its_parts_and_what_runs_stays(seq: int | None, gone: list[int]):
    assert [one.seq for one in messages_to_cancel(LISTED, seq)] == gone
