"""Events, incidents and explanations: what a store and its gateway report about themselves.

- ``event_stream``: The stream of events of a store and its gateway, with bounded listeners that miss the
  oldest.
- ``explain``: The explanation why a lane has its session, and what its next message will do.
- ``incidents``: The latest incidents of a store: damage and faults that were found and dealt with.
"""
