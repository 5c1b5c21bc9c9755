"""What a gateway does without a message of a person: it says something, begins turns by itself, or asks.

- ``parts``: `UnpromptedParts`: the speaker, the schedules and the questions of one gateway, put together.
- ``questions``: `Questions`: submits a message and waits for the answer of its turn, on whichever node that
  runs.
- ``schedules``: `Schedules`: what the gateway says or begins by itself, added by name and run when its time
  comes.
- ``speaking``: `Speaker`: says what answers no message, now or at a time, durably and once for each
  idempotency key.
"""
