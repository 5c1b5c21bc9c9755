"""Readers for the home of Hermes: its database, routing table and sessions.json.

- ``database``: Read-only access to a Hermes database, without a change to it or a file beside it.
- ``home``: A Hermes home: its lanes from the routing table and sessions.json, and its sessions for an
  import.
- ``rows_to_sessions``: Conversion of Hermes rows of any version to exported sessions.
"""
