"""The databases and files of a store: transactions, engines, the search index, snapshot, control socket.

- ``api``: The public methods of `SessionDB`, grouped by subject; each checks its arguments and runs
  transactions.
- ``control``: The control socket by which other programs of the same user ask the owner of a store.
- ``database``: `SessionDB`: opens a database by its URL and runs transactions, with the methods of
  `storage/api`.
- ``engines``: Database engines: each runs transactions on SQLite, PostgreSQL or MySQL and raises our
  errors.
- ``files``: Files on disk: durable replacement, private modes, and threads for blocking calls.
- ``hermes``: Readers for the home of Hermes: its database, routing table and sessions.json.
- ``home``: The directory of a store: created private, checked for its filesystem, locked by one owner
  process.
- ``listener``: `DatabaseListener`: hears what a database reports, and does for an erasure what only the
  store can do.
- ``maintenance``: Checks, repairs and moves of a whole store, which an operator asks for.
- ``ownership``: `Ownership`: this process as the owner of a store, or as one node of it, with its epoch and
  its ids.
- ``search``: The search index of each engine, and searches whose candidates are checked against the
  messages.
- ``sessions_json``: The writer of the snapshot: one task that writes the newest state of sessions.json for
  all callers.
- ``tables``: Functions that read and write rows, table by table; transactions are composed of them.
- ``transaction_runner_protocol``: The protocol behind the methods of `SessionDB`: run a transaction, read
  the clock, make ids.
- ``transactions``: Units of work as plain generators that yield named statements, written once for all
  engines.
- ``transfer``: Exports of sessions to files and imports from files.
"""
