"""Sending of replies and notices: order on each lane, retries, marks after sending, pauses.

- ``delivery``: `Delivery`: sends the outbox of one account in order and retries after failures.
- ``durable_notices``: Durable notices: owed in the same transaction as the message or command that they are
  about.
- ``notices``: Notices that may be lost, such as acknowledgements, sent at once through the adapter of a
  message.
- ``pauses``: Pauses that a platform asked for, by account and chat.
- ``sent_marks``: Notes that replies were sent, written in batches or with the next transaction.
"""
