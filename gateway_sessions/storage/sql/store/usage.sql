-- name: usage_event
-- The session of an event that was counted already, and its costs.
SELECT session_id, task, estimated_cost_usd, actual_cost_usd, cost_status FROM usage_events WHERE event_id = ?

-- name: add_usage
-- Add one use of a model.
INSERT INTO usage_events (event_id, at, task, model, provider, base_url, billing_mode, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, api_calls, estimated_cost_usd, actual_cost_usd, cost_status,
    cost_source, pricing_version, session_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: price_usage
-- Store the actual price of a use.
UPDATE usage_events SET actual_cost_usd = ?, cost_status = 'actual', cost_source = coalesce(?, cost_source),
    pricing_version = coalesce(?, pricing_version)
WHERE event_id = ?

-- name: get_used
-- The costs of a session's turns so far, and the model that answers.
SELECT estimated_cost_usd, actual_cost_usd, cost_status, model, billing_provider
FROM totals JOIN sessions USING (session_id) WHERE session_id = ?

-- name: add_used
-- Add the use of a turn to the session's.
UPDATE totals SET input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,
    cache_read_tokens = cache_read_tokens + ?, cache_write_tokens = cache_write_tokens + ?,
    reasoning_tokens = reasoning_tokens + ?, api_call_count = api_call_count + ?,
    estimated_cost_usd = ?, actual_cost_usd = ?, cost_status = ?,
    cost_source = coalesce(?, cost_source), pricing_version = coalesce(?, pricing_version)
WHERE session_id = ?

-- name: set_model
-- Store the first model that answered, unless another one was chosen for the session.
UPDATE sessions SET model = ? WHERE session_id = ? AND model IS NULL

-- name: set_route
-- Store the first provider of the session.
UPDATE sessions SET billing_provider = ?, billing_base_url = ?, billing_mode = ?
WHERE session_id = ? AND billing_provider IS NULL

-- name: statuses_of_turns
-- The cost statuses of a session's turns.
SELECT DISTINCT cost_status FROM usage_events WHERE session_id = ? AND task = 'turn'

-- name: keep_entry
-- Store the archived entry of an ended session with its final use.
UPDATE sessions SET entry = ? WHERE session_id = ? AND entry IS NOT NULL

-- name: usage_of_session
-- The use of a session, by model and task.
SELECT model, provider, task, {used}
FROM usage_events WHERE session_id = ? GROUP BY model, provider, task

-- name: owner_of_session
-- The owner of a session.
SELECT owner FROM sessions WHERE session_id = ?

-- name: spent_by_session
-- The use of a session for all tasks.
SELECT {used}
FROM usage_events WHERE session_id = ?

-- name: spent_by_owner
-- The use of all sessions of an owner within some time. The order of the joins keeps the query to their events.
SELECT {used}
FROM sessions {then_join} usage_events USING (session_id) WHERE owner = ? AND at >= ? AND at < ?

-- name: spent_by_all
-- The use of all sessions within some time.
SELECT {used}
FROM usage_events WHERE at >= ? AND at < ?
