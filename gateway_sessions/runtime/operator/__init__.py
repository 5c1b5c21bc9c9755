"""Tools for operators of a store that another process owns: a client, health checks, an overview.

- ``health``: Health checks of a store, from its disk to its dead letters, each with advice.
- ``overview``: The overview of a store in use for `gsess top`: its owner, running turns, queue and next
  resets.
- ``store_client``: A client for a store: it reads the database directly and asks the owner for changes.
"""
