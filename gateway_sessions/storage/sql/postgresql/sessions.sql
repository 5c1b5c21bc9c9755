-- name: session_exists
-- Whether the id is taken.
SELECT 1 FROM sessions WHERE session_id = $1

-- name: any_session
-- Whether there has ever been a session.
SELECT 1 FROM sessions LIMIT 1

-- name: get_session
-- Where a session belongs, and whether it has ended.
SELECT session_key, owner, ended_at, end_reason, ends, entry FROM sessions WHERE session_id = $1

-- name: add_session
-- A new incarnation of a conversation.
INSERT INTO sessions (session_id, session_key, owner, source, user_id, parent_session_id, relation, started_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: add_totals
-- Nothing was said in it yet.
INSERT INTO totals (session_id, last_active) VALUES ($1, $2)

-- name: end_session
-- The session has ended; keep its record so that it can come back. The first reason stands.
UPDATE sessions SET ended_at = $1, end_reason = $2, ends = ends + 1, entry = $3 WHERE session_id = $4 AND ended_at IS NULL

-- name: reopen_session
-- The session goes on, here.
UPDATE sessions SET ended_at = NULL, end_reason = NULL, entry = NULL, session_key = $1, owner = $2
WHERE session_id = $3

-- name: add_transition
-- What happened, and who did it.
INSERT INTO transitions (change_id, session_key, session_id, at, event, from_state, to_state, reason, actor)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: transitions_of_lane
-- The latest of them, newest first.
SELECT at, session_id, event, from_state, to_state, reason, actor
FROM transitions WHERE session_key = $1 ORDER BY change_id DESC LIMIT $2
