"""The list at which a person chooses a conversation.

- ``keys``: The decoder of what a terminal sends for the keys of its person: bytes in, presses out.
- ``model``: The state of a picker over a list that may be endless, and what each key makes of it.
- ``run``: The loop that brings keys, the database's answers and the terminal together.
- ``terminal``: The terminal in raw mode: every key at once, a screen of its own, and all as it was
  afterwards.
- ``view``: The lines of a picker: as many as the terminal has, none of them wider than it is.
"""
