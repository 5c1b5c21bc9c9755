"""Exports of sessions to files and imports from files.

- ``export_files``: Export of sessions to a file page by page, whole or not at all, and the lines of an
  import file.
- ``import_files``: Import of sessions from lines, one transaction each, with a report of findings.
"""
