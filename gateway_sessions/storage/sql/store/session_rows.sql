-- name: session_record
-- All columns of a session and its totals.
SELECT s.session_id, s.source, s.owner, s.started_at, t.last_active, s.session_key, s.user_id, s.parent_session_id,
    s.relation, s.ended_at, s.end_reason, s.title, s.title_by, s.model, s.model_config, s.system_prompt,
    s.billing_provider, s.billing_base_url, s.billing_mode, s.pinned, s.archived, s.extra, t.last_seq, t.message_count,
    t.tool_call_count, t.text_bytes, t.rewind_count, t.preview, t.input_tokens, t.output_tokens, t.cache_read_tokens,
    t.cache_write_tokens, t.reasoning_tokens, t.api_call_count, t.estimated_cost_usd, t.actual_cost_usd,
    t.cost_status, t.cost_source, t.pricing_version, s.title_owner
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id = ?

-- name: add_session_row
-- Add a session without any message.
INSERT INTO sessions (session_id, session_key, owner, source, user_id, parent_session_id, relation, started_at, model,
    model_config, system_prompt, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: fill_session_row
-- Fill in the columns that a session lacks; its owner and its beginning never change.
UPDATE sessions SET session_key = coalesce(session_key, ?),
    relation = CASE WHEN parent_session_id IS NULL THEN ? ELSE relation END,
    parent_session_id = coalesce(parent_session_id, ?), model = coalesce(model, ?),
    model_config = coalesce(model_config, ?), system_prompt = coalesce(system_prompt, ?), extra = coalesce(extra, ?)
WHERE session_id = ?

-- name: parent_of_session
-- The parent of a session, and the relation to it.
SELECT parent_session_id, relation FROM sessions WHERE session_id = ?

-- name: continuation_of_session
-- The continuation of a compressed session.
SELECT session_id FROM sessions WHERE parent_session_id = ? AND relation = 'continuation'

-- name: lane_of_session
-- The lane whose current session this is.
SELECT session_key FROM entries WHERE session_id = ?

-- name: owner_of_lane
-- The owner of a lane.
SELECT owner FROM entries WHERE session_key = ?

-- name: end_session_row
-- End a session that is on no lane. The first reason stands.
UPDATE sessions SET ended_at = ?, end_reason = ?, ends = ends + 1 WHERE session_id = ? AND ended_at IS NULL

-- name: reopen_session_row
-- Let a session go on that is on no lane.
UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE session_id = ? AND ended_at IS NOT NULL

-- name: set_system_prompt
-- Set the prompt that the model gets before all messages.
UPDATE sessions SET system_prompt = ? WHERE session_id = ?

-- name: note_system_prompt
-- Set the prompt of a session that has none.
UPDATE sessions SET system_prompt = ? WHERE session_id = ? AND system_prompt IS NULL

-- name: set_session_model
-- Set the model that answers, and its settings.
UPDATE sessions SET model = ?, model_config = coalesce(?, model_config) WHERE session_id = ?

-- name: set_session_pinned
-- Keep a session whatever retention says, or stop doing so.
UPDATE sessions SET pinned = ? WHERE session_id = ?

-- name: stored_messages_of_session
-- The number of messages in the conversation, and of all stored ones.
SELECT message_count, last_seq FROM totals WHERE session_id = ?

-- name: count_sessions
-- The number of sessions of a source with at least so many messages; archived ones only if asked for.
SELECT count(*) FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE ({a_text} IS NULL OR s.source = ?) AND t.message_count >= ? AND (s.archived = 0 OR {a_number} = 1)

-- name: count_sessions_of_owners
-- The number of such sessions of a few owners or one lane.
SELECT count(*) FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE {whose:s}
    AND ({a_text} IS NULL OR s.source = ?) AND t.message_count >= ? AND (s.archived = 0 OR {a_number} = 1)
