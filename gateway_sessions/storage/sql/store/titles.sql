-- name: titled_session
-- The owner and title of a session, the kind of title, and its giver.
SELECT owner, session_key, title, title_by, title_owner FROM sessions WHERE session_id = ?

-- name: holder_of_title
-- The session of that owner that has the title.
SELECT session_id, session_key FROM sessions WHERE owner = ? AND title = ?

-- name: set_title
-- Set the title of a session with its kind and its giver; without a giver, that is the owner.
UPDATE sessions SET title = ?, title_by = ?, title_owner = coalesce(?, owner) WHERE session_id = ?

-- name: titles_of_owner
-- One title, and those in a range, by the index of titles: an owner may have very many other sessions, so the index of
-- owners is not used.
SELECT title FROM sessions WHERE owner = ? AND title = ?
UNION ALL
SELECT title FROM sessions WHERE coalesce(owner, '') = ? AND title BETWEEN ? AND ?

-- name: titled_sessions
-- Visible sessions with a title, or with one in a range.
SELECT session_id, owner, title, started_at FROM sessions
WHERE (title = ? OR title BETWEEN ? AND ?) AND {in_sight:sessions}

-- name: sessions_between
-- Visible sessions with ids in a range, in their order, without those of sub-agents, which no person resumes.
SELECT session_id FROM sessions
WHERE session_id > ? AND session_id BETWEEN ? AND ? AND coalesce(relation, '') <> 'delegate'
  AND {in_sight:sessions}
ORDER BY session_id LIMIT ?

-- name: session_candidate
-- The columns that tell a session from others.
SELECT session_id, title, source FROM sessions WHERE session_id = ?

-- name: first_exchange
-- The first texts of a role, as much of them as a title needs.
SELECT role, substr(content, 1, ?) FROM messages
WHERE session_id = ? AND role = ? AND hidden_because IS NULL AND observed = 0 ORDER BY seq LIMIT ?

-- name: untitled_session
-- Whether the session wants a title: it has none, and is neither a continuation nor a sub-agent's.
SELECT owner, source FROM sessions
WHERE session_id = ? AND title IS NULL AND coalesce(relation, '') NOT IN ('continuation', 'delegate')
