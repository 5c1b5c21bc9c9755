"""Sending of replies and notices: order on each lane, retries, marks after sending, pauses.

- ``adapter_memory``: `StoredMemory`: the durable memory of an adapter, in the store beside the sessions.
- ``delivery``: `Delivery`: sends the outbox of one account in order, retries failures, and keeps a
  platform's pauses.
- ``fetching``: Fetching of the files that people send, through the adapter of their account.
- ``notice_wording``: The words of notices that a program gives instead of ours, such as translations.
- ``receipt_notices``: Hints that may be lost, such as notices about messages that came in, sent at once and
  never repeated.
- ``sending``: The send of a reply, and the marks that replies were sent, written in batches or with the
  next transaction.
"""
