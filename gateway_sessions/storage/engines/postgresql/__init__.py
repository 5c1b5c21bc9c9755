"""The PostgreSQL engine, on asyncpg.

- ``engine``: The PostgreSQL engine and its read-only form: the connection pool, dialect and limits.
- ``errors``: Translation of PostgreSQL errors to ours, without addresses and quoted values.
- ``locks``: Advisory locks of transactions on PostgreSQL, and the report which connections hold them.
- ``notifications``: The connection beside the pool that sends heartbeats and notifies other nodes by
  LISTEN/NOTIFY.
- ``schema``: Migrations of a PostgreSQL database, all in one transaction, and checks of the server.
- ``transaction``: A PostgreSQL connection for one transaction, and several queries sent as one.
"""
