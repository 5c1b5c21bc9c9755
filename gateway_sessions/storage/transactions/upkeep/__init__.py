"""Transactions on a store as a whole: erasure, consistency, mending of damaged rows, status, copying.

- ``adapter_notes``: Notes that adapters keep by name: where they have fetched messages up to, and what they
  have sent.
- ``consistency``: Find rows of different tables that contradict each other, and mend them.
- ``copy_store``: Copy a store into another database table by table: pages of rows, progress and checksums.
- ``erasure``: Erase a person from every table in repeatable steps, with a plan that outlives the process.
- ``message_erasure``: Erase the messages of a person in sessions of other owners, session by session.
- ``metadata``: Facts that the embedding program keeps by name, apart from the store's own facts.
- ``status``: Counts of lanes, turns, sessions, messages and replies, for operators.
- ``unreadable_rows``: Find rows and facts whose columns cannot be decoded, and the values that replace
  them.
"""
