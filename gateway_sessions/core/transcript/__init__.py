"""Messages of a session as values, and what of them a model or a person gets to read.

- ``chat_rows``: Transcript rows reduced to the members of the chat completions protocol.
- ``messages``: `Message`: one stored message of a session, and windows, versions and previews made of
  messages.
- ``recap``: The last exchanges of a conversation in brief, for people who resume it.
- ``replay``: The conversation that a provider accepts, made of a transcript that may break off anywhere.
- ``system_prompt``: The block of a system prompt that tells an agent where it talks and where it can
  deliver.
"""
