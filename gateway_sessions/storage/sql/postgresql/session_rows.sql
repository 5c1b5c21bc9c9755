-- name: session_record
-- All that is known of a session.
SELECT s.session_id, s.source, s.owner, s.started_at, t.last_active, s.session_key, s.user_id, s.parent_session_id,
    s.relation, s.ended_at, s.end_reason, s.title, s.title_by, s.model, s.model_config, s.system_prompt,
    s.billing_provider, s.billing_base_url, s.billing_mode, s.pinned, s.archived, s.extra, t.last_seq, t.message_count,
    t.tool_call_count, t.text_bytes, t.rewind_count, t.preview, t.input_tokens, t.output_tokens, t.cache_read_tokens,
    t.cache_write_tokens, t.reasoning_tokens, t.api_call_count, t.estimated_cost_usd, t.actual_cost_usd,
    t.cost_status, t.cost_source, t.pricing_version
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id = $1

-- name: add_session_row
-- A session that somebody makes by hand.
INSERT INTO sessions (session_id, session_key, owner, source, user_id, parent_session_id, relation, started_at, model,
    model_config, system_prompt, extra)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)

-- name: fill_session_row
-- What is known now of a session and was not before; whose it is and where it began never changes.
UPDATE sessions SET session_key = coalesce(session_key, $1),
    relation = CASE WHEN parent_session_id IS NULL THEN $2 ELSE relation END,
    parent_session_id = coalesce(parent_session_id, $3), model = coalesce(model, $4),
    model_config = coalesce(model_config, $5), system_prompt = coalesce(system_prompt, $6), extra = coalesce(extra, $7)
WHERE session_id = $8

-- name: parent_of_session
-- Which session it came from.
SELECT parent_session_id, relation FROM sessions WHERE session_id = $1

-- name: continuation_of_session
-- Where a compressed session goes on.
SELECT session_id FROM sessions WHERE parent_session_id = $1 AND relation = 'continuation'

-- name: lane_of_session
-- The lane whose current session it is.
SELECT session_key FROM entries WHERE session_id = $1

-- name: owner_of_lane
-- Whose the lane is.
SELECT owner FROM entries WHERE session_key = $1

-- name: end_session_row
-- A session without a lane has ended. The first reason stands.
UPDATE sessions SET ended_at = $1, end_reason = $2, ends = ends + 1 WHERE session_id = $3 AND ended_at IS NULL

-- name: reopen_session_row
-- A session without a lane goes on.
UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE session_id = $1 AND ended_at IS NOT NULL

-- name: set_system_prompt
-- What the model is told before anything else.
UPDATE sessions SET system_prompt = $1 WHERE session_id = $2

-- name: set_session_model
-- Which model answers now, and how it is set.
UPDATE sessions SET model = $1, model_config = coalesce($2, model_config) WHERE session_id = $3

-- name: set_session_pinned
-- Whether it is kept whatever retention says.
UPDATE sessions SET pinned = $1 WHERE session_id = $2

-- name: stored_messages_of_session
-- How many messages are part of the conversation, and how many are stored.
SELECT message_count, last_seq FROM totals WHERE session_id = $1

-- name: count_sessions
-- How many there are of a source, with so many messages at least; archived ones only if asked for.
SELECT count(*) FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE ($1::text IS NULL OR s.source = $2) AND t.message_count >= $3 AND (s.archived = 0 OR $4::bigint <> 0)

-- name: count_sessions_of_owners
-- The same, as far as somebody may see them.
SELECT count(*) FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE (s.owner IN (SELECT jsonb_array_elements_text($1::jsonb)) OR s.session_key = $2)
    AND ($3::text IS NULL OR s.source = $4) AND t.message_count >= $5 AND (s.archived = 0 OR $6::bigint <> 0)
