-- name: insight_sessions
-- Sessions in use since then, by source: how many, how many of them began since, and how long they were in use.
SELECT source, count(*), sum((started_at >= $1)::int),
    sum(CASE WHEN started_at > $2 THEN CASE WHEN last_active > started_at THEN last_active - started_at ELSE 0 END
        ELSE last_active - $3 END)::bigint
FROM totals JOIN sessions USING (session_id)
WHERE last_active >= $4 AND ($5::text IS NULL OR source = $6) GROUP BY source

-- name: insight_sessions_of_owners
-- The same for a few owners or one lane.
SELECT source, count(*), sum((started_at >= $1)::int),
    sum(CASE WHEN started_at > $2 THEN CASE WHEN last_active > started_at THEN last_active - started_at ELSE 0 END
        ELSE last_active - $3 END)::bigint
FROM sessions JOIN totals USING (session_id)
WHERE session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT jsonb_array_elements_text($4::jsonb))
        UNION SELECT session_id FROM sessions WHERE session_key = $5)
  AND last_active >= $6 AND ($7::text IS NULL OR source = $8) GROUP BY source

-- name: insight_top
-- Of the same sessions those that stand out in four ways, as they are in whole.
SELECT * FROM (WITH shown AS (
    SELECT session_id, source, title, started_at, last_active - started_at AS micros, message_count, tool_call_count,
        input_tokens + output_tokens + cache_read_tokens + cache_write_tokens AS tokens
    FROM totals JOIN sessions USING (session_id)
    WHERE last_active >= $1 AND ($2::text IS NULL OR source = $3))
SELECT * FROM (SELECT 'longest', session_id, source, title, started_at, micros FROM shown
    WHERE micros > 0 ORDER BY micros DESC, session_id LIMIT $4) AS longest
UNION ALL SELECT * FROM (SELECT 'most_messages', session_id, source, title, started_at, message_count FROM shown
    WHERE message_count > 0 ORDER BY message_count DESC, session_id LIMIT $5) AS most_messages
UNION ALL SELECT * FROM (SELECT 'most_tokens', session_id, source, title, started_at, tokens FROM shown
    WHERE tokens > 0 ORDER BY tokens DESC, session_id LIMIT $6) AS most_tokens
UNION ALL SELECT * FROM (SELECT 'most_tool_calls', session_id, source, title, started_at, tool_call_count FROM shown
    WHERE tool_call_count > 0 ORDER BY tool_call_count DESC, session_id LIMIT $7) AS most_tool_calls) AS tops

-- name: insight_top_of_owners
-- The same for a few owners or one lane.
SELECT * FROM (WITH shown AS (
    SELECT session_id, source, title, started_at, last_active - started_at AS micros, message_count, tool_call_count,
        input_tokens + output_tokens + cache_read_tokens + cache_write_tokens AS tokens
    FROM sessions JOIN totals USING (session_id)
    WHERE session_id IN (
            SELECT session_id FROM sessions WHERE owner IN (SELECT jsonb_array_elements_text($1::jsonb))
            UNION SELECT session_id FROM sessions WHERE session_key = $2)
      AND last_active >= $3 AND ($4::text IS NULL OR source = $5))
SELECT * FROM (SELECT 'longest', session_id, source, title, started_at, micros FROM shown
    WHERE micros > 0 ORDER BY micros DESC, session_id LIMIT $6) AS longest
UNION ALL SELECT * FROM (SELECT 'most_messages', session_id, source, title, started_at, message_count FROM shown
    WHERE message_count > 0 ORDER BY message_count DESC, session_id LIMIT $7) AS most_messages
UNION ALL SELECT * FROM (SELECT 'most_tokens', session_id, source, title, started_at, tokens FROM shown
    WHERE tokens > 0 ORDER BY tokens DESC, session_id LIMIT $8) AS most_tokens
UNION ALL SELECT * FROM (SELECT 'most_tool_calls', session_id, source, title, started_at, tool_call_count FROM shown
    WHERE tool_call_count > 0 ORDER BY tool_call_count DESC, session_id LIMIT $9) AS most_tool_calls) AS tops

-- name: insight_messages_by_source
-- How much was said since then, and how many results of tools are among it. Counted by session first: far fewer rows to join.
SELECT source, sum(said)::bigint, sum(results)::bigint
FROM (SELECT session_id, count(*) AS said, count(tool_name) AS results FROM messages
        WHERE sent_at >= $1 GROUP BY session_id) AS counted
    JOIN sessions USING (session_id) GROUP BY source

-- name: insight_messages_by_time
-- The same by quarters of an hour, which every zone's hours consist of.
SELECT sent_at / 900000000, count(*) FROM messages WHERE sent_at >= $1 GROUP BY 1

-- name: insight_tools
-- The same by tool.
SELECT tool_name, count(*) FROM messages
WHERE sent_at >= $1 AND tool_name IS NOT NULL GROUP BY tool_name

-- name: insight_messages_of_source
-- All of that at once for one source.
SELECT source, sent_at / 900000000, tool_name, count(*)
FROM messages JOIN sessions USING (session_id)
WHERE sent_at >= $1 AND source = $2 GROUP BY source, 2, tool_name

-- name: insight_messages_of_owners
-- All of that at once for a few owners or one lane.
SELECT source, sent_at / 900000000, tool_name, count(*) FROM sessions JOIN messages USING (session_id)
WHERE session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT jsonb_array_elements_text($1::jsonb))
        UNION SELECT session_id FROM sessions WHERE session_key = $2)
  AND sent_at >= $3 AND ($4::text IS NULL OR source = $5) GROUP BY source, 2, tool_name

-- name: insight_usage
-- What models were used for since then, by source, model and task.
SELECT source, usage_events.model, provider, task, count(*), sum(api_calls)::bigint, sum(input_tokens)::bigint,
    sum(output_tokens)::bigint,
    sum(cache_read_tokens)::bigint, sum(cache_write_tokens)::bigint, sum(reasoning_tokens)::bigint,
    sum(floor(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END + 0.5)::bigint)::bigint,
    sum((cost_status = 'unknown')::int), sum((cost_status = 'estimated')::int), sum((cost_status = 'actual')::int),
    sum((cost_status = 'included')::int)
FROM usage_events JOIN sessions USING (session_id)
WHERE at >= $1 AND ($2::text IS NULL OR source = $3) GROUP BY source, usage_events.model, provider, task

-- name: insight_usage_of_owners
-- The same for a few owners or one lane.
SELECT source, usage_events.model, provider, task, count(*), sum(api_calls)::bigint, sum(input_tokens)::bigint,
    sum(output_tokens)::bigint,
    sum(cache_read_tokens)::bigint, sum(cache_write_tokens)::bigint, sum(reasoning_tokens)::bigint,
    sum(floor(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END + 0.5)::bigint)::bigint,
    sum((cost_status = 'unknown')::int), sum((cost_status = 'estimated')::int), sum((cost_status = 'actual')::int),
    sum((cost_status = 'included')::int)
FROM sessions JOIN usage_events USING (session_id)
WHERE session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT jsonb_array_elements_text($1::jsonb))
        UNION SELECT session_id FROM sessions WHERE session_key = $2)
  AND at >= $3 AND ($4::text IS NULL OR source = $5) GROUP BY source, usage_events.model, provider, task
