"""The format of sessions.json, the snapshot of all current entries, which Hermes can read as well.

- ``entries``: One entry of the snapshot as JSON, in our dialect and in that of Hermes.
- ``file_format``: The snapshot file: its layout, checksums and encoder, and a reader that keeps damaged
  entries apart.
- ``import_plan``: The plan of an import of snapshot entries: which lane keeps a session that several
  lanes name.
"""
