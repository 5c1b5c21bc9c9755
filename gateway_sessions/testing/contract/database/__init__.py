"""Contract tests of `SessionDB` by subject, which every engine must pass.

- ``bench``: The fixtures of the database contract, and short functions that fill and read a database.
- ``isolation``: Contract tests of scopes, of concurrent and cancelled calls, and of reopening.
- ``metadata``: Contract tests of the facts that a program keeps by name.
- ``retention``: Contract tests of deletion, pruning and erasure.
- ``search``: Contract tests of search, before and after the search index has read the messages.
- ``sessions``: Contract tests of session records, lineage, compressions and branches.
- ``titles_and_lists``: Contract tests of titles, of lookup by id or title, and of lists.
- ``transcripts``: Contract tests of messages: append, rewind, edit, windows, and the conversation of a
  model.
- ``transfer``: Contract tests of exports, imports, and round trips of both.
- ``unstorable_values``: Contract tests of values that no database or JSON can hold: replaced and reported,
  or refused.
- ``usage``: Contract tests of use, costs and the insights report.
"""
