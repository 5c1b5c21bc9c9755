"""Database engines: each runs transactions on SQLite, PostgreSQL or MySQL and raises our errors.

- ``membership``: A node's membership in a cluster: its heartbeats, and when it must not act because none
  arrived.
- ``migrations``: Schema versions: which migrations a database needs, and when it is too new or too old to
  use.
- ``mysql``: The engine for MySQL and MariaDB, on asyncmy.
- ``opening_retry``: Retries while a store is opened on a server that cannot be used yet.
- ``postgresql``: The PostgreSQL engine, on asyncpg.
- ``protocol``: `Engine`: the protocol that a database implements, with parts for shared and for embedded
  ones.
- ``registry``: The choice of an engine by a URL or path, and the providers that other packages register.
- ``search_column``: The search column of server databases: the tokens that are written with each message,
  and queries.
- ``server``: Parts that the PostgreSQL and the MySQL engine share.
- ``sqlite``: The SQLite engine: the file of a store, its threads, backups and the salvage of damaged
  files.
- ``upgrade``: Open a database without its store, and bring its schema up to date on request.
"""
