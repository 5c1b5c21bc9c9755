"""Functions that read and write rows, table by table; transactions are composed of them.

- ``change``: `Change`: the time, actor, row ids and policies that every change of a lane carries.
- ``column_decoding``: Decoding of column values with errors that name the damaged row, and escaping of text
  for patterns.
- ``entries``: The rows of a lane's entry: load, write, remove and archive it; damaged entries are left
  aside.
- ``index_notes``: Notes for the search index that messages it has read were changed, removed or moved.
- ``lanes``: The row of a lane and the rows of its queue: its lease, its messages in order, and which turn
  is next.
- ``lineage``: Queries along a lineage: the line of compressions around a session, its root, tip and family.
- ``message_rows``: Encoding of a `Message` as a row and decoding of rows as messages.
- ``meta``: Facts about the store by name: its epoch, generation, secret, stemming and pending moves.
- ``nodes``: The rows of the nodes that have the store open: heartbeats, death, and requests between nodes.
- ``sessions``: The rows of sessions as many transactions read them: whose a session is, and how it ended.
- ``sql_files``: Named SQL queries and migrations from `.sql` files, with fragments in the dialect of each
  engine.
- ``statements``: The moves that statements make in the state machines of the queue, and the locks that
  statements take.
- ``tombstones``: Tombstones of erased people: they refuse messages that were sent before the erasure.
"""
