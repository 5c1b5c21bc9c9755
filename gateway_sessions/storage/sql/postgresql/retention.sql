-- name: sessions_to_prune
-- Sessions from the one touched first on, behind a position: what they hold, whether they are in use or to be kept, and
-- whether others hang on them.
SELECT t.session_id, t.last_active, t.last_seq, t.text_bytes,
    (s.pinned <> 0 OR EXISTS (SELECT 1 FROM entries WHERE entries.session_id = s.session_id) OR EXISTS (
        SELECT 1 FROM hook_calls WHERE idempotency_key > s.session_id || ':' AND idempotency_key < s.session_id || ':~'
            AND hook_calls.session_id = s.session_id AND state = 'owed'))::int,
    EXISTS (SELECT 1 FROM sessions AS c WHERE c.parent_session_id = s.session_id
        AND c.relation IN ('delegate', 'continuation'))::int
FROM totals AS t JOIN sessions AS s ON s.session_id = t.session_id
WHERE (t.last_active, t.session_id) > ($1, $2) AND ($3::text IS NULL OR s.source = $4)
    AND ($5::text IS NULL OR s.relation = $6)
    AND ($7::bigint <> 0 OR s.archived = 0) AND ($8::bigint = 0 OR t.last_seq = 0)
ORDER BY t.last_active, t.session_id LIMIT $9

-- name: size_of_sessions_to_prune
-- How many there are of them, and what they hold.
SELECT count(*), coalesce(sum(t.text_bytes), 0)::bigint
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE ($1::text IS NULL OR s.source = $2) AND ($3::text IS NULL OR s.relation = $4) AND ($5::bigint <> 0 OR s.archived = 0)
    AND ($6::bigint = 0 OR t.last_seq = 0)

-- name: session_to_remove
-- The same of one session.
SELECT t.session_id, t.last_active, t.last_seq, t.text_bytes,
    (s.pinned <> 0 OR EXISTS (SELECT 1 FROM entries WHERE entries.session_id = s.session_id) OR EXISTS (
        SELECT 1 FROM hook_calls WHERE idempotency_key > s.session_id || ':' AND idempotency_key < s.session_id || ':~'
            AND hook_calls.session_id = s.session_id AND state = 'owed'))::int,
    s.relation
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id WHERE s.session_id = $1

-- name: sessions_that_hang_on
-- The same of the sub-agents of a session and of what continues it.
SELECT t.session_id, t.last_active, t.last_seq, t.text_bytes,
    (s.pinned <> 0 OR EXISTS (SELECT 1 FROM entries WHERE entries.session_id = s.session_id) OR EXISTS (
        SELECT 1 FROM hook_calls WHERE idempotency_key > s.session_id || ':' AND idempotency_key < s.session_id || ':~'
            AND hook_calls.session_id = s.session_id AND state = 'owed'))::int,
    s.relation
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.parent_session_id = $1 AND s.relation IN ('delegate', 'continuation') ORDER BY s.session_id

-- name: detach_children
-- What came from the session stands for itself now.
UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id = $1

-- name: forget_moved_session
-- Nobody can be told any more how to get it back.
UPDATE lanes SET moved_session_id = NULL
WHERE session_key IN (SELECT session_key FROM transitions WHERE session_id = $1) AND moved_session_id = $2

-- name: delete_session_row
-- The session is gone.
DELETE FROM sessions WHERE session_id = $1

-- name: delete_usage_of_session
-- And what was used for it.
DELETE FROM usage_events WHERE session_id = $1

-- name: delete_transitions_of_session
-- And what happened to it.
DELETE FROM transitions WHERE session_id = $1

-- name: delete_hook_calls_of_session
-- And what hooks would have been told of it.
DELETE FROM hook_calls WHERE idempotency_key > $1 AND idempotency_key < $2 AND session_id = $3

-- name: some_messages_of_session
-- A few of its messages.
SELECT message_id FROM messages WHERE session_id = $1 ORDER BY seq LIMIT $2

-- name: leftovers
-- Sessions that are gone while some of their messages are not.
SELECT name FROM meta WHERE name > $1 AND name < $2 ORDER BY name

-- name: forget_meta
-- One fact is true no more.
DELETE FROM meta WHERE name = $1
