"""The peer's equivalent of whole turns: what its gateway writes for one message, called directly.

It has no queue and no outbox that is written with the answer, so it does less than a turn of ours.
"""

from __future__ import annotations

import itertools
import time
from contextlib import closing
from pathlib import Path

from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.message_timing import rate
from tests.benchmarks.peers.hermes_touch import filled, source_of
from tests.benchmarks.peers.hermes_transcripts import opened


def turns(folder: str, together: int, lanes: int, operations: int) -> Figures:
    """Turns on the first of these lanes, one lane after the other: its lock lets one write at a time."""
    store = filled(folder, lanes)
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    with closing(opened(str(Path(folder, "state")))) as database:
        entries = [store.get_or_create_session(source_of(number)) for number in range(together)]
        for entry in entries:
            database.create_session(entry.session_id, "telegram", user_id="u1")
        for number in range(operations):
            said, answered = next(texts), next(texts)
            start = time.perf_counter_ns()
            entry = store.get_or_create_session(source_of(number % together))
            database.append_message(entry.session_id, "user", said)
            database.append_message(entry.session_id, "assistant", answered)
            database.update_token_counts(entry.session_id, input_tokens=10, output_tokens=10)
            store.update_session(entry.session_key, last_prompt_tokens=10)
            measured.append(time.perf_counter_ns() - start)
    return rate(measured)


if __name__ == "__main__":
    answer({"turns": turns})
