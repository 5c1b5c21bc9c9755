-- name: sessions_to_export
-- A page of visible sessions, the oldest first, behind a position in that order.
SELECT session_id, started_at, relation FROM sessions
WHERE (started_at, session_id) > (?, ?) AND ({a_text} IS NULL OR source = ?)
  AND {in_sight:sessions}
ORDER BY started_at, session_id LIMIT ?

-- name: count_sessions_to_export
-- The number of sessions to export.
SELECT count(*) FROM sessions
WHERE ({a_text} IS NULL OR source = ?) AND {in_sight:sessions}

-- name: acts_of_hiding
-- The changes that hid messages of a session, in order.
SELECT DISTINCT hidden_by FROM messages WHERE session_id = ? AND hidden_by IS NOT NULL ORDER BY hidden_by

-- name: hidden_messages
-- The change that hid each message.
SELECT seq, hidden_by FROM messages WHERE session_id = ? AND seq BETWEEN ? AND ? AND hidden_by IS NOT NULL

-- name: versions_of_messages
-- The earlier versions of messages, the oldest first.
SELECT seq, message_versions.content, message_versions.parts, replaced_at
FROM messages JOIN message_versions ON message_versions.message_id = messages.message_id
WHERE session_id = ? AND seq BETWEEN ? AND ? ORDER BY seq, version

-- name: usage_to_export
-- Every use of a model in a session, in order.
SELECT event_id, at, task, model, provider, base_url, billing_mode, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, reasoning_tokens, api_calls, estimated_cost_usd, actual_cost_usd, cost_status, cost_source,
    pricing_version
FROM usage_events WHERE session_id = ? ORDER BY at, event_id

-- name: add_imported_session
-- Add a session from a file.
INSERT INTO sessions (session_id, session_key, owner, source, user_id, parent_session_id, relation, started_at,
    ended_at, end_reason, ends, entry, title, title_by, model, model_config, system_prompt, billing_provider,
    billing_base_url, billing_mode, pinned, archived, extra, title_owner)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_imported_totals
-- Add the totals of a session from a file.
INSERT INTO totals (session_id, last_active, last_seq, message_count, tool_call_count, text_bytes, rewind_count, preview,
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, api_call_count,
    estimated_cost_usd, actual_cost_usd, cost_status, cost_source, pricing_version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_imported_message
-- Add a message from a file, at its place.
INSERT INTO messages (message_id, session_id, seq, hidden_by, role, content, parts, tool_call_id, tool_calls, tool_name,
    effect_disposition, sent_at, token_count, finish_reason, reasoning, reasoning_content, reasoning_details,
    codex_reasoning_items, codex_message_items, api_content, platform_message_id, observed, hidden_because, edited_at,
    platform_messages, extra, author, from_lane, people{and_tokens})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?{and_what_it_says})

-- name: add_imported_version
-- Add an earlier version of a message from a file.
INSERT INTO message_versions (message_id, version, content, parts, replaced_at) VALUES (?, ?, ?, ?, ?)

-- name: session_as_imported
-- The columns of a session that an import writes.
SELECT session_id, session_key, owner, source, user_id, parent_session_id, relation, started_at, ended_at, end_reason,
    ends, entry, title, title_by, model, model_config, system_prompt, billing_provider, billing_base_url, billing_mode,
    pinned, archived, extra, title_owner
FROM sessions WHERE session_id = ?

-- name: messages_as_imported
-- The columns of messages behind a place that an import writes.
SELECT seq, hidden_by, role, content, parts, tool_call_id, tool_calls, tool_name, effect_disposition, sent_at,
    token_count, finish_reason, reasoning, reasoning_content, reasoning_details, codex_reasoning_items,
    codex_message_items, api_content, platform_message_id, observed, hidden_because, edited_at, platform_messages, extra,
    author, from_lane, people
FROM messages WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?

-- name: usage_elsewhere
-- One of these events that was counted for another session.
SELECT event_id FROM usage_events WHERE event_id IN ({each_of}) AND session_id <> ? LIMIT 1

-- name: attach_session
-- Give a session its parent, once that was imported as well.
UPDATE sessions SET parent_session_id = ?, relation = ?, extra = ? WHERE session_id = ?

-- name: forget_empty_session
-- Remove the row of a session without messages, so that the file's row takes its place.
DELETE FROM sessions WHERE session_id = ?

-- name: forget_empty_totals
-- Remove the totals of a session without messages.
DELETE FROM totals WHERE session_id = ?
