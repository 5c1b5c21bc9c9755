"""Sending of replies and notices: order on each lane, retries, marks after sending, pauses.

- ``delivery``: `Delivery`: sends the outbox of one account in order, retries failures, and keeps a
  platform's pauses.
- ``receipt_notices``: Hints that may be lost, such as notices about messages that came in, sent at once and
  never repeated.
- ``sent_marks``: Notes that replies were sent, written in batches or with the next transaction.
"""
