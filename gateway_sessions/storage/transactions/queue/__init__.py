"""Transactions on a lane's queue, in the order of a turn: admit, claim, settle, reply, recover.

- ``admit``: Admit a message in one transaction: deduplicate it, find its session, let it wait or start its
  turn.
- ``answers``: The outcome of one accepted message, and the answer that the transcript has to it.
- ``claim``: Claim a lane for its next turn: take the lease, collect the turn's messages, find the session.
- ``clock_set_back``: Repair of due times that a clock wrote while it was ahead, after it was set back.
- ``edits``: Edits and deletions of accepted messages, in the queue, a running turn and every transcript.
- ``erasure``: Erasure of the messages that a person queued and of the replies that they are owed.
- ``lane_and_queue_lookup``: One lookup of all rows that a new message meets: a duplicate, the lane's
  session, and its queue.
- ``outbox``: The outbox: replies are owed in the transaction of their turn, then sent, retried or given up.
- ``recover``: Recovery of turns, commands and replies that a process left behind when it ended.
- ``running_turn``: A running turn: its conversation, appended messages, steering, and its end or return to
  the queue.
- ``schedules``: Schedules and unprompted messages: saved under a name, run once by one node, said and
  remembered together.
- ``slash_commands``: Transactions of slash commands: settle a command with its answers; `/new`, `/branch`
  and `/compress`.
- ``turn_transcript``: The transcript rows of a turn: each message has one visible row, however often the
  turn is tried.
- ``undo_and_retry``: Take turns back for `/undo`, and let answered or failed turns wait again for `/retry`.
- ``waiting``: List, cancel, move and clear waiting turns, requeue dead letters, and stop all work on a
  lane.
"""
