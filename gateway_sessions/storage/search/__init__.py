"""The search index of each engine, and searches whose candidates are checked against the messages.

- ``protocol``: `Index`: the protocol of a search index, and the report of its state.
- ``search``: A search from query to hits: candidates of the search index, checked in the database and
  ranked.
- ``server_index``: The search index in a server database: queries, and the duty that fills in missing
  messages.
- ``sqlite_file``: The file `search.db`: its tables, word list and checks, and its removal when it is
  damaged.
- ``sqlite_index``: The search index of a SQLite store: the duty that fills and rebuilds it, and queries
  against it.
- ``sqlite_match``: Translation of a search query to an FTS5 match expression.
- ``stemming``: The stems of an open store: chosen when it is opened, and followed by its engine and
  search index.
"""
