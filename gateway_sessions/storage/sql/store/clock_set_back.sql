-- name: latest_stamp
-- The latest time of any open work, or of any message.
SELECT max(stamp) FROM (
    SELECT max(last_at) AS stamp FROM inbox WHERE outcome IS NULL
    UNION ALL SELECT max(leased_at) FROM lanes WHERE lease_epoch IS NOT NULL
    UNION ALL SELECT max(created_at) FROM outbox WHERE state IN ('owed', 'sending')
    UNION ALL SELECT max(created_at) FROM hook_calls WHERE state = 'owed'
    UNION ALL SELECT max(erased_at) FROM tombstones
    UNION ALL SELECT max(last_active) FROM totals
) AS stamps

-- name: pull_items_forward
-- Let turns begin that wait for a time too far away.
UPDATE inbox SET ready_at = ? WHERE outcome IS NULL AND token IS NULL AND ready_at > ?

-- name: pull_lanes_forward
-- Let lanes be ready that wait for a time too far away.
UPDATE lanes SET ready_at = ? WHERE ready_at > ?

-- name: pull_replies_forward
-- Replies that are tried again at a time that has yet to come are tried at once.
UPDATE outbox SET next_try_at = ? WHERE state = 'owed' AND next_try_at > ?

-- name: pull_hook_calls_forward
-- Let hook calls be due that wait for a time yet to come.
UPDATE hook_calls SET next_try_at = ? WHERE state = 'owed' AND next_try_at > ?

-- name: pull_tombstones_forward
-- Move erasures to now that lie in the future, so that new messages are accepted.
UPDATE tombstones SET erased_at = ? WHERE erased_at > ?
