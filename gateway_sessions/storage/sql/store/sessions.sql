-- name: session_exists
-- Whether the id is taken.
SELECT 1 FROM sessions WHERE session_id = ?

-- name: any_session
-- Whether there has ever been a session.
SELECT 1 FROM sessions LIMIT 1

-- name: get_session
-- The lane and owner of a session, and its end.
SELECT session_key, owner, ended_at, end_reason, ends, entry FROM sessions WHERE session_id = ?

-- name: add_totals
-- Add the totals of a session without messages.
INSERT INTO totals (session_id, last_active) VALUES (?, ?)

-- name: end_session
-- The session has ended; keep its record so that it can come back. The first reason stands.
UPDATE sessions SET ended_at = ?, end_reason = ?, ends = ends + 1, entry = ? WHERE session_id = ? AND ended_at IS NULL

-- name: reopen_session
-- Let a session go on, on that lane.
UPDATE sessions SET ended_at = NULL, end_reason = NULL, entry = NULL, session_key = ?, owner = ?
WHERE session_id = ?

-- name: add_transition
-- Add a row to the transition log.
INSERT INTO transitions (change_id, session_key, session_id, at, event, from_state, to_state, reason, actor)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: transitions_of_lane
-- The latest transitions of a lane, the newest first.
SELECT at, session_id, event, from_state, to_state, reason, actor
FROM transitions WHERE session_key = ? ORDER BY change_id DESC LIMIT ?
