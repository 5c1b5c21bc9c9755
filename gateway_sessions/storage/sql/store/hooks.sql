-- name: add_hook_call
-- A hook must be called; the same call is never owed twice.
INSERT INTO hook_calls
    (idempotency_key, hook, session_key, session_id, event, payload, state, attempts, created_at, next_try_at)
VALUES (?, ?, ?, ?, ?, ?, 'owed', 0, ?, ?)
{or_nothing:idempotency_key}

-- name: owed_hook_calls
-- Calls of one hook whose time has come, the oldest first, without those under way.
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
-- The attempt was broken off and does not count.
UPDATE hook_calls SET attempts = attempts - 1, next_try_at = ?, last_error = NULL
WHERE idempotency_key = ? AND state = 'owed'

-- name: bury_hook_call
-- The last attempt was counted and never came to an end.
UPDATE hook_calls SET state = 'dead', next_try_at = 0 WHERE idempotency_key = ? AND state = 'owed'

-- name: delete_hook_call
-- The hook has done its work.
DELETE FROM hook_calls WHERE idempotency_key = ?

-- name: fail_hook_call
-- The attempt failed; it is tried again, or given up.
UPDATE hook_calls SET state = ?, next_try_at = ?, last_error = ? WHERE idempotency_key = ?

-- name: dead_hook_calls
-- Calls that were given up, the newest first.
SELECT idempotency_key, hook, session_key, session_id, event, payload, attempts, created_at, last_error
FROM hook_calls WHERE state = 'dead' ORDER BY created_at DESC, idempotency_key LIMIT ?

-- name: requeue_hook_call
-- Try a call again that was given up.
UPDATE hook_calls SET state = 'owed', attempts = 0, next_try_at = ? WHERE idempotency_key = ? AND state = 'dead'

-- name: next_hook_try
-- When the next call of one hook is due, without those under way.
SELECT min(next_try_at) FROM hook_calls
WHERE state = 'owed' AND hook = ? AND idempotency_key NOT IN ({each_of})
