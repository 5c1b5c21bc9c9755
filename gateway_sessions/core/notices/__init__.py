"""Texts that people and agents get from the gateway itself, and the wording of times and sizes.

- ``command_replies``: Answers to slash commands: the queue, turns, compression, the status, the help.
- ``error_replies``: Answers to commands that failed: for each error, the notice that tells a person why.
- ``human_units``: Times, sizes and counts as people read and type them, and advice for damaged databases.
- ``notice``: `Notice`: the words of a notice with its code and its arguments, for other words.
- ``notice_texts``: Notices about busy lanes, budgets, resets and cut-off turns, and notes to agents.
- ``session_replies``: Answers about conversations: a new one, an earlier one, a copy, the title, the model.
"""
