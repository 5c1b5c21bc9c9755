"""Transactions that read whole sessions for an export and write them for an import.

- ``export``: Read whole sessions for an export, in pages of bounded size.
- ``import_entries``: Import entries of lanes from a snapshot or from Hermes; a lane with a session keeps
  it.
- ``import_session``: Import one session: encode its rows, and settle clashes of its id, title and parent.
"""
