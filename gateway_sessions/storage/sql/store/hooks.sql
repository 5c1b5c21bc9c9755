-- name: add_hook_call
-- Owe a call of a hook; the same call is never owed twice.
INSERT INTO hook_calls
    (idempotency_key, hook, session_key, session_id, event, payload, state, attempts, created_at, next_try_at)
VALUES (?, ?, ?, ?, ?, ?, 'owed', 0, ?, ?)
{or_nothing:idempotency_key}

-- name: owed_hook_calls
-- The due calls of one hook, the oldest first, without the running ones.
SELECT idempotency_key, hook, session_key, session_id, event, payload, attempts, created_at
FROM hook_calls
WHERE state = 'owed' AND hook = ? AND next_try_at <= ?
  AND idempotency_key NOT IN ({each_of})
ORDER BY next_try_at, idempotency_key LIMIT ?

-- name: begin_hook_call
-- Count the attempt before the hook runs, so that a crash in it counts as well. Its outcome replaces the error.
UPDATE hook_calls SET attempts = attempts + 1, next_try_at = ?, last_error = 'the process ended in this attempt'
WHERE idempotency_key = ? AND state = 'owed'

-- name: withdraw_hook_call
-- Take back an attempt that was broken off: it does not count.
UPDATE hook_calls SET attempts = attempts - 1, next_try_at = ?, last_error = NULL
WHERE idempotency_key = ? AND state = 'owed'

-- name: bury_hook_call
-- Give up a call whose last attempt was counted and never came to an end.
UPDATE hook_calls SET state = 'dead', next_try_at = 0 WHERE idempotency_key = ? AND state = 'owed'

-- name: delete_hook_call
-- Remove a call that was made.
DELETE FROM hook_calls WHERE idempotency_key = ?

-- name: fail_hook_call
-- Store a failed attempt: the call is tried again, or given up.
UPDATE hook_calls SET state = ?, next_try_at = ?, last_error = ? WHERE idempotency_key = ?

-- name: dead_hook_calls
-- Calls that were given up, the newest first.
SELECT idempotency_key, hook, session_key, session_id, event, payload, attempts, created_at, last_error
FROM hook_calls WHERE state = 'dead' ORDER BY created_at DESC, idempotency_key LIMIT ?

-- name: requeue_hook_call
-- Owe a call again that was given up.
UPDATE hook_calls SET state = 'owed', attempts = 0, next_try_at = ? WHERE idempotency_key = ? AND state = 'dead'

-- name: next_hook_try
-- The time of the next call of one hook, without the running ones.
SELECT min(next_try_at) FROM hook_calls
WHERE state = 'owed' AND hook = ? AND idempotency_key NOT IN ({each_of})
