"""The queue of an open store: admission of messages, routing to sessions, and turns.

- ``admission``: Admission in memory, before the database: known duplicates, full lanes, room and fair
  shares.
- ``aliases``: Resolvers that map the identifiers of a person, such as WhatsApp ids, to one, with a cache.
- ``edits``: Edits and deletions of messages, applied in the queue, the running turn and transcripts.
- ``listener``: `QueueListener`: hears, for a gateway, of the turns of its queue and of other nodes.
- ``observed``: `ObservedTalk`: keeps what people say to each other in a room, for the agent's next turn
  there.
- ``queue_operations``: `QueueOperations`: runs the queue transactions of an open store: admit, claim,
  settle and stop.
- ``routing``: The way of a message to its session: the lane, the cached entry, one shared lookup for many
  callers.
- ``turn``: `Turn`: the right to answer on a lane, with its messages and the ways to end it, each once.
- ``waiting``: `WaitingTurns`: counts of waiting turns by lane and owner, and the changes that people make
  to them.
"""
