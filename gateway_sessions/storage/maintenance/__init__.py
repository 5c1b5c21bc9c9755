"""Checks, repairs and moves of a whole store, which an operator asks for.

- ``copy_store``: Move a store to another database of any engine, resumable and verified, with the source
  unchanged.
- ``repair``: Check a store and repair a damaged one: the report says what was found, done and lost.
- ``unreadable``: Find and mend rows that cannot be decoded; the originals go to the quarantine.
"""
