-- name: list_recent
-- Sessions that nothing in sight continues, the latest active first, after a position. For all who see many sessions,
-- walking that order is the fastest way to a page.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM totals AS t JOIN sessions AS s ON s.session_id = t.session_id
WHERE (t.last_active, t.session_id) < ($1, $2)
  AND coalesce(s.relation, '') <> 'delegate'
  AND ($3::bigint <> 0 OR s.owner IN (SELECT jsonb_array_elements_text($4::jsonb)) OR s.session_key = $5)
  AND ($6::bigint <> 0 OR s.end_reason IS NULL OR s.end_reason <> 'compression' OR NOT EXISTS (
    SELECT 1 FROM sessions AS next WHERE next.parent_session_id = s.session_id AND next.relation = 'continuation'
      AND ($7::bigint <> 0 OR next.owner IN (SELECT jsonb_array_elements_text($8::jsonb)) OR next.session_key = $9)))
  AND ($10::text IS NULL OR s.source = $11) AND s.source NOT IN (SELECT jsonb_array_elements_text($12::jsonb))
      AND ($13::bigint IS NULL OR s.archived = $14)
    AND t.message_count >= $15 AND ($16::bigint = 0
      OR t.preview ILIKE $17 ESCAPE '~' OR t.preview ILIKE $18 ESCAPE '~' OR t.preview ILIKE $19 ESCAPE '~'
      OR s.title ILIKE $20 ESCAPE '~' OR s.title ILIKE $21 ESCAPE '~' OR s.title ILIKE $22 ESCAPE '~'
      OR s.session_id ILIKE $23 ESCAPE '~' OR s.source ILIKE $24 ESCAPE '~')
ORDER BY t.last_active DESC, t.session_id DESC LIMIT $25

-- name: list_recent_of_few
-- The same where few come into question: those of some owners, of a lane, of a source, in the archive, or known by their
-- ids are looked up, then sorted.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT jsonb_array_elements_text($1::jsonb))
        UNION SELECT session_id FROM sessions WHERE session_key = $2
        UNION SELECT session_id FROM sessions WHERE source = $3
        UNION SELECT session_id FROM sessions WHERE archived = 1 AND $4::bigint <> 0
        UNION SELECT jsonb_array_elements_text($5::jsonb))
  AND (t.last_active, t.session_id) < ($6, $7)
  AND coalesce(s.relation, '') <> 'delegate'
  AND ($8::bigint <> 0 OR s.owner IN (SELECT jsonb_array_elements_text($9::jsonb)) OR s.session_key = $10)
  AND ($11::bigint <> 0 OR s.end_reason IS NULL OR s.end_reason <> 'compression' OR NOT EXISTS (
    SELECT 1 FROM sessions AS next WHERE next.parent_session_id = s.session_id AND next.relation = 'continuation'
      AND ($12::bigint <> 0 OR next.owner IN (SELECT jsonb_array_elements_text($13::jsonb)) OR next.session_key = $14)))
  AND ($15::text IS NULL OR s.source = $16) AND s.source NOT IN (SELECT jsonb_array_elements_text($17::jsonb))
      AND ($18::bigint IS NULL OR s.archived = $19)
    AND t.message_count >= $20 AND ($21::bigint = 0
      OR t.preview ILIKE $22 ESCAPE '~' OR t.preview ILIKE $23 ESCAPE '~' OR t.preview ILIKE $24 ESCAPE '~'
      OR s.title ILIKE $25 ESCAPE '~' OR s.title ILIKE $26 ESCAPE '~' OR s.title ILIKE $27 ESCAPE '~'
      OR s.session_id ILIKE $28 ESCAPE '~' OR s.source ILIKE $29 ESCAPE '~')
ORDER BY t.last_active DESC, t.session_id DESC LIMIT $30

-- name: list_begun
-- Sessions that continue nothing in sight, the latest begun first, after a position. What a compressed one says counts for
-- nothing here if another one is shown in its place.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE (s.started_at, s.session_id) < ($1, $2)
  AND coalesce(s.relation, '') <> 'delegate'
  AND ($3::bigint <> 0 OR s.owner IN (SELECT jsonb_array_elements_text($4::jsonb)) OR s.session_key = $5)
  AND ($6::bigint <> 0 OR coalesce(s.relation, '') <> 'continuation' OR NOT EXISTS (
    SELECT 1 FROM sessions AS parent
    WHERE parent.session_id = s.parent_session_id AND parent.end_reason = 'compression'
      AND ($7::bigint <> 0 OR parent.owner IN (SELECT jsonb_array_elements_text($8::jsonb)) OR parent.session_key = $9)))
  AND (s.end_reason = 'compression' AND $10::bigint = 0
    OR ($11::text IS NULL OR s.source = $12) AND s.source NOT IN (SELECT jsonb_array_elements_text($13::jsonb))
        AND ($14::bigint IS NULL OR s.archived = $15)
    AND t.message_count >= $16 AND ($17::bigint = 0
      OR t.preview ILIKE $18 ESCAPE '~' OR t.preview ILIKE $19 ESCAPE '~' OR t.preview ILIKE $20 ESCAPE '~'
      OR s.title ILIKE $21 ESCAPE '~' OR s.title ILIKE $22 ESCAPE '~' OR s.title ILIKE $23 ESCAPE '~'
      OR s.session_id ILIKE $24 ESCAPE '~' OR s.source ILIKE $25 ESCAPE '~'))
ORDER BY s.started_at DESC, s.session_id DESC LIMIT $26

-- name: list_one
-- One session as lists show it, and whether it says what is looked for.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id = $1 AND ($2::text IS NULL OR s.source = $3) AND s.source NOT
    IN (SELECT jsonb_array_elements_text($4::jsonb)) AND ($5::bigint IS NULL OR s.archived = $6)
    AND t.message_count >= $7 AND ($8::bigint = 0
      OR t.preview ILIKE $9 ESCAPE '~' OR t.preview ILIKE $10 ESCAPE '~' OR t.preview ILIKE $11 ESCAPE '~'
      OR s.title ILIKE $12 ESCAPE '~' OR s.title ILIKE $13 ESCAPE '~' OR s.title ILIKE $14 ESCAPE '~'
      OR s.session_id ILIKE $15 ESCAPE '~' OR s.source ILIKE $16 ESCAPE '~')

-- name: list_by_id
-- Visible sessions whose id holds a text: the very one, then those that begin so, then the others, each latest first.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id IN (SELECT session_id FROM sessions WHERE session_id ILIKE $1 ESCAPE '~')
  AND ($2::bigint <> 0 OR s.owner IN (SELECT jsonb_array_elements_text($3::jsonb)) OR s.session_key = $4)
ORDER BY CASE WHEN s.session_id = $5 THEN 0 WHEN s.session_id ILIKE $6 ESCAPE '~' THEN 1 ELSE 2 END, t.last_active DESC,
    s.session_id DESC
LIMIT $7

-- name: few_of_owners
-- How many sessions those owners and that lane have, up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM sessions WHERE owner IN (SELECT jsonb_array_elements_text($1::jsonb)) OR session_key = $2 LIMIT $3) AS few

-- name: few_of_source
-- How many sessions of a source there are, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM sessions WHERE source = $1 LIMIT $2) AS few

-- name: few_that_say
-- Sessions with a text in what lists show of them, up to a limit: read in the order in which it is stored, which is
-- several times faster than session by session.
SELECT session_id FROM totals
WHERE preview ILIKE $1 ESCAPE '~' OR preview ILIKE $2 ESCAPE '~' OR preview ILIKE $3 ESCAPE '~'
UNION ALL
SELECT called.session_id FROM (
    SELECT title, owner FROM sessions
    WHERE title IS NOT NULL
      AND (title ILIKE $4 ESCAPE '~' OR title ILIKE $5 ESCAPE '~' OR title ILIKE $6 ESCAPE '~')
) AS found JOIN sessions AS called ON called.title = found.title AND called.owner = found.owner
UNION ALL
SELECT session_id FROM sessions WHERE session_id ILIKE $7 ESCAPE '~'
UNION ALL
SELECT session_id FROM sessions
WHERE source IN (SELECT source FROM sessions GROUP BY source HAVING source ILIKE $8 ESCAPE '~')
LIMIT $9

-- name: few_archived
-- How many sessions are in the archive, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM sessions WHERE archived = 1 LIMIT $1) AS few
