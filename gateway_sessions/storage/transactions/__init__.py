"""Units of work as plain generators that yield named statements, written once for all engines.

A transaction is a plain generator: it yields named statements, receives their rows and returns a value. It
never awaits, asks the time, makes randomness or calls user code; those arrive as arguments.

- ``queue``: Transactions on a lane's queue, in the order of a turn: admit, claim, settle, reply, recover.
- ``search``: Transactions of a search: work for the search index, scans of messages, and hits.
- ``sessions``: Transactions on lanes and their sessions: find, replace, change, split, title, expire,
  remove.
- ``transcripts``: Transactions on the messages of a session, and on the use of models that is counted with
  them.
- ``transfer``: Transactions that read whole sessions for an export and write them for an import.
- ``upkeep``: Transactions on a store as a whole: erasure, consistency, mending of damaged rows, status,
  copying.
"""
