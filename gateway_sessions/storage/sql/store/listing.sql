-- name: list_recent
-- Sessions that nothing in sight continues, the latest active first, after a position. For all who see many sessions,
-- walking that order is the fastest way to a page.
SELECT {listed}
FROM totals AS t {by_activity} {then_join} sessions AS s ON s.session_id = t.session_id
WHERE {latest_in_sight}

-- name: list_recent_of_few
-- The same where few come into question: those of some owners, of a lane, of a source, in the archive, or known by their
-- ids are looked up, then sorted.
SELECT {listed}
FROM sessions AS s {then_join} totals AS t ON t.session_id = s.session_id
WHERE s.session_id IN ({several:
        SELECT session_id FROM sessions WHERE owner IN ({each_of})
        UNION SELECT session_id FROM sessions WHERE session_key = ?
        UNION SELECT session_id FROM sessions WHERE source = ?
        UNION SELECT session_id FROM sessions WHERE archived = 1 AND {a_number} = 1
        UNION {each_of}})
  AND {latest_in_sight}

-- name: list_begun
-- Sessions that continue nothing in sight, the latest begun first, after a position. What a compressed one says counts for
-- nothing here if another one is shown in its place.
SELECT {listed}
FROM sessions AS s {then_join} totals AS t ON t.session_id = s.session_id
WHERE (s.started_at, s.session_id) < (?, ?)
  AND coalesce(s.relation, '') <> 'delegate'
  AND {in_sight:s}
  AND ({a_number} = 1 OR coalesce(s.relation, '') <> 'continuation' OR NOT EXISTS (
    SELECT 1 FROM sessions AS parent
    WHERE parent.session_id = s.parent_session_id AND parent.end_reason = 'compression'
      AND {in_sight:parent}))
  AND (s.end_reason = 'compression' AND ? = 0
    OR {looked_for})
ORDER BY s.started_at DESC, s.session_id DESC LIMIT ?

-- name: list_one
-- One session as lists show it, and whether it says what is looked for.
SELECT {listed}
FROM sessions AS s {then_join} totals AS t ON t.session_id = s.session_id
WHERE s.session_id = ? AND {looked_for}

-- name: list_by_id
-- Visible sessions whose id holds a text: the very one, then those that begin so, then the others, each latest first.
SELECT {listed}
FROM sessions AS s {then_join} totals AS t ON t.session_id = s.session_id
WHERE s.session_id IN (SELECT session_id FROM sessions WHERE {says:session_id})
  AND {in_sight:s}
ORDER BY CASE WHEN s.session_id = ? THEN 0 WHEN {says:s.session_id} THEN 1 ELSE 2 END, t.last_active DESC,
    s.session_id DESC
LIMIT ?

-- name: few_of_owners
-- How many sessions those owners have, and that lane, each up to a limit. Those that both have count twice: it is quicker,
-- and only tells few from many.
SELECT count(*) FROM (
    SELECT 1 FROM (SELECT 1 FROM ({each_of}) AS chosen {then_join} sessions ON owner = chosen.value LIMIT ?) AS owned
    UNION ALL SELECT 1 FROM (SELECT 1 FROM sessions WHERE session_key = ? LIMIT ?) AS on_lane) AS few

-- name: few_of_source
-- How many sessions of a source there are, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM sessions WHERE source = ? LIMIT ?) AS few

-- name: few_that_say
-- Sessions with a text in what lists show of them, up to a limit: read in the order in which it is stored, which is
-- several times faster than session by session.
SELECT session_id FROM totals
WHERE {says:preview} OR {says:preview} OR {says:preview}
UNION ALL
SELECT called.session_id FROM (
    SELECT title, owner FROM sessions
    WHERE title IS NOT NULL
      AND ({says:title} OR {says:title} OR {says:title})
) AS found {then_join} sessions AS called ON called.title = found.title AND called.owner = found.owner
UNION ALL
SELECT session_id FROM sessions WHERE {says:session_id}
UNION ALL
SELECT session_id FROM sessions
WHERE source IN (SELECT source FROM sessions GROUP BY source HAVING {says:source})
LIMIT ?

-- name: few_archived
-- How many sessions are in the archive, up to a limit.
SELECT count(*) FROM (SELECT 1 FROM sessions WHERE archived = 1 LIMIT ?) AS few
