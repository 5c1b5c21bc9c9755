"""What people and programs see: JSON, tables, pages and live views.

- ``terminal``: the console, tables that fit its width, progress bars, and harmless forms of strangers' texts.
- ``json``: the answer of a command as one line of JSON, and the report of a failure.
- ``json_lines``: values as lines of JSON, to a file that is whole or not there, or to the standard output.
- ``sessions``: lists and pages of sessions, messages and search hits.
- ``reports``: the pages of insights, of an explained lane, of a simulation and of an erasure.
- ``queues``: the tables of waiting messages, owed replies and what was given up.
- ``live``: the overview of a store, once or redrawn until Ctrl-C.
"""
