-- name: advance_totals
-- Make room for that many messages behind the last one, and add up what they bring, unless anybody at all was erased
-- since the first of them was sent.
UPDATE totals SET last_seq = last_seq + $1, message_count = message_count + $2, tool_call_count = tool_call_count + $3,
    text_bytes = text_bytes + $4, preview = coalesce(preview, $5), last_active = greatest(last_active, $6)
WHERE session_id = $7 AND NOT EXISTS (SELECT 1 FROM tombstones WHERE erased_at >= $8)

-- name: add_message
-- A message, so many places before the last one that there is room for.
INSERT INTO messages (message_id, session_id, seq, role, content, parts, tool_call_id, tool_calls, tool_name,
    effect_disposition, sent_at, token_count, finish_reason, reasoning, reasoning_content, reasoning_details,
    codex_reasoning_items, codex_message_items, api_content, platform_message_id, observed, hidden_because, edited_at,
    extra)
VALUES ($1, $2, (SELECT last_seq FROM totals WHERE session_id = $3) - $4,
    $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)

-- name: messages_after
-- The first so many messages between two places. Whatever is short comes as one value, for each value of a row takes
-- its time; so do the members that few messages have, if one of them is set.
SELECT message_id, sent_at, json_build_array(session_id, seq, role, tool_call_id, tool_name, effect_disposition,
        finish_reason, platform_message_id, token_count, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details,
        codex_reasoning_items, codex_message_items, api_content, extra, hidden_because, edited_at::text) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra, hidden_because, edited_at) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND seq > $2 AND seq < $3 AND (hidden_because IS NULL OR $4::bigint <> 0) ORDER BY seq
    LIMIT $5

-- name: messages_before
-- The last so many messages between two places, the last one first.
SELECT message_id, sent_at, json_build_array(session_id, seq, role, tool_call_id, tool_name, effect_disposition,
        finish_reason, platform_message_id, token_count, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details,
        codex_reasoning_items, codex_message_items, api_content, extra, hidden_because, edited_at::text) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra, hidden_because, edited_at) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND seq > $2 AND seq < $3 AND (hidden_because IS NULL OR $4::bigint <> 0)
    ORDER BY seq DESC LIMIT $5

-- name: conversation_of_session
-- What of the messages that may go to a model matters to it.
SELECT message_id, sent_at, json_build_array(role, tool_call_id, tool_name, effect_disposition, finish_reason,
        platform_message_id, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details, codex_reasoning_items,
        codex_message_items, api_content, extra) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND hidden_because IS NULL AND role IN ('user', 'assistant', 'tool')
ORDER BY seq

-- name: end_of_conversation
-- The same of the last so many, the last one first.
SELECT message_id, sent_at, json_build_array(role, tool_call_id, tool_name, effect_disposition, finish_reason,
        platform_message_id, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details, codex_reasoning_items,
        codex_message_items, api_content, extra) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND hidden_because IS NULL AND role IN ('user', 'assistant', 'tool')
ORDER BY seq DESC LIMIT $2

-- name: find_message
-- Where a message stands, what it is, and whether it is hidden.
SELECT seq, role, hidden_because FROM messages WHERE message_id = $1 AND session_id = $2

-- name: visible_messages_from
-- A message and those behind it; what was taken back or retracted only if asked for.
SELECT message_id, sent_at, json_build_array(session_id, seq, role, tool_call_id, tool_name, effect_disposition,
        finish_reason, platform_message_id, token_count, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details,
        codex_reasoning_items, codex_message_items, api_content, extra, hidden_because, edited_at::text) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra, hidden_because, edited_at) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND seq >= $2
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR $3::bigint <> 0) ORDER BY seq LIMIT $4

-- name: visible_messages_until
-- A message and those before it, the message first; what was taken back or retracted only if asked for.
SELECT message_id, sent_at, json_build_array(session_id, seq, role, tool_call_id, tool_name, effect_disposition,
        finish_reason, platform_message_id, token_count, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details,
        codex_reasoning_items, codex_message_items, api_content, extra, hidden_because, edited_at::text) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra, hidden_because, edited_at) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND seq <= $2
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR $3::bigint <> 0) ORDER BY seq DESC LIMIT $4

-- name: first_texts_before
-- How the session began: messages with text before a place, of these roles if any are named.
SELECT message_id, sent_at, json_build_array(session_id, seq, role, tool_call_id, tool_name, effect_disposition,
        finish_reason, platform_message_id, token_count, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details,
        codex_reasoning_items, codex_message_items, api_content, extra, hidden_because, edited_at::text) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra, hidden_because, edited_at) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND seq < $2 AND content <> ''
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR $3::bigint <> 0)
    AND ($4::text IS NULL OR role IN (SELECT jsonb_array_elements_text($5::jsonb))) ORDER BY seq LIMIT $6

-- name: last_texts_behind
-- How it ended: messages with text behind a place, the last one first.
SELECT message_id, sent_at, json_build_array(session_id, seq, role, tool_call_id, tool_name, effect_disposition,
        finish_reason, platform_message_id, token_count, (CASE WHEN observed <> 0 OR coalesce(parts, reasoning_details,
        codex_reasoning_items, codex_message_items, api_content, extra, hidden_because, edited_at::text) IS NOT NULL
        THEN json_build_array(observed, (parts IS NOT NULL)::int, reasoning_details, codex_reasoning_items, codex_message_items,
        api_content, extra, hidden_because, edited_at) END))::text,
    coalesce(parts, content), tool_calls, reasoning, reasoning_content
FROM messages WHERE session_id = $1 AND seq > $2 AND content <> ''
    AND (hidden_because IS NULL OR hidden_because = 'compacted' OR $3::bigint <> 0)
    AND ($4::text IS NULL OR role IN (SELECT jsonb_array_elements_text($5::jsonb))) ORDER BY seq DESC LIMIT $6

-- name: platform_message_exists
-- Whether a message of its platform was stored already, hidden or not.
SELECT 1 FROM messages WHERE session_id = $1 AND platform_message_id = $2 LIMIT 1

-- name: recent_user_turns
-- What people said to the agent, the latest first.
SELECT message_id, seq, sent_at, content FROM messages
WHERE session_id = $1 AND role = 'user' AND observed = 0 AND hidden_because IS NULL ORDER BY seq DESC LIMIT $2

-- name: user_turn
-- The same of one message, whether it is part of the conversation or not.
SELECT message_id, seq, sent_at, content FROM messages WHERE message_id = $1 AND session_id = $2 AND role = 'user'

-- name: first_user_texts
-- How the first texts of people begin that are part of the conversation.
SELECT seq, substr(content, 1, $1) FROM messages
WHERE session_id = $2 AND seq > $3 AND role = 'user' AND hidden_because IS NULL AND content <> '' ORDER BY seq LIMIT $4

-- name: active_messages_from
-- What is part of the conversation from a place on, and how many calls each message makes.
SELECT message_id, coalesce(json_array_length(tool_calls::json), 0), (role = 'user' AND observed = 0)::int FROM messages
WHERE session_id = $1 AND seq >= $2 AND hidden_because IS NULL

-- name: hide_messages_from
-- None of this is part of the conversation any more.
UPDATE messages SET hidden_because = $1, hidden_by = $2 WHERE session_id = $3 AND seq >= $4 AND hidden_because IS NULL

-- name: last_active_message
-- Where the conversation stands.
SELECT message_id FROM messages WHERE session_id = $1 AND hidden_because IS NULL ORDER BY seq DESC LIMIT 1

-- name: last_rewind
-- The latest of the changes that took messages back, and how far these reach.
SELECT hidden_by, max(seq) FROM messages
WHERE session_id = $1 AND hidden_because = 'rewound' AND hidden_by IS NOT NULL
GROUP BY hidden_by ORDER BY hidden_by DESC LIMIT 1

-- name: turn_goes_on_behind
-- Whether anything was said to or by the agent behind a place.
SELECT 1 FROM messages WHERE session_id = $1 AND seq > $2 AND hidden_because IS NULL AND observed = 0
    AND role IN ('user', 'assistant', 'tool') LIMIT 1

-- name: messages_rewound_by
-- What one change took back, and how many calls each message makes.
SELECT message_id, coalesce(json_array_length(tool_calls::json), 0) FROM messages
WHERE session_id = $1 AND hidden_because = 'rewound' AND hidden_by = $2

-- name: show_messages_rewound_by
-- It is part of the conversation again.
UPDATE messages SET hidden_because = NULL, hidden_by = NULL
WHERE session_id = $1 AND hidden_because = 'rewound' AND hidden_by = $2

-- name: adjust_totals
-- Messages came back or went away.
UPDATE totals SET message_count = message_count + $1, tool_call_count = tool_call_count + $2,
    text_bytes = text_bytes + $3, rewind_count = rewind_count + $4, preview = $5
WHERE session_id = $6

-- name: reset_totals
-- Nothing is part of the conversation any more, and so many hidden messages are left.
UPDATE totals SET last_seq = $1, message_count = 0, tool_call_count = 0, text_bytes = $2, preview = NULL
WHERE session_id = $3

-- name: stored_messages
-- Every message that is stored, and whether it is hidden.
SELECT message_id, seq, (hidden_because IS NOT NULL)::int FROM messages WHERE session_id = $1 ORDER BY seq

-- name: bytes_of_messages
-- What the stored messages take.
SELECT coalesce(sum(
    coalesce(octet_length(content), 0) + coalesce(octet_length(parts), 0)
    + coalesce(octet_length(tool_call_id), 0) + coalesce(octet_length(tool_calls), 0)
    + coalesce(octet_length(tool_name), 0) + coalesce(octet_length(effect_disposition), 0)
    + coalesce(octet_length(finish_reason), 0) + coalesce(octet_length(reasoning), 0)
    + coalesce(octet_length(reasoning_content), 0) + coalesce(octet_length(reasoning_details), 0)
    + coalesce(octet_length(codex_reasoning_items), 0)
    + coalesce(octet_length(codex_message_items), 0) + coalesce(octet_length(api_content), 0)
    + coalesce(octet_length(platform_message_id), 0) + coalesce(octet_length(extra), 0)
), 0) FROM messages WHERE session_id = $1

-- name: delete_message
-- Nothing is left of it.
DELETE FROM messages WHERE message_id = $1

-- name: delete_message_versions
-- Nor of what it was before.
DELETE FROM message_versions WHERE message_id = $1

-- name: move_message
-- A place before it has become free.
UPDATE messages SET seq = $1 WHERE message_id = $2

-- name: latest_platform_message
-- The last message that a platform calls that.
SELECT message_id, role, content, parts, api_content, hidden_because FROM messages
WHERE session_id = $1 AND platform_message_id = $2 ORDER BY seq DESC LIMIT 1

-- name: keep_message_version
-- A message as it is, before it is changed.
INSERT INTO message_versions (message_id, version, content, parts, replaced_at)
SELECT message_id, (SELECT count(*) FROM message_versions AS v WHERE v.message_id = m.message_id) + 1, content, parts, $1
FROM messages AS m WHERE message_id = $2

-- name: edit_message
-- It says something else now, and so would a model be told.
UPDATE messages SET content = $1, parts = $2, api_content = NULL, edited_at = $3 WHERE message_id = $4

-- name: message_versions
-- What a message said before, the first version first.
SELECT v.version, v.content, v.parts, v.replaced_at FROM message_versions AS v
JOIN messages AS m ON m.message_id = v.message_id
WHERE m.session_id = $1 AND m.message_id = $2 ORDER BY v.version

-- name: platform_messages_to_retract
-- All that a platform calls that and that is not retracted yet.
SELECT message_id, coalesce(json_array_length(tool_calls::json), 0), (hidden_because IS NULL)::int FROM messages
WHERE session_id = $1 AND platform_message_id = $2 AND (hidden_because IS NULL OR hidden_because <> 'retracted')

-- name: retract_message
-- It was deleted where it was said.
UPDATE messages SET hidden_because = 'retracted', hidden_by = $1 WHERE message_id = $2

-- name: add_index_change
-- What the search index knows of a message is out of date.
INSERT INTO index_changes (change_id, message_id) VALUES ($1, $2)
