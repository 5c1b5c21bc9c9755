"""The SQLite engine: the file of a store, its threads, backups and the salvage of damaged files.

- ``backup``: Backups of a SQLite file, each verified by reading it back, and vacuum of the file.
- ``engine``: The SQLite engine and its read-only form: one writing connection and several reading ones.
- ``errors``: Translation of SQLite errors to ours.
- ``salvage``: Salvage of a damaged SQLite file: readable rows, a rebuilt database, and text with invalid
  bytes.
- ``schema``: Creation and migration of a SQLite file, and checks whether a file is ours.
- ``worker``: The thread of a SQLite connection: it runs waiting transactions in batches, one commit for
  each batch.
"""
