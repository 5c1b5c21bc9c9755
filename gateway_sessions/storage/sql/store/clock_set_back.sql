-- name: latest_stamp
-- The latest time at which anything was written that is still to be done, or was said.
SELECT max(stamp) FROM (
    SELECT max(last_at) AS stamp FROM inbox WHERE outcome IS NULL
    UNION ALL SELECT max(leased_at) FROM lanes WHERE lease_epoch IS NOT NULL
    UNION ALL SELECT max(created_at) FROM outbox WHERE state IN ('owed', 'sending')
    UNION ALL SELECT max(created_at) FROM hook_calls WHERE state = 'owed'
    UNION ALL SELECT max(erased_at) FROM tombstones
    UNION ALL SELECT max(last_active) FROM totals
) AS stamps

-- name: pull_items_forward
-- Turns that wait for a time that is too far away wait no longer.
UPDATE inbox SET ready_at = ? WHERE outcome IS NULL AND token IS NULL AND ready_at > ?

-- name: pull_lanes_forward
-- Neither do their lanes.
UPDATE lanes SET ready_at = ? WHERE ready_at > ?

-- name: pull_replies_forward
-- Replies that are tried again at a time that has yet to come are tried at once.
UPDATE outbox SET next_try_at = ? WHERE state = 'owed' AND next_try_at > ?

-- name: pull_hook_calls_forward
-- So are calls of hooks.
UPDATE hook_calls SET next_try_at = ? WHERE state = 'owed' AND next_try_at > ?

-- name: pull_tombstones_forward
-- Nobody was erased later than now: what people say from now on is taken.
UPDATE tombstones SET erased_at = ? WHERE erased_at > ?
