-- name: advance_totals
-- Make room for that many messages behind the last one and add their sizes, unless any person was erased since the
-- first of them was sent.
UPDATE totals SET last_seq = last_seq + ?, message_count = message_count + ?, tool_call_count = tool_call_count + ?,
    text_bytes = text_bytes + ?, preview = coalesce(preview, ?), last_active = {greater}(last_active, ?)
WHERE session_id = ? AND NOT EXISTS (SELECT 1 FROM tombstones WHERE erased_at >= ?)

-- name: add_message
-- Add a message, so many places before the last one that there is room for.
INSERT INTO messages (message_id, session_id, seq, role, content, parts, tool_call_id, tool_calls, tool_name,
    effect_disposition, sent_at, token_count, finish_reason, reasoning, reasoning_content, reasoning_details,
    codex_reasoning_items, codex_message_items, api_content, platform_message_id, observed, hidden_because, edited_at,
    platform_messages, extra, author, from_lane, people{and_tokens})
VALUES (?, ?, (SELECT last_seq FROM totals WHERE session_id = ?) - ?,
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?{and_what_it_says})

-- name: add_text
-- Add a message that is a plain text. Half of the work of adding a message is the binding of values, and this has
-- fewer.
INSERT INTO messages (message_id, session_id, seq, role, content, sent_at, platform_message_id, observed, author,
    from_lane{and_tokens})
VALUES (?, ?, (SELECT last_seq FROM totals WHERE session_id = ?) - ?, ?, ?, ?, ?, ?, ?, ?{and_what_it_says})

-- name: messages_after
-- The first messages between two places.
SELECT {message} FROM messages WHERE session_id = ? AND seq > ? AND seq < ? AND (hidden_because IS NULL OR {a_number} = 1)
ORDER BY seq LIMIT ?

-- name: messages_before
-- The last messages between two places, the last one first.
SELECT {message} FROM messages WHERE session_id = ? AND seq > ? AND seq < ? AND (hidden_because IS NULL OR {a_number} = 1)
ORDER BY seq DESC LIMIT ?

-- name: conversation_of_session
-- The messages that may go to a model.
SELECT {part_of_conversation} FROM messages
WHERE session_id = ? AND hidden_because IS NULL AND role IN ('user', 'assistant', 'tool')
ORDER BY seq

-- name: end_of_conversation
-- The last messages that may go to a model, the last one first.
SELECT {part_of_conversation} FROM messages
WHERE session_id = ? AND hidden_because IS NULL AND role IN ('user', 'assistant', 'tool')
ORDER BY seq DESC LIMIT ?

-- name: find_message
-- The place of a message, its role, and whether it is hidden.
SELECT seq, role, hidden_because FROM messages WHERE message_id = ? AND session_id = ?

-- name: visible_messages_from
-- A message and those behind it; rewound and retracted ones only if asked for.
SELECT {message} FROM messages WHERE session_id = ? AND seq >= ?
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR {a_number} = 1) ORDER BY seq LIMIT ?

-- name: visible_messages_until
-- A message and those before it, the last one first; rewound and retracted ones only if asked for.
SELECT {message} FROM messages WHERE session_id = ? AND seq <= ?
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR {a_number} = 1) ORDER BY seq DESC LIMIT ?

-- name: first_texts_before
-- The first messages with text before a place, of these roles if any are named.
SELECT {message} FROM messages WHERE session_id = ? AND seq < ? AND {filled:content}
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR {a_number} = 1)
    AND ({a_text} IS NULL OR role IN ({each_of})) ORDER BY seq LIMIT ?

-- name: last_texts_behind
-- The last messages with text behind a place, the last one first.
SELECT {message} FROM messages WHERE session_id = ? AND seq > ? AND {filled:content}
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR {a_number} = 1)
    AND ({a_text} IS NULL OR role IN ({each_of})) ORDER BY seq DESC LIMIT ?

-- name: platform_message_exists
-- Whether a message with that id of its platform was stored, hidden or not.
SELECT 1 FROM messages WHERE session_id = ? AND platform_message_id = ? LIMIT 1

-- name: recent_user_turns
-- The latest messages of people to the agent, the latest first.
SELECT message_id, seq, sent_at, content FROM messages
WHERE session_id = ? AND role = 'user' AND observed = 0 AND hidden_because IS NULL ORDER BY seq DESC LIMIT ?

-- name: user_turn
-- One message of a person to the agent, hidden or not.
SELECT message_id, seq, sent_at, content FROM messages WHERE message_id = ? AND session_id = ? AND role = 'user'

-- name: first_user_texts
-- The beginnings of people's first texts in the conversation.
SELECT seq, substr(content, 1, ?) FROM messages
WHERE session_id = ? AND seq > ? AND role = 'user' AND hidden_because IS NULL AND {filled:content} ORDER BY seq LIMIT ?

-- name: active_messages_from
-- The messages of the conversation from a place on, with or without what was only observed, and the calls of each.
SELECT message_id, {number_of_calls} AS calls, {flag:role = 'user' AND observed = 0} AS begins_turn FROM messages
WHERE session_id = ? AND seq >= ? AND observed <= ? AND hidden_because IS NULL

-- name: hide_messages_from
-- Hide the messages of the conversation from a place on, with or without what was only observed.
UPDATE messages SET hidden_because = ?, hidden_by = ?
WHERE session_id = ? AND seq >= ? AND observed <= ? AND hidden_because IS NULL

-- name: last_active_message
-- The last message of the conversation.
SELECT message_id FROM messages WHERE session_id = ? AND hidden_because IS NULL ORDER BY seq DESC LIMIT 1

-- name: last_rewind
-- The latest rewind, and the last place that it has hidden.
SELECT hidden_by, max(seq) FROM messages
WHERE session_id = ? AND hidden_because = 'rewound' AND hidden_by IS NOT NULL
GROUP BY hidden_by ORDER BY hidden_by DESC LIMIT 1

-- name: turn_goes_on_behind
-- Whether the conversation has gone on behind a place.
SELECT 1 FROM messages WHERE session_id = ? AND seq > ? AND hidden_because IS NULL AND observed = 0
    AND role IN ('user', 'assistant', 'tool') LIMIT 1

-- name: messages_rewound_by
-- The messages that one rewind has hidden, and the number of calls of each.
SELECT message_id, {number_of_calls} FROM messages
WHERE session_id = ? AND hidden_because = 'rewound' AND hidden_by = ?

-- name: show_messages_rewound_by
-- Show the messages again that one rewind has hidden.
UPDATE messages SET hidden_because = NULL, hidden_by = NULL
WHERE session_id = ? AND hidden_because = 'rewound' AND hidden_by = ?

-- name: adjust_totals
-- Add to the totals of a session whose messages came back or went away.
UPDATE totals SET message_count = message_count + ?, tool_call_count = tool_call_count + ?,
    text_bytes = text_bytes + ?, rewind_count = rewind_count + ?, edit_count = edit_count + ?, preview = ?
WHERE session_id = ?

-- name: reset_totals
-- Set the totals of a session whose conversation is gone and which has only hidden messages left.
UPDATE totals SET last_seq = ?, message_count = 0, tool_call_count = 0, text_bytes = ?, preview = NULL
WHERE session_id = ?

-- name: stored_messages
-- Every message that is stored, and whether it is hidden.
SELECT message_id, seq, {flag:hidden_because IS NOT NULL} AS is_hidden FROM messages WHERE session_id = ? ORDER BY seq

-- name: bytes_of_messages
-- The size of the stored messages.
SELECT coalesce({sum:
    coalesce({octets:content}, 0) + coalesce({octets:parts}, 0)
    + coalesce({octets:tool_call_id}, 0) + coalesce({octets:tool_calls}, 0)
    + coalesce({octets:tool_name}, 0) + coalesce({octets:effect_disposition}, 0)
    + coalesce({octets:finish_reason}, 0) + coalesce({octets:reasoning}, 0)
    + coalesce({octets:reasoning_content}, 0) + coalesce({octets:reasoning_details}, 0)
    + coalesce({octets:codex_reasoning_items}, 0)
    + coalesce({octets:codex_message_items}, 0) + coalesce({octets:api_content}, 0)
    + coalesce({octets:platform_message_id}, 0) + coalesce({octets:extra}, 0)
    + coalesce({octets:platform_messages}, 0)
}, 0) FROM messages WHERE session_id = ?

-- name: delete_message
-- Delete a message.
DELETE FROM messages WHERE message_id = ?

-- name: delete_message_versions
-- Delete the earlier versions of a message.
DELETE FROM message_versions WHERE message_id = ?

-- name: move_message
-- Move a message to a place before its own, which is free.
UPDATE messages SET seq = ? WHERE message_id = ?

-- name: sessions_said_on
-- All sessions that are or were on a lane, and sessions that came from them: each may have the lane's messages.
SELECT session_id FROM (
    WITH RECURSIVE line (session_id) AS (
        SELECT session_id FROM sessions WHERE session_key = ?
        UNION SELECT session_id FROM transitions WHERE session_key = ?
        UNION
        SELECT child.session_id FROM line JOIN sessions AS child {by_parent} ON child.parent_session_id = line.session_id
        WHERE child.relation <> 'succession'
    )
    SELECT session_id FROM line
) AS line ORDER BY session_id

-- name: rows_of_platform_message
-- The messages of sessions that may have been made of a platform's message; a row made of several messages lists their
-- ids.
SELECT {message} FROM messages WHERE message_id IN ({several:
    SELECT message_id FROM messages WHERE session_id IN ({each_of}) AND platform_message_id = ?
    UNION SELECT message_id FROM messages WHERE session_id IN ({each_of}) AND platform_messages IS NOT NULL
        AND ({says:platform_messages} OR (platform_messages = '[]' AND {says:extra}))})
ORDER BY session_id, seq

-- name: say_whose
-- Write the owner of a session into its messages without an author, before another owner gets the session.
UPDATE messages SET author = ?, from_lane = coalesce(from_lane, ?) WHERE session_id = ? AND author IS NULL

-- name: say_where
-- Write the lane of a session into its messages without one, before another lane gets the session.
UPDATE messages SET from_lane = ? WHERE session_id = ? AND from_lane IS NULL

-- name: people_of_conversation
-- The authors and people of the conversation's messages.
SELECT DISTINCT author, people FROM messages
WHERE session_id = ? AND hidden_because IS NULL AND (author IS NOT NULL OR people IS NOT NULL)

-- name: keep_message_version
-- Copy a message to the earlier versions before it is changed.
INSERT INTO message_versions (message_id, version, content, parts, replaced_at)
SELECT message_id, (SELECT count(*) FROM message_versions AS v WHERE v.message_id = m.message_id) + 1, content, parts, ?
FROM messages AS m WHERE message_id = ?

-- name: message_versions
-- The earlier versions of a message, the first one first.
SELECT v.version, v.content, v.parts, v.replaced_at FROM message_versions AS v
JOIN messages AS m ON m.message_id = v.message_id
WHERE m.session_id = ? AND m.message_id = ? ORDER BY v.version

-- name: retract_message
-- Remove the content of a message that was deleted where it was said, and hide it.
UPDATE messages SET hidden_because = 'retracted', hidden_by = ? WHERE message_id = ?

-- name: rows_of_several
-- The rows of a session that keep the content of several messages.
SELECT {message} FROM messages WHERE session_id = ? AND platform_messages IS NOT NULL ORDER BY seq

-- name: message_by_id
-- A message of any session.
SELECT {message} FROM messages WHERE message_id = ?

-- name: reword_row
-- Write a row anew of whose messages some were edited or deleted.
UPDATE messages SET content = ?, parts = ?, api_content = ?, platform_message_id = ?, platform_messages = ?, extra = ?,
    edited_at = ?
WHERE message_id = ?

-- name: add_index_change
-- Note that the search index has an old version of a message.
INSERT INTO index_changes (change_id, message_id) VALUES (?, ?)
