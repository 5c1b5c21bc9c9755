"""The way of a message to its turn: inbound messages, receipts, busy modes, commands, the state machine.

- ``admission``: Admission decisions from counts in memory: whether there is room for a message, and fair
  shares.
- ``busy_modes``: The plan of a message on a busy lane: it waits, merges, steers, interrupts, rolls back or
  is refused.
- ``edits``: Edits and deletions of the platform messages that one transcript row holds, planned as values.
- ``inbound``: `InboundMessage`: a message as an adapter submits it, its receipt, and the transcript row
  made of it.
- ``items``: Values about a queue for people and programs: waiting messages, dead letters, outcomes.
- ``slash_commands``: Arguments of slash commands, and the messages of a turn that `/retry` asks again.
- ``state_machine``: The state machines of a queued message and of a reply as tables, and the outcomes of a
  turn.
"""
