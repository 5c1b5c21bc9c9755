-- name: sessions_to_prune
-- Sessions behind a position, the one touched first at the beginning: their size, whether they are in use or kept, and
-- whether others hang on them.
SELECT {what_it_holds},
    {flag:EXISTS (SELECT 1 FROM sessions AS c {by_parent} WHERE c.parent_session_id = s.session_id
        AND c.relation IN ('delegate', 'continuation'))} AS has_others
FROM totals AS t {by_activity} {then_join} sessions AS s ON s.session_id = t.session_id
WHERE (t.last_active, t.session_id) > (?, ?) AND {to_prune}
ORDER BY t.last_active, t.session_id LIMIT ?

-- name: size_of_sessions_to_prune
-- The number of such sessions, and their size.
SELECT count(*), coalesce({sum:t.text_bytes}, 0)
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE {to_prune}

-- name: session_to_remove
-- One session with its size and use, and whether it has ended.
SELECT {what_it_holds}, s.relation, {flag:s.ended_at IS NOT NULL} AS has_ended
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id WHERE s.session_id = ?

-- name: sessions_that_hang_on
-- The sub-agents of a session and its continuation, each with its size and use.
SELECT {what_it_holds}, s.relation, {flag:s.ended_at IS NOT NULL} AS has_ended
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.parent_session_id = ? AND s.relation IN ('delegate', 'continuation') ORDER BY s.session_id

-- name: detach_children
-- Take the parent from the sessions that came from a session.
UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id = ?

-- name: forget_moved_session
-- Forget that a session was resumed elsewhere: it can no longer be brought back.
{forget_moved_session}

-- name: delete_session_row
-- Remove a session.
DELETE FROM sessions WHERE session_id = ?

-- name: delete_usage_of_session
-- Remove the use of a session.
DELETE FROM usage_events WHERE session_id = ?

-- name: delete_transitions_of_session
-- Remove the transitions of a session.
DELETE FROM transitions WHERE session_id = ?

-- name: delete_hook_calls_of_session
-- Remove the hook calls of a session.
DELETE FROM hook_calls WHERE idempotency_key > ? AND idempotency_key < ? AND session_id = ?

-- name: some_messages_of_session
-- Some messages of a session.
SELECT message_id FROM messages WHERE session_id = ? ORDER BY seq LIMIT ?

-- name: leftovers
-- Removed sessions of which some messages are left.
SELECT name FROM meta WHERE name > ? AND name < ? ORDER BY name

-- name: forget_meta
-- Remove one fact.
DELETE FROM meta WHERE name = ?
