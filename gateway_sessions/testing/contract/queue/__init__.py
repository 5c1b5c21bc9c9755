"""Contract tests of a store's queue by subject, which every engine must pass.

- ``accounts``: Contract tests of named accounts and of lanes from before they had their own.
- ``admission``: Contract tests of admission: each message once, in order, or refused with a reason.
- ``authors``: Contract tests of authors: each message keeps its author, and erasure and search follow.
- ``bench``: The fixtures of the queue contract, and short functions that enqueue, answer and read.
- ``bursts``: Contract tests of edits and deletions of single messages of a burst, at any time.
- ``contract``: `LedgerContract`: all contract tests of the queue in one class.
- ``edits``: Contract tests of edits and deletions after the turn of a message has begun.
- ``endings``: Contract tests of turns that fail, are stopped, rolled back, released or steered.
- ``growing_replies``: Contract tests of growing replies across tries of a turn.
- ``observed``: Contract tests of observed talk: what people say to each other in a room is kept for the next
  turn.
- ``restarts``: Contract tests of recovery after a restart, and of the erasure of queued messages.
- ``schedules``: Contract tests of schedules and unprompted messages: once for each name and time,
  remembered, forgotten.
- ``turns``: Contract tests of claims and tries: one turn on a lane, in order, only its token may write.
- ``waiting``: Contract tests of changes to waiting messages: list, cancel, move, edit, forget.
"""
