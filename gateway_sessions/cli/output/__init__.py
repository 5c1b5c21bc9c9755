"""What people and programs see: JSON, tables, pages and live views.

- ``json``: The answer of a command as one line of JSON, and the report of a failure.
- ``json_lines``: Values as lines of JSON, to a file that is whole or not there, or to the standard output.
- ``live``: The overview of a store, once or redrawn until Ctrl-C.
- ``queues``: The tables of waiting messages, owed replies and what was given up.
- ``reports``: The pages of insights, an explained lane, a simulation, an erasure, a store's health and its
  settings.
- ``sessions``: Lists and pages of sessions, messages and search hits.
- ``terminal``: The console, tables that fit its width, progress bars, and harmless forms of strangers'
  texts.
"""
