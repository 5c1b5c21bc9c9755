-- name: usage_event
-- Whether an event was counted already, where, and what is known of its price.
SELECT session_id, task, estimated_cost_usd, actual_cost_usd, cost_status FROM usage_events WHERE event_id = ?

-- name: add_usage
-- One use of a model.
INSERT INTO usage_events (event_id, session_id, at, task, model, provider, base_url, billing_mode, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, api_calls, estimated_cost_usd, actual_cost_usd, cost_status,
    cost_source, pricing_version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: price_usage
-- The actual price has become known.
UPDATE usage_events SET actual_cost_usd = ?, cost_status = 'actual', cost_source = coalesce(?, cost_source),
    pricing_version = coalesce(?, pricing_version)
WHERE event_id = ?

-- name: get_used
-- What is known so far of the cost of a session's turns, and of the model that answers.
SELECT estimated_cost_usd, actual_cost_usd, cost_status, model, billing_provider
FROM totals JOIN sessions USING (session_id) WHERE session_id = ?

-- name: add_used
-- Its turns have used more.
UPDATE totals SET input_tokens = input_tokens + ?, output_tokens = output_tokens + ?,
    cache_read_tokens = cache_read_tokens + ?, cache_write_tokens = cache_write_tokens + ?,
    reasoning_tokens = reasoning_tokens + ?, api_call_count = api_call_count + ?,
    estimated_cost_usd = ?, actual_cost_usd = ?, cost_status = ?,
    cost_source = coalesce(?, cost_source), pricing_version = coalesce(?, pricing_version)
WHERE session_id = ?

-- name: set_model
-- The first model that answered, unless another one was chosen for the session.
UPDATE sessions SET model = ? WHERE session_id = ? AND model IS NULL

-- name: set_route
-- Who is paid for it: the first one of whom that was told.
UPDATE sessions SET billing_provider = ?, billing_base_url = ?, billing_mode = ?
WHERE session_id = ? AND billing_provider IS NULL

-- name: statuses_of_turns
-- How well the prices of a session's turns are known.
SELECT DISTINCT cost_status FROM usage_events WHERE session_id = ? AND task = 'turn'

-- name: keep_entry
-- The record of an ended session, with what it turned out to have used.
UPDATE sessions SET entry = ? WHERE session_id = ? AND entry IS NOT NULL

-- name: usage_of_session
-- What a session has used, by model and task.
SELECT model, provider, task, {used}
FROM usage_events WHERE session_id = ? GROUP BY model, provider, task

-- name: owner_of_session
-- Whose session it is.
SELECT owner FROM sessions WHERE session_id = ?

-- name: spent_by_session
-- What a session has used for all tasks.
SELECT {used}
FROM usage_events WHERE session_id = ?

-- name: spent_by_owner
-- The same for all sessions of an owner, within some time. The order of the joins keeps it to their events.
SELECT {used}
FROM sessions {then_join} usage_events USING (session_id) WHERE owner = ? AND at >= ? AND at < ?

-- name: spent_by_all
-- The same for everybody.
SELECT {used}
FROM usage_events WHERE at >= ? AND at < ?
