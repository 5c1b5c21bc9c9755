"""Identities: sources of messages, session keys, owners, scopes, pseudonyms and named accounts.

- ``account_lane_assignment``: The choice which named account gets a lane from before named accounts had
  lanes of their own.
- ``hermes_keys``: Session keys in the spelling of Hermes, and the lanes whose keys would collide there.
- ``keys``: Session keys: how a source becomes the key of its lane, the owner of its sessions and the
  author.
- ``pseudonyms``: Keyed pseudonyms for the ids of people and chats, and the scrubber that puts them into
  free text.
- ``row_ids``: Row ids: 63-bit integers in the process, text in JSON, because JSON readers round large
  numbers.
- ``scope``: `Scope`: the owners and the lane whose sessions a read may see.
- ``source``: `SessionSource`: the platform, account, chat, person and thread that a message came from.
"""
