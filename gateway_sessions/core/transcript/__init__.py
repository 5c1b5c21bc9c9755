"""Messages of a session as values, and what of them a model or a person gets to read.

- ``messages``: `Message`: one stored message of a session, and windows, versions and previews made of
  messages.
- ``model_history``: The conversation that a provider accepts, made of a transcript that may break off
  anywhere.
- ``recap``: The last exchanges of a conversation in brief, for people who resume it.
- ``session_context_prompt``: The block of a system prompt that tells an agent where it talks and where it
  can deliver.
"""
