"""Background work of a store: each duty is a `sweep()` that tests call and a `run()` that repeats it.

- ``backups``: The duty that copies the database at intervals and keeps the newest verified copies.
- ``cluster``: A node at work in a cluster: it takes over lanes of dead nodes, leads, and is notified by
  others.
- ``expiry``: Duties that expire due sessions, prune unused lanes, and remove old sessions and settled
  messages.
- ``loop_lag``: The duty that measures how late the event loop wakes its tasks.
- ``restart_recovery``: Recovery when a store is opened, and the two files that tell operators how the last
  run ended.
- ``session_hooks``: Hooks for ended sessions: registration, and the duty that calls each at least once.
- ``sessions_json_recovery``: Reading of sessions.json at a start: checked against the database, imported,
  or quarantined.
- ``titles``: The duty that gives new sessions a title, from their first words or by a titler.
- ``unfinished_erasures``: The duty that finishes erasures and removals which were cut off.
"""
