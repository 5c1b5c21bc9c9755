-- name: advance_totals
-- Make room for that many messages behind the last one, and add up what they bring.
UPDATE totals SET last_seq = last_seq + ?, message_count = message_count + ?, tool_call_count = tool_call_count + ?,
    text_bytes = text_bytes + ?, preview = coalesce(preview, ?), last_active = max(last_active, ?)
WHERE session_id = ?

-- name: add_message
-- A message, so many places before the last one that there is room for.
INSERT INTO messages (message_id, session_id, seq, role, content, parts, tool_call_id, tool_calls, tool_name,
    effect_disposition, sent_at, token_count, finish_reason, reasoning, reasoning_content, reasoning_details,
    codex_reasoning_items, codex_message_items, api_content, platform_message_id, observed, hidden_because, edited_at,
    extra)
VALUES (?, ?, (SELECT last_seq FROM totals WHERE session_id = ?) - ?,
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: messages_after
-- The first so many messages between two places.
SELECT role, content, message_id, session_id, seq, sent_at, observed, tool_call_id, tool_name, effect_disposition,
    token_count, finish_reason, reasoning, reasoning_content, platform_message_id, tool_calls, reasoning_details,
    codex_reasoning_items, codex_message_items, api_content, parts, hidden_because, edited_at, extra
FROM messages WHERE session_id = ? AND seq > ? AND seq < ? AND (hidden_because IS NULL OR ?) ORDER BY seq LIMIT ?

-- name: messages_before
-- The last so many messages between two places, the last one first.
SELECT role, content, message_id, session_id, seq, sent_at, observed, tool_call_id, tool_name, effect_disposition,
    token_count, finish_reason, reasoning, reasoning_content, platform_message_id, tool_calls, reasoning_details,
    codex_reasoning_items, codex_message_items, api_content, parts, hidden_because, edited_at, extra
FROM messages WHERE session_id = ? AND seq > ? AND seq < ? AND (hidden_because IS NULL OR ?) ORDER BY seq DESC LIMIT ?
