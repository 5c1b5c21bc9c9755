-- name: titled_session
-- Whose session it is, what it is called, who called it so, and whose it was then.
SELECT owner, session_key, title, title_by, title_owner FROM sessions WHERE session_id = ?

-- name: holder_of_title
-- The session of that owner that has the title.
SELECT session_id, session_key FROM sessions WHERE owner = ? AND title = ?

-- name: set_title
-- What the session is called, who says so, and whose it was when they did: if nobody knows better, whose it is.
UPDATE sessions SET title = ?, title_by = ?, title_owner = coalesce(?, owner) WHERE session_id = ?

-- name: titles_of_owner
-- One title, and those in a range, by the index of titles: an owner may have very many other sessions, so theirs is not used.
SELECT title FROM sessions WHERE owner = ? AND title = ?
UNION ALL
SELECT title FROM sessions WHERE coalesce(owner, '') = ? AND title BETWEEN ? AND ?

-- name: titled_sessions
-- Visible sessions with a title, or with one in a range.
SELECT session_id, owner, title, started_at FROM sessions
WHERE (title = ? OR title BETWEEN ? AND ?) AND {in_sight:sessions}

-- name: sessions_between
-- Visible sessions with ids in a range, in their order; those of sub-agents are nobody's to resume.
SELECT session_id FROM sessions
WHERE session_id > ? AND session_id BETWEEN ? AND ? AND coalesce(relation, '') <> 'delegate'
  AND {in_sight:sessions}
ORDER BY session_id LIMIT ?

-- name: session_candidate
-- What tells a session from others at a glance.
SELECT session_id, title, source FROM sessions WHERE session_id = ?

-- name: first_exchange
-- What people and the agent said first, as much of it as a title needs.
SELECT role, substr(content, 1, ?) FROM messages
WHERE session_id = ? AND role = ? AND hidden_because IS NULL AND observed = 0 ORDER BY seq LIMIT ?

-- name: untitled_session
-- Whether the session wants a title: it has none, and began by itself.
SELECT owner, source FROM sessions
WHERE session_id = ? AND title IS NULL AND coalesce(relation, '') NOT IN ('continuation', 'delegate')
