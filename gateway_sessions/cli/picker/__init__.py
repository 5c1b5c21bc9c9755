"""The list at which a person chooses a conversation.

- ``model``: the state of a picker as one frozen value, and what each key makes of it.
- ``view``: the lines that the terminal shows of a picker.
- ``keys``: the decoder of what a terminal sends for the keys of its person.
- ``terminal``: the terminal in raw mode, drawn line by line, and as it was before afterwards.
- ``run``: the loop that brings keys, the database's answers and the terminal together.
"""
