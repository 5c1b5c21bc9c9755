-- name: index_limits
-- The highest id of a message, the highest note of a change, and the last note that was removed.
SELECT (SELECT max(message_id) FROM messages) AS message_id, (SELECT max(change_id) FROM index_changes) AS change_id,
    (SELECT {whole:value} FROM meta WHERE name = 'index_changes_cleared') AS cleared

-- name: messages_to_index
-- Messages behind an id, in the order of commits. A very long text is cut.
SELECT m.message_id, m.session_id, m.role, substr(m.content, 1, ?) AS content, m.tool_name, m.tool_calls, m.sent_at,
    s.owner, s.session_key, s.source, m.author, m.from_lane
FROM messages AS m JOIN sessions AS s ON s.session_id = m.session_id
WHERE m.message_id > ? ORDER BY m.message_id LIMIT ?

-- name: messages_to_index_again
-- Messages as they are now, for the index.
SELECT m.message_id, m.session_id, m.role, substr(m.content, 1, ?) AS content, m.tool_name, m.tool_calls, m.sent_at,
    s.owner, s.session_key, s.source, m.author, m.from_lane
FROM messages AS m JOIN sessions AS s ON s.session_id = m.session_id
WHERE m.message_id IN ({each_number_of})

-- name: index_changes_after
-- Messages that were changed or removed after they may have been indexed, in the order of commits.
SELECT change_id, message_id FROM index_changes WHERE change_id > ? ORDER BY change_id LIMIT ?

-- name: message_ids_of_session
-- The ids of all messages of a session.
SELECT message_id FROM messages WHERE session_id = ? ORDER BY message_id

-- name: clear_index_changes
-- Remove notes that the index has read.
DELETE FROM index_changes WHERE change_id <= ?

-- name: unindexed_messages
-- Messages that the index may not have read yet, the newest first.
SELECT {candidate}
WHERE m.message_id > ? AND m.message_id < ? ORDER BY m.message_id DESC LIMIT ?

-- name: texts_between
-- Only the texts of such messages, the newest first: most of them do not match.
SELECT m.message_id, m.content, m.tool_name, m.tool_calls FROM messages AS m
WHERE m.message_id > ? AND m.message_id < ? ORDER BY m.message_id DESC LIMIT ?

-- name: changed_messages
-- Indexed messages of which the index has an old version, as they are now.
SELECT {candidate}
WHERE m.message_id IN (SELECT message_id FROM index_changes WHERE change_id > ?) AND m.message_id <= ?
LIMIT ?

-- name: pending_changes
-- The ids of messages of which the index has an old version, removed ones too.
SELECT DISTINCT message_id FROM index_changes WHERE change_id > ? AND message_id <= ? LIMIT ?

-- name: search_candidates
-- Messages of a time that may be shown, with as much of their text as their rank depends on.
SELECT m.message_id, m.session_id, m.role, substr(m.content, 1, ?) AS content, m.tool_name, m.tool_calls, m.sent_at,
    s.owner, s.session_key, s.source, m.hidden_because, s.relation, m.author, m.from_lane
FROM messages AS m JOIN sessions AS s ON s.session_id = m.session_id
WHERE m.message_id IN ({each_number_of}) AND m.sent_at >= ? AND m.sent_at < ?

-- name: whole_search_candidates
-- Messages of a time that may be shown, with all of their text.
SELECT {candidate}
WHERE m.message_id IN ({each_number_of}) AND m.sent_at >= ? AND m.sent_at < ?

-- name: search_hits
-- The columns of found messages that a hit shows.
SELECT m.message_id, m.session_id, m.seq, m.role, m.content, m.tool_name, m.tool_calls, m.sent_at, m.hidden_because,
    s.session_key, s.source, s.model, s.started_at, s.title, m.from_lane
FROM messages AS m JOIN sessions AS s ON s.session_id = m.session_id
WHERE m.message_id IN ({each_number_of})

-- name: said_around
-- What was said before each of these messages and after it, as far as it still stands. The order names all that the
-- index has, though the session is given: else MySQL would sort it.
SELECT m.message_id, earlier.role AS role_before, substr(earlier.content, 1, ?) AS text_before,
    later.role AS role_behind, substr(later.content, 1, ?) AS text_behind
FROM messages AS m
LEFT JOIN messages AS earlier ON earlier.session_id = m.session_id AND earlier.seq = (
    SELECT seq FROM messages AS other WHERE other.session_id = m.session_id AND other.seq < m.seq
        AND (other.hidden_because IS NULL OR other.hidden_because = 'compacted')
    ORDER BY other.session_id DESC, other.seq DESC LIMIT 1)
LEFT JOIN messages AS later ON later.session_id = m.session_id AND later.seq = (
    SELECT seq FROM messages AS other WHERE other.session_id = m.session_id AND other.seq > m.seq
        AND (other.hidden_because IS NULL OR other.hidden_because = 'compacted')
    ORDER BY other.session_id, other.seq LIMIT 1)
WHERE m.message_id IN ({each_number_of})
