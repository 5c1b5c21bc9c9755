-- name: get_lane
-- Whether a turn runs, how often it was cut off, and which session was resumed elsewhere.
SELECT lease_epoch, attempts, moved_session_id FROM lanes WHERE session_key = ?

-- name: mark_moved
-- The lane's session was resumed elsewhere; its next message will be told.
INSERT INTO lanes (session_key, moved_session_id) VALUES (?, ?)
ON CONFLICT (session_key) DO UPDATE SET moved_session_id = excluded.moved_session_id

-- name: forget_moved
-- The lane has a session again.
UPDATE lanes SET moved_session_id = NULL WHERE session_key = ? AND moved_session_id IS NOT NULL

-- name: lanes_leased_before
-- Turns that an earlier process began and never ended.
SELECT session_key, attempts FROM lanes WHERE lease_epoch < ? ORDER BY session_key

-- name: free_lanes_leased_before
-- Their process is gone, so their leases are.
UPDATE lanes SET lease_epoch = NULL, leased_at = NULL WHERE lease_epoch < ?

-- name: set_attempts
-- How many times in a row the lane's turn was cut off.
INSERT INTO lanes (session_key, attempts) VALUES (?, ?)
ON CONFLICT (session_key) DO UPDATE SET attempts = excluded.attempts

-- name: clear_attempts
-- A turn succeeded.
UPDATE lanes SET attempts = 0 WHERE session_key = ? AND attempts > 0

-- name: tried_lanes
-- Lanes whose turn was cut off and has not succeeded since.
SELECT session_key, attempts FROM lanes WHERE attempts > 0 ORDER BY session_key

-- name: delete_idle_lane
-- Nothing is left to know of the lane.
DELETE FROM lanes WHERE session_key = ? AND lease_epoch IS NULL
