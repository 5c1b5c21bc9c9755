-- name: insight_sessions
-- Sessions in use since then, by source: how many, how many of them began since, and how long they were in use.
SELECT source, {in_use}
FROM totals {then_join} sessions USING (session_id)
WHERE last_active >= ? AND ({a_text} IS NULL OR source = ?) GROUP BY source

-- name: insight_sessions_of_owners
-- The same for a few owners or one lane.
SELECT source, {in_use}
FROM sessions {then_join} totals USING (session_id)
WHERE {of_few}
  AND last_active >= ? AND ({a_text} IS NULL OR source = ?) GROUP BY source

-- name: insight_top
-- Of the same sessions those that stand out in four ways, as they are in whole.
SELECT * FROM (WITH shown AS (
    SELECT {whole_session}
    FROM totals {then_join} sessions USING (session_id)
    WHERE last_active >= ? AND ({a_text} IS NULL OR source = ?))
{that_stand_out}) AS tops

-- name: insight_top_of_owners
-- The same for a few owners or one lane.
SELECT * FROM (WITH shown AS (
    SELECT {whole_session}
    FROM sessions {then_join} totals USING (session_id)
    WHERE {of_few}
      AND last_active >= ? AND ({a_text} IS NULL OR source = ?))
{that_stand_out}) AS tops

-- name: insight_messages_by_source
-- How much was said since then, and how many results of tools are among it. Counted by session first: far fewer rows to join.
SELECT source, {sum:said} AS said, {sum:results} AS results
FROM (SELECT session_id, count(*) AS said, count(tool_name) AS results FROM messages {by_time}
        WHERE sent_at >= ? GROUP BY session_id) AS counted
    {then_join} sessions USING (session_id) GROUP BY source

-- name: insight_messages_by_time
-- The same by quarters of an hour, which every zone's hours consist of.
SELECT sent_at {divided_by} 900000000, count(*) FROM messages {by_time} WHERE sent_at >= ? GROUP BY 1

-- name: insight_tools
-- The same by tool.
SELECT tool_name, count(*) FROM messages {by_time}
WHERE sent_at >= ? AND tool_name IS NOT NULL GROUP BY tool_name

-- name: insight_messages_of_source
-- All of that at once for one source.
SELECT source, sent_at {divided_by} 900000000 AS quarter_hour, tool_name, count(*) AS said
FROM messages {by_time} {then_join} sessions USING (session_id)
WHERE sent_at >= ? AND source = ? GROUP BY source, 2, tool_name

-- name: insight_messages_of_owners
-- All of that at once for a few owners or one lane.
SELECT source, sent_at {divided_by} 900000000 AS quarter_hour, tool_name, count(*) AS said
FROM sessions {then_join} messages USING (session_id)
WHERE {of_few}
  AND sent_at >= ? AND ({a_text} IS NULL OR source = ?) GROUP BY source, 2, tool_name

-- name: insight_usage
-- What models were used for since then, by source, model and task.
SELECT usage_events.model, provider, task, {used}, source
FROM usage_events {then_join} sessions USING (session_id)
WHERE at >= ? AND ({a_text} IS NULL OR source = ?) GROUP BY source, usage_events.model, provider, task

-- name: insight_usage_of_owners
-- The same for a few owners or one lane.
SELECT usage_events.model, provider, task, {used}, source
FROM sessions {then_join} usage_events USING (session_id)
WHERE {of_few}
  AND at >= ? AND ({a_text} IS NULL OR source = ?) GROUP BY source, usage_events.model, provider, task
