"""Fakes of platforms at the terminal: what is typed, people do; what the bot says is shown.

- ``acts``: What people can do on a faked platform, and what an operator can do to it.
- ``platforms``: The platforms that can be faked, each with what its fake offers.
- ``terminal``: A fake of a platform at the terminal: lines to configure, people to type for, and the bot's
  messages.
- ``typed_lines``: The lines that an operator types: who writes what where, or does what.
"""
