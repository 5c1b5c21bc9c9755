"""Texts that people and agents get from the gateway itself, and the wording of times and sizes.

- ``command_replies``: Answers to slash commands: the queue, lists of sessions, the status, the help.
- ``human_units``: Times, sizes and counts as people read and type them, and advice for damaged databases.
- ``notice_texts``: Notices about busy lanes, budgets, resets and cut-off turns, to people and to agents.
"""
