-- name: sessions_to_prune
-- Sessions from the one touched first on, behind a position: what they hold, whether they are in use or to be kept, and
-- whether others hang on them.
SELECT {what_it_holds},
    {flag:EXISTS (SELECT 1 FROM sessions AS c {by_parent} WHERE c.parent_session_id = s.session_id
        AND c.relation IN ('delegate', 'continuation'))}
FROM totals AS t {by_activity} {then_join} sessions AS s ON s.session_id = t.session_id
WHERE (t.last_active, t.session_id) > (?, ?) AND {to_prune}
ORDER BY t.last_active, t.session_id LIMIT ?

-- name: size_of_sessions_to_prune
-- How many there are of them, and what they hold.
SELECT count(*), coalesce({sum:t.text_bytes}, 0)
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE {to_prune}

-- name: session_to_remove
-- The same of one session, and whether it has ended.
SELECT {what_it_holds}, s.relation, {flag:s.ended_at IS NOT NULL}
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id WHERE s.session_id = ?

-- name: sessions_that_hang_on
-- The same of the sub-agents of a session and of what continues it.
SELECT {what_it_holds}, s.relation, {flag:s.ended_at IS NOT NULL}
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.parent_session_id = ? AND s.relation IN ('delegate', 'continuation') ORDER BY s.session_id

-- name: detach_children
-- What came from the session stands for itself now.
UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id = ?

-- name: forget_moved_session
-- Nobody can be told any more how to get it back.
{forget_moved_session}

-- name: delete_session_row
-- The session is gone.
DELETE FROM sessions WHERE session_id = ?

-- name: delete_usage_of_session
-- And what was used for it.
DELETE FROM usage_events WHERE session_id = ?

-- name: delete_transitions_of_session
-- And what happened to it.
DELETE FROM transitions WHERE session_id = ?

-- name: delete_hook_calls_of_session
-- And what hooks would have been told of it.
DELETE FROM hook_calls WHERE idempotency_key > ? AND idempotency_key < ? AND session_id = ?

-- name: some_messages_of_session
-- A few of its messages.
SELECT message_id FROM messages WHERE session_id = ? ORDER BY seq LIMIT ?

-- name: leftovers
-- Sessions that are gone while some of their messages are not.
SELECT name FROM meta WHERE name > ? AND name < ? ORDER BY name

-- name: forget_meta
-- One fact is true no more.
DELETE FROM meta WHERE name = ?
