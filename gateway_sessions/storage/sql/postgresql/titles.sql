-- name: titled_session
-- Whose session it is, what it is called, and who called it so.
SELECT owner, session_key, title, title_by FROM sessions WHERE session_id = $1

-- name: holder_of_title
-- The session of that owner that has the title.
SELECT session_id, session_key FROM sessions WHERE owner = $1 AND title = $2

-- name: set_title
-- What the session is called, and who says so.
UPDATE sessions SET title = $1, title_by = $2 WHERE session_id = $3

-- name: titles_of_owner
-- One title, and those in a range.
SELECT title FROM sessions WHERE owner = $1 AND (title = $2 OR title BETWEEN $3 AND $4)

-- name: titled_sessions
-- Visible sessions with a title, or with one in a range.
SELECT session_id, owner, title, started_at FROM sessions
WHERE (title = $1 OR title BETWEEN $2 AND $3)
    AND ($4::bigint <> 0 OR owner IN (SELECT jsonb_array_elements_text($5::jsonb)) OR session_key = $6)

-- name: sessions_between
-- Visible sessions with ids in a range, in their order; those of sub-agents are nobody's to resume.
SELECT session_id FROM sessions
WHERE session_id > $1 AND session_id BETWEEN $2 AND $3 AND coalesce(relation, '') <> 'delegate'
  AND ($4::bigint <> 0 OR owner IN (SELECT jsonb_array_elements_text($5::jsonb)) OR session_key = $6)
ORDER BY session_id LIMIT $7

-- name: session_candidate
-- What tells a session from others at a glance.
SELECT session_id, title, source FROM sessions WHERE session_id = $1

-- name: first_exchange
-- What people and the agent said first, as much of it as a title needs.
SELECT role, substr(content, 1, $1) FROM messages
WHERE session_id = $2 AND role = $3 AND hidden_because IS NULL AND observed = 0 ORDER BY seq LIMIT $4

-- name: untitled_session
-- Whether the session wants a title: it has none, and began by itself.
SELECT owner, source FROM sessions
WHERE session_id = $1 AND title IS NULL AND coalesce(relation, '') NOT IN ('continuation', 'delegate')
