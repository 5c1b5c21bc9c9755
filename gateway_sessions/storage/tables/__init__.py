"""Functions that read and write rows, table by table; transactions are composed of them.

- ``change``: `Change`: the time, actor, row ids and policies that every change of a lane carries.
- ``column_decoding``: Decoding of column values with errors that name the damaged row, and escaping of text
  for patterns.
- ``entries``: The rows of a lane's entry: load, write, remove and archive it; damaged entries are left
  aside.
- ``inbox``: The rows of queued messages: their order on a lane, which turn is next, and when it may begin.
- ``index_notes``: Notes for the search index that messages it has read were changed, removed or moved.
- ``lanes``: The row of a lane: its lease and token, how many turns wait there, and when the next may begin.
- ``lineage``: Queries along a lineage: the line of compressions around a session, its root, tip and family.
- ``locks``: The names of the locks that transactions take on servers.
- ``message_rows``: Encoding of a `Message` as a row and decoding of rows as messages.
- ``meta``: Facts about the store by name: its epoch, generation, secret, stemming and pending moves.
- ``moves``: The statements that change the state of a message or of a reply, and the moves that each of
  them makes.
- ``nodes``: The rows of the nodes that have the store open: heartbeats, death, and requests between nodes.
- ``sessions``: The rows of sessions as many transactions read them: whose a session is, and how it ended.
- ``sql_files``: Named SQL queries and migrations from `.sql` files, with fragments in the dialect of each
  engine.
- ``tombstones``: Tombstones of erased people: they refuse messages that were sent before the erasure.
"""
