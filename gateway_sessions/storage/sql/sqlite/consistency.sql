-- name: entries_without_session
-- Entries whose session has no row, with what its row has to say.
SELECT session_id, session_key, owner, coalesce(platform, 'unknown'), updated_at FROM entries
JOIN clocks USING (entry_id) WHERE session_id NOT IN (SELECT session_id FROM sessions)

-- name: messages_without_session
-- Sessions that only their messages tell of, and that are not just being removed.
SELECT session_id, NULL, 'main:unknown:local', 'unknown', min(sent_at) FROM messages
WHERE session_id NOT IN (SELECT session_id FROM sessions)
    AND NOT EXISTS (SELECT 1 FROM meta WHERE name = 'left_over:' || messages.session_id)
GROUP BY session_id

-- name: usage_without_session
-- Sessions that only their bills tell of.
SELECT session_id, NULL, 'main:unknown:local', 'unknown', min(at) FROM usage_events
WHERE session_id NOT IN (SELECT session_id FROM sessions) GROUP BY session_id

-- name: restore_session_row
-- A row for a session that lost it.
INSERT INTO sessions (session_id, session_key, owner, source, started_at) VALUES (?, ?, ?, ?, ?)

-- name: sessions_without_totals
-- Sessions that nobody counts the messages of.
SELECT session_id, started_at FROM sessions WHERE session_id NOT IN (SELECT session_id FROM totals)

-- name: totals_without_session
-- Counts of sessions that are gone.
SELECT session_id FROM totals WHERE session_id NOT IN (SELECT session_id FROM sessions)

-- name: delete_totals
-- Nothing is left to count.
DELETE FROM totals WHERE session_id = ?

-- name: wrong_totals
-- Sessions whose counts are not those of their messages.
SELECT totals.session_id, count(message_id), coalesce(max(seq), 0) FROM totals
LEFT JOIN messages ON messages.session_id = totals.session_id GROUP BY totals.session_id
HAVING totals.message_count <> sum(message_id IS NOT NULL AND hidden_because IS NULL)
    OR totals.last_seq <> coalesce(max(seq), 0)

-- name: recount_totals
-- Count the messages of a session anew.
UPDATE totals SET text_bytes = ?,
    last_seq = (SELECT coalesce(max(seq), 0) FROM messages AS m WHERE m.session_id = totals.session_id),
    message_count = (SELECT count(*) FROM messages AS m
        WHERE m.session_id = totals.session_id AND hidden_because IS NULL),
    tool_call_count = (SELECT coalesce(sum(json_array_length(tool_calls)), 0) FROM messages AS m
        WHERE m.session_id = totals.session_id AND hidden_because IS NULL)
WHERE session_id = ?

-- name: gaps_in_sessions
-- Sessions with places where a message must have been, and how many.
SELECT messages.session_id, last_seq - count(*) FROM messages
JOIN totals ON totals.session_id = messages.session_id
GROUP BY messages.session_id, last_seq HAVING last_seq > count(*)

-- name: sessions_with_parent
-- Which session comes from which, the oldest first.
SELECT session_id, parent_session_id FROM sessions WHERE parent_session_id IS NOT NULL ORDER BY started_at, session_id

-- name: cut_from_parent
-- The session is where its conversation begins.
UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE session_id = ?

-- name: entries_without_clock
-- Entries of which nobody knows when they were used.
SELECT entry_id, coalesce((SELECT last_active FROM totals WHERE totals.session_id = entries.session_id), 0)
FROM entries WHERE entry_id NOT IN (SELECT entry_id FROM clocks)

-- name: restore_clock (index)
-- The entry was used when its session was.
INSERT INTO clocks (entry_id, version, updated_at) VALUES (?, 1, ?)

-- name: clocks_without_entry
-- Clocks of lanes that are gone.
SELECT entry_id FROM clocks WHERE entry_id NOT IN (SELECT entry_id FROM entries)

-- name: delete_clock
-- Nobody looks at it.
DELETE FROM clocks WHERE entry_id = ?
