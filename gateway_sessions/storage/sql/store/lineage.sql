-- name: continuations
-- The line of compressions that a session stands in, each with the session it continues. A parent that was reopened
-- goes on by itself, so only one that ended by compression has a continuation.
SELECT one.session_id, parent.session_id AS continued, one.owner, one.session_key,
    coalesce(totals.message_count, 0) AS message_count, one.started_at, one.relation
FROM (
    WITH RECURSIVE
    earlier (session_id) AS (
        SELECT session_id FROM sessions WHERE session_id = ?
        UNION
        SELECT parent.session_id FROM earlier JOIN sessions AS child ON child.session_id = earlier.session_id
            JOIN sessions AS parent ON parent.session_id = child.parent_session_id
        WHERE child.relation = 'continuation' AND parent.end_reason = 'compression'
    ),
    after (session_id) AS (
        SELECT session_id FROM sessions WHERE session_id = ?
        UNION
        SELECT child.session_id FROM after JOIN sessions AS parent ON parent.session_id = after.session_id
            JOIN sessions AS child {by_parent} ON child.parent_session_id = parent.session_id
        WHERE child.relation = 'continuation' AND parent.end_reason = 'compression'
    )
    SELECT session_id FROM earlier UNION SELECT session_id FROM after
) AS line {then_join} sessions AS one ON one.session_id = line.session_id
LEFT JOIN sessions AS parent ON one.relation = 'continuation' AND parent.session_id = one.parent_session_id
    AND parent.end_reason = 'compression'
LEFT JOIN totals ON totals.session_id = one.session_id

-- name: ancestors
-- The session and all that it came from, except by a reset: each with its parent.
SELECT session_id, CASE WHEN relation <> 'succession' THEN parent_session_id END FROM (
    WITH RECURSIVE earlier (session_id) AS (
        SELECT session_id FROM sessions WHERE session_id = ?
        UNION
        SELECT child.parent_session_id FROM earlier JOIN sessions AS child ON child.session_id = earlier.session_id
        WHERE child.relation <> 'succession' AND child.parent_session_id IS NOT NULL
    )
    SELECT session_id FROM earlier
) AS line {then_join} sessions USING (session_id)

-- name: descendants
-- The session and all that came from it, except by a reset: each with its parent.
SELECT session_id, CASE WHEN relation <> 'succession' THEN parent_session_id END FROM (
    WITH RECURSIVE after (session_id) AS (
        SELECT session_id FROM sessions WHERE session_id = ?
        UNION
        SELECT child.session_id FROM after JOIN sessions AS child {by_parent} ON child.parent_session_id = after.session_id
        WHERE child.relation <> 'succession'
    )
    SELECT session_id FROM after
) AS line {then_join} sessions USING (session_id)

-- name: set_archived
-- Leave a session out of lists, or list it again.
UPDATE sessions SET archived = ? WHERE session_id = ?

-- name: continuation_to_branch
-- Make a branch of the continuation of a session that was reopened and goes on by itself.
UPDATE sessions SET relation = 'branch' WHERE parent_session_id = ? AND relation = 'continuation'

-- name: session_to_descend_from
-- The columns of a session that a new session from it needs.
SELECT owner, title, ended_at, end_reason, started_at FROM sessions WHERE session_id = ?

-- name: place_of_message
-- The place of a message in its session.
SELECT seq FROM messages WHERE message_id = ? AND session_id = ?

-- name: add_totals_of_descendant
-- Add the totals of a session without messages; its preview is that of the session it comes from.
INSERT INTO totals (session_id, last_active, preview) SELECT ?, ?, preview FROM totals WHERE session_id = ?

-- name: add_descendant
-- Add a session from another one, with the lane, the owner and the settings of that.
INSERT INTO sessions (session_id, session_key, owner, source, user_id, parent_session_id, relation, started_at, title,
    title_by, model, model_config, system_prompt, billing_provider, billing_base_url, billing_mode, pinned, archived, extra,
    title_owner)
SELECT ?, session_key, owner, source, user_id, session_id, ?, ?, ?, ?, coalesce(?, model), model_config,
    coalesce(?, system_prompt), billing_provider, billing_base_url, billing_mode, pinned, archived, extra, title_owner
FROM sessions WHERE session_id = ?
