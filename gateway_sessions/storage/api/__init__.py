"""The public methods of `SessionDB`, grouped by subject; each checks its arguments and runs transactions.

- ``erasure``: Methods of `SessionDB` that export or erase a person: rows, search index, log, then every
  copy.
- ``metadata``: Methods of `SessionDB` that keep facts by name for the embedding program.
- ``retention``: Methods of `SessionDB` that delete, prune, export and import sessions.
- ``search``: Methods of `SessionDB` that search messages and sessions, and that check or rebuild the search
  index.
- ``sessions``: Methods of `SessionDB` for session records, titles, lineage and lists of sessions.
- ``transcripts``: Methods of `SessionDB` that append, read, rewind, replace, edit and retract messages.
- ``usage``: Methods of `SessionDB` that record use of models, and that report sessions' use and insights.
"""
