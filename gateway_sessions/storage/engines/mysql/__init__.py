"""The engine for MySQL and MariaDB, on asyncmy.

- ``address``: Parsing of a MySQL or MariaDB URL, with its TLS options.
- ``asyncmy_types``: Typed declarations for the parts of asyncmy that the engine uses, and the pool it
  makes.
- ``connection``: A MySQL connection: its settings, prepared statements, bulk inserts and row locks.
- ``engine``: The MySQL and MariaDB engine and its read-only form, with the connection that sends
  heartbeats.
- ``errors``: Translation of MySQL and MariaDB errors to ours, without addresses and quoted values.
- ``schema``: Migrations of a MySQL or MariaDB database, step by step, because definitions cannot be
  rolled back.
"""
