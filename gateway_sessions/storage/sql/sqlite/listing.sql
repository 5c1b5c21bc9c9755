-- name: list_recent
-- Sessions that nothing in sight continues, the latest active first, after a position. For all who see many sessions,
-- walking that order is the fastest way to a page.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM totals AS t CROSS JOIN sessions AS s ON s.session_id = t.session_id
WHERE (t.last_active, t.session_id) < (?, ?)
  AND coalesce(s.relation, '') <> 'delegate'
  AND (? OR s.owner IN (SELECT value FROM json_each(?)) OR s.session_key = ?)
  AND (? OR s.end_reason IS NULL OR s.end_reason <> 'compression' OR NOT EXISTS (
    SELECT 1 FROM sessions AS next WHERE next.parent_session_id = s.session_id AND next.relation = 'continuation'
      AND (? OR next.owner IN (SELECT value FROM json_each(?)) OR next.session_key = ?)))
  AND (? IS NULL OR s.source = ?) AND s.source NOT IN (SELECT value FROM json_each(?)) AND (? IS NULL OR s.archived = ?)
    AND t.message_count >= ? AND (? = 0
      OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~'
      OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~'
      OR s.session_id LIKE ? ESCAPE '~' OR s.source LIKE ? ESCAPE '~')
ORDER BY t.last_active DESC, t.session_id DESC LIMIT ?

-- name: list_recent_of_few
-- The same where few come into question: those of some owners, of a lane, of a source, in the archive, or known by their
-- ids are looked up, then sorted.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s CROSS JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id IN (
        SELECT session_id FROM sessions WHERE owner IN (SELECT value FROM json_each(?))
        UNION SELECT session_id FROM sessions WHERE session_key = ?
        UNION SELECT session_id FROM sessions WHERE source = ?
        UNION SELECT session_id FROM sessions WHERE archived = 1 AND ?
        UNION SELECT value FROM json_each(?))
  AND (t.last_active, t.session_id) < (?, ?)
  AND coalesce(s.relation, '') <> 'delegate'
  AND (? OR s.owner IN (SELECT value FROM json_each(?)) OR s.session_key = ?)
  AND (? OR s.end_reason IS NULL OR s.end_reason <> 'compression' OR NOT EXISTS (
    SELECT 1 FROM sessions AS next WHERE next.parent_session_id = s.session_id AND next.relation = 'continuation'
      AND (? OR next.owner IN (SELECT value FROM json_each(?)) OR next.session_key = ?)))
  AND (? IS NULL OR s.source = ?) AND s.source NOT IN (SELECT value FROM json_each(?)) AND (? IS NULL OR s.archived = ?)
    AND t.message_count >= ? AND (? = 0
      OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~'
      OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~'
      OR s.session_id LIKE ? ESCAPE '~' OR s.source LIKE ? ESCAPE '~')
ORDER BY t.last_active DESC, t.session_id DESC LIMIT ?

-- name: list_begun
-- Sessions that continue nothing in sight, the latest begun first, after a position. What a compressed one says counts for
-- nothing here if another one is shown in its place.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s CROSS JOIN totals AS t ON t.session_id = s.session_id
WHERE (s.started_at, s.session_id) < (?, ?)
  AND coalesce(s.relation, '') <> 'delegate'
  AND (? OR s.owner IN (SELECT value FROM json_each(?)) OR s.session_key = ?)
  AND (? OR coalesce(s.relation, '') <> 'continuation' OR NOT EXISTS (
    SELECT 1 FROM sessions AS parent
    WHERE parent.session_id = s.parent_session_id AND parent.end_reason = 'compression'
      AND (? OR parent.owner IN (SELECT value FROM json_each(?)) OR parent.session_key = ?)))
  AND (s.end_reason = 'compression' AND ? = 0
    OR (? IS NULL OR s.source = ?) AND s.source NOT IN (SELECT value FROM json_each(?)) AND (? IS NULL OR s.archived = ?)
    AND t.message_count >= ? AND (? = 0
      OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~'
      OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~'
      OR s.session_id LIKE ? ESCAPE '~' OR s.source LIKE ? ESCAPE '~'))
ORDER BY s.started_at DESC, s.session_id DESC LIMIT ?

-- name: list_one
-- One session as lists show it, and whether it says what is looked for.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s CROSS JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id = ? AND (? IS NULL OR s.source = ?) AND s.source NOT IN (SELECT value FROM json_each(?)) AND (? IS NULL OR s.archived = ?)
    AND t.message_count >= ? AND (? = 0
      OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~' OR t.preview LIKE ? ESCAPE '~'
      OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~' OR s.title LIKE ? ESCAPE '~'
      OR s.session_id LIKE ? ESCAPE '~' OR s.source LIKE ? ESCAPE '~')

-- name: list_by_id
-- Visible sessions whose id holds a text: the very one, then those that begin so, then the others, each latest first.
SELECT s.session_id, s.source, s.title, coalesce(t.preview, ''), t.last_active, s.started_at, s.owner, s.session_key, s.user_id,
    s.parent_session_id, s.relation, s.ended_at, s.end_reason, s.model, s.pinned, s.archived, t.message_count,
    t.tool_call_count, t.input_tokens, t.output_tokens, t.estimated_cost_usd
FROM sessions AS s CROSS JOIN totals AS t ON t.session_id = s.session_id
WHERE s.session_id IN (SELECT session_id FROM sessions WHERE session_id LIKE ? ESCAPE '~')
  AND (? OR s.owner IN (SELECT value FROM json_each(?)) OR s.session_key = ?)
ORDER BY CASE WHEN s.session_id = ? THEN 0 WHEN s.session_id LIKE ? ESCAPE '~' THEN 1 ELSE 2 END, t.last_active DESC,
    s.session_id DESC
LIMIT ?

-- name: few_of_owners
-- How many sessions those owners and that lane have, up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM sessions WHERE owner IN (SELECT value FROM json_each(?)) OR session_key = ? LIMIT ?) AS some

-- name: few_of_source
-- How many sessions of a source there are, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM sessions WHERE source = ? LIMIT ?) AS some

-- name: few_that_say
-- Sessions with a text in what lists show of them, up to a limit: read in the order in which it is stored, which is
-- several times faster than session by session.
SELECT session_id FROM totals
WHERE preview LIKE ? ESCAPE '~' OR preview LIKE ? ESCAPE '~' OR preview LIKE ? ESCAPE '~'
UNION ALL
SELECT called.session_id FROM (
    SELECT title, owner FROM sessions
    WHERE title IS NOT NULL
      AND (title LIKE ? ESCAPE '~' OR title LIKE ? ESCAPE '~' OR title LIKE ? ESCAPE '~')
) AS found CROSS JOIN sessions AS called ON called.title = found.title AND called.owner = found.owner
UNION ALL
SELECT session_id FROM sessions WHERE session_id LIKE ? ESCAPE '~'
UNION ALL
SELECT session_id FROM sessions
WHERE source IN (SELECT source FROM sessions GROUP BY source HAVING source LIKE ? ESCAPE '~')
LIMIT ?

-- name: few_archived
-- How many sessions are in the archive, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM sessions WHERE archived = 1 LIMIT ?) AS some
