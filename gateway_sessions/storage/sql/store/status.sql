-- name: count_lanes
-- The number of lanes that have a session.
SELECT count(*) FROM entries

-- name: lanes_in_use
-- Lanes where a turn runs, then lanes where one waits, each kind from the oldest on.
SELECT session_key, lease_epoch, lease_token, leased_at, attempts, waiting, ready_at FROM (
    SELECT session_key, lease_epoch, lease_token, leased_at, attempts, waiting, ready_at
    FROM lanes WHERE lease_epoch IS NOT NULL
    UNION ALL
    SELECT session_key, lease_epoch, lease_token, leased_at, attempts, waiting, ready_at
    FROM lanes WHERE lease_epoch IS NULL AND ready_at IS NOT NULL) AS used
ORDER BY CASE WHEN lease_epoch IS NULL THEN 1 ELSE 0 END, coalesce(leased_at, ready_at), session_key LIMIT ?

-- name: oldest_on_lane
-- The time since which a message waits on a lane.
SELECT min(admitted_at) FROM inbox
WHERE session_key = ? AND outcome IS NULL AND token IS NULL AND kind IN ('message', 'internal')

-- name: count_work
-- The numbers of running and waiting turns, owed replies, and dead letters.
SELECT (SELECT count(*) FROM lanes WHERE lease_epoch IS NOT NULL) AS turns_running,
    (SELECT coalesce({sum:waiting}, 0) FROM lanes WHERE lease_epoch IS NOT NULL) AS waiting_behind,
    (SELECT coalesce({sum:waiting}, 0) FROM lanes WHERE lease_epoch IS NULL AND ready_at IS NOT NULL) AS waiting_ready,
    (SELECT min(admitted_at) FROM inbox
        WHERE outcome IS NULL AND token IS NULL AND kind IN ('message', 'internal')) AS oldest_waiting,
    (SELECT count(*) FROM outbox WHERE state IN ('owed', 'sending')) AS owed_replies,
    (SELECT count(*) FROM inbox WHERE outcome = 'dead') AS dead_messages,
    (SELECT count(*) FROM outbox WHERE state = 'dead') AS dead_replies

-- name: count_running
-- The number of turns that each opening of the store has begun and not ended.
SELECT lease_epoch, count(*) FROM lanes WHERE lease_epoch IS NOT NULL GROUP BY lease_epoch

-- name: count_by_source
-- The number of sessions of each source.
SELECT source, count(*) FROM sessions GROUP BY source ORDER BY 2 DESC, 1

-- name: count_messages
-- The number of messages, summed up from the totals, because counting rows takes long.
SELECT coalesce({sum:message_count}, 0) FROM totals

-- name: first_entries_due
-- Entries whose policies may be due first.
SELECT {entry}
FROM entries JOIN clocks USING (entry_id) WHERE due_at IS NOT NULL ORDER BY due_at, session_key LIMIT ?
