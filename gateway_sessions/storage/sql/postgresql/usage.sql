-- name: usage_event
-- Whether an event was counted already, where, and what is known of its price.
SELECT session_id, task, estimated_cost_usd, actual_cost_usd, cost_status FROM usage_events WHERE event_id = $1

-- name: add_usage
-- One use of a model.
INSERT INTO usage_events (event_id, session_id, at, task, model, provider, base_url, billing_mode, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, reasoning_tokens, api_calls, estimated_cost_usd, actual_cost_usd, cost_status,
    cost_source, pricing_version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)

-- name: price_usage
-- The actual price has become known.
UPDATE usage_events SET actual_cost_usd = $1, cost_status = 'actual', cost_source = coalesce($2, cost_source),
    pricing_version = coalesce($3, pricing_version)
WHERE event_id = $4

-- name: get_used
-- What is known so far of the cost of a session's turns, and of the model that answers.
SELECT estimated_cost_usd, actual_cost_usd, cost_status, model, billing_provider
FROM totals JOIN sessions USING (session_id) WHERE session_id = $1

-- name: add_used
-- Its turns have used more.
UPDATE totals SET input_tokens = input_tokens + $1, output_tokens = output_tokens + $2,
    cache_read_tokens = cache_read_tokens + $3, cache_write_tokens = cache_write_tokens + $4,
    reasoning_tokens = reasoning_tokens + $5, api_call_count = api_call_count + $6,
    estimated_cost_usd = $7, actual_cost_usd = $8, cost_status = $9,
    cost_source = coalesce($10, cost_source), pricing_version = coalesce($11, pricing_version)
WHERE session_id = $12

-- name: set_model
-- The first model that answered, unless another one was chosen for the session.
UPDATE sessions SET model = $1 WHERE session_id = $2 AND model IS NULL

-- name: set_route
-- Who is paid for it: the first one of whom that was told.
UPDATE sessions SET billing_provider = $1, billing_base_url = $2, billing_mode = $3
WHERE session_id = $4 AND billing_provider IS NULL

-- name: statuses_of_turns
-- How well the prices of a session's turns are known.
SELECT DISTINCT cost_status FROM usage_events WHERE session_id = $1 AND task = 'turn'

-- name: keep_entry
-- The record of an ended session, with what it turned out to have used.
UPDATE sessions SET entry = $1 WHERE session_id = $2 AND entry IS NOT NULL

-- name: usage_of_session
-- What a session has used, by model and task.
SELECT model, provider, task, count(*), sum(api_calls)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
    sum(cache_read_tokens)::bigint, sum(cache_write_tokens)::bigint, sum(reasoning_tokens)::bigint,
    sum(floor(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END + 0.5)::bigint)::bigint,
    sum((cost_status = 'unknown')::int), sum((cost_status = 'estimated')::int), sum((cost_status = 'actual')::int),
    sum((cost_status = 'included')::int)
FROM usage_events WHERE session_id = $1 GROUP BY model, provider, task

-- name: owner_of_session
-- Whose session it is.
SELECT owner FROM sessions WHERE session_id = $1

-- name: spent_by_session
-- What a session has used for all tasks.
SELECT count(*), sum(api_calls)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
    sum(cache_read_tokens)::bigint, sum(cache_write_tokens)::bigint, sum(reasoning_tokens)::bigint,
    sum(floor(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END + 0.5)::bigint)::bigint,
    sum((cost_status = 'unknown')::int), sum((cost_status = 'estimated')::int), sum((cost_status = 'actual')::int),
    sum((cost_status = 'included')::int)
FROM usage_events WHERE session_id = $1

-- name: spent_by_owner
-- The same for all sessions of an owner, within some time.
SELECT count(*), sum(api_calls)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
    sum(cache_read_tokens)::bigint, sum(cache_write_tokens)::bigint, sum(reasoning_tokens)::bigint,
    sum(floor(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END + 0.5)::bigint)::bigint,
    sum((cost_status = 'unknown')::int), sum((cost_status = 'estimated')::int), sum((cost_status = 'actual')::int),
    sum((cost_status = 'included')::int)
FROM sessions JOIN usage_events USING (session_id) WHERE owner = $1 AND at >= $2 AND at < $3

-- name: spent_by_all
-- The same for everybody.
SELECT count(*), sum(api_calls)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
    sum(cache_read_tokens)::bigint, sum(cache_write_tokens)::bigint, sum(reasoning_tokens)::bigint,
    sum(floor(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END + 0.5)::bigint)::bigint,
    sum((cost_status = 'unknown')::int), sum((cost_status = 'estimated')::int), sum((cost_status = 'actual')::int),
    sum((cost_status = 'included')::int)
FROM usage_events WHERE at >= $1 AND at < $2
