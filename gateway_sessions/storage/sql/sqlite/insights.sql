-- name: insight_sessions
-- Sessions in use since then, by source: how many, how many of them began since, and how long they were in use.
SELECT source, count(*), sum(started_at >= ?),
    sum(CASE WHEN started_at > ? THEN CASE WHEN last_active > started_at THEN last_active - started_at ELSE 0 END
        ELSE last_active - ? END)
FROM totals CROSS JOIN sessions USING (session_id)
WHERE last_active >= ? AND (? IS NULL OR source = ?) GROUP BY source

-- name: insight_sessions_of_owners
-- The same for a few owners or one lane.
SELECT source, count(*), sum(started_at >= ?),
    sum(CASE WHEN started_at > ? THEN CASE WHEN last_active > started_at THEN last_active - started_at ELSE 0 END
        ELSE last_active - ? END)
FROM sessions CROSS JOIN totals USING (session_id)
WHERE session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT value FROM json_each(?))
        UNION SELECT session_id FROM sessions WHERE session_key = ?)
  AND last_active >= ? AND (? IS NULL OR source = ?) GROUP BY source

-- name: insight_top
-- Of the same sessions those that stand out in four ways, as they are in whole.
SELECT * FROM (WITH shown AS (
    SELECT session_id, source, title, started_at, last_active - started_at AS micros, message_count, tool_call_count,
        input_tokens + output_tokens + cache_read_tokens + cache_write_tokens AS tokens
    FROM totals CROSS JOIN sessions USING (session_id)
    WHERE last_active >= ? AND (? IS NULL OR source = ?))
SELECT * FROM (SELECT 'longest', session_id, source, title, started_at, micros FROM shown
    WHERE micros > 0 ORDER BY micros DESC, session_id LIMIT ?)
UNION ALL SELECT * FROM (SELECT 'most_messages', session_id, source, title, started_at, message_count FROM shown
    WHERE message_count > 0 ORDER BY message_count DESC, session_id LIMIT ?)
UNION ALL SELECT * FROM (SELECT 'most_tokens', session_id, source, title, started_at, tokens FROM shown
    WHERE tokens > 0 ORDER BY tokens DESC, session_id LIMIT ?)
UNION ALL SELECT * FROM (SELECT 'most_tool_calls', session_id, source, title, started_at, tool_call_count FROM shown
    WHERE tool_call_count > 0 ORDER BY tool_call_count DESC, session_id LIMIT ?))

-- name: insight_top_of_owners
-- The same for a few owners or one lane.
SELECT * FROM (WITH shown AS (
    SELECT session_id, source, title, started_at, last_active - started_at AS micros, message_count, tool_call_count,
        input_tokens + output_tokens + cache_read_tokens + cache_write_tokens AS tokens
    FROM sessions CROSS JOIN totals USING (session_id)
    WHERE session_id IN (
            SELECT session_id FROM sessions WHERE owner IN (SELECT value FROM json_each(?))
            UNION SELECT session_id FROM sessions WHERE session_key = ?)
      AND last_active >= ? AND (? IS NULL OR source = ?))
SELECT * FROM (SELECT 'longest', session_id, source, title, started_at, micros FROM shown
    WHERE micros > 0 ORDER BY micros DESC, session_id LIMIT ?)
UNION ALL SELECT * FROM (SELECT 'most_messages', session_id, source, title, started_at, message_count FROM shown
    WHERE message_count > 0 ORDER BY message_count DESC, session_id LIMIT ?)
UNION ALL SELECT * FROM (SELECT 'most_tokens', session_id, source, title, started_at, tokens FROM shown
    WHERE tokens > 0 ORDER BY tokens DESC, session_id LIMIT ?)
UNION ALL SELECT * FROM (SELECT 'most_tool_calls', session_id, source, title, started_at, tool_call_count FROM shown
    WHERE tool_call_count > 0 ORDER BY tool_call_count DESC, session_id LIMIT ?))

-- name: insight_messages_by_source
-- How much was said since then, and how many results of tools are among it. Counted by session first: far fewer rows to join.
SELECT source, sum(said), sum(results)
FROM (SELECT session_id, count(*) AS said, count(tool_name) AS results FROM messages INDEXED BY messages_by_time
        WHERE sent_at >= ? GROUP BY session_id)
    CROSS JOIN sessions USING (session_id) GROUP BY source

-- name: insight_messages_by_time
-- The same by quarters of an hour, which every zone's hours consist of.
SELECT sent_at / 900000000, count(*) FROM messages INDEXED BY messages_by_time WHERE sent_at >= ? GROUP BY 1

-- name: insight_tools
-- The same by tool.
SELECT tool_name, count(*) FROM messages INDEXED BY messages_by_time
WHERE sent_at >= ? AND tool_name IS NOT NULL GROUP BY tool_name

-- name: insight_messages_of_source
-- All of that at once for one source.
SELECT source, sent_at / 900000000, tool_name, count(*)
FROM messages INDEXED BY messages_by_time CROSS JOIN sessions USING (session_id)
WHERE sent_at >= ? AND source = ? GROUP BY source, 2, tool_name

-- name: insight_messages_of_owners
-- All of that at once for a few owners or one lane.
SELECT source, sent_at / 900000000, tool_name, count(*) FROM sessions CROSS JOIN messages USING (session_id)
WHERE session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT value FROM json_each(?))
        UNION SELECT session_id FROM sessions WHERE session_key = ?)
  AND sent_at >= ? AND (? IS NULL OR source = ?) GROUP BY source, 2, tool_name

-- name: insight_usage
-- What models were used for since then, by source, model and task.
SELECT source, usage_events.model, provider, task, count(*), sum(api_calls), sum(input_tokens), sum(output_tokens),
    sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens),
    sum(CAST(round(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END) AS INTEGER)),
    sum(cost_status = 'unknown'), sum(cost_status = 'estimated'), sum(cost_status = 'actual'), sum(cost_status = 'included')
FROM usage_events CROSS JOIN sessions USING (session_id)
WHERE at >= ? AND (? IS NULL OR source = ?) GROUP BY source, usage_events.model, provider, task

-- name: insight_usage_of_owners
-- The same for a few owners or one lane.
SELECT source, usage_events.model, provider, task, count(*), sum(api_calls), sum(input_tokens), sum(output_tokens),
    sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens),
    sum(CAST(round(1e9 * CASE cost_status WHEN 'actual' THEN actual_cost_usd WHEN 'estimated' THEN estimated_cost_usd
        ELSE 0 END) AS INTEGER)),
    sum(cost_status = 'unknown'), sum(cost_status = 'estimated'), sum(cost_status = 'actual'), sum(cost_status = 'included')
FROM sessions CROSS JOIN usage_events USING (session_id)
WHERE session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT value FROM json_each(?))
        UNION SELECT session_id FROM sessions WHERE session_key = ?)
  AND at >= ? AND (? IS NULL OR source = ?) GROUP BY source, usage_events.model, provider, task
