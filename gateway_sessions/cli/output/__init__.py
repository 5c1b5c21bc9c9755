"""The output for people and programs: JSON, tables, pages and live views.

- ``json``: The answer of a command as one line of JSON, and the report of a failure.
- ``json_lines``: Lines of JSON, written to the standard output or to a file that appears only when it is
  complete.
- ``live``: The overview of a store, printed once or redrawn until Ctrl-C.
- ``queues``: The tables of waiting messages, owed replies and dead letters.
- ``reports``: The pages of insights, an explained lane, a simulation, an erasure, a store's health and its
  settings.
- ``sessions``: Lists and pages of sessions, messages and search hits.
- ``terminal``: The console, tables that fit its width, progress bars, and harmless forms of strangers'
  texts.
"""
