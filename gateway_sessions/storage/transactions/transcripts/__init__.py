"""Transactions on the messages of a session, and on the use of models that is counted with them.

- ``authors``: Authors of messages, noted before a session changes its owner or a summary replaces messages.
- ``message_windows``: Windows of messages around a message, both ends of a session, and people's latest
  messages.
- ``messages``: Append messages to a session, and read them page by page or as the conversation for a model.
- ``rewind``: Rewind a conversation by turns or to a message, and restore what was hidden.
- ``rewrite``: Replace, compact or clear a conversation, and edit or retract messages in every copy of it.
- ``usage``: Count each use of a model once, on its session and entry, and sum up use for reports.
"""
