-- name: entry_version
-- Whether a cached copy of an entry is still the current one.
SELECT version FROM clocks WHERE entry_id = $1

-- name: entry_by_key
-- The lane's entry.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM entries JOIN clocks USING (entry_id) WHERE session_key = $1

-- name: entry_by_session
-- The entry that holds the session, on whatever lane.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM entries JOIN clocks USING (entry_id) WHERE session_id = $1

-- name: put_entry (index)
-- Write all of the lane's entry but its clocks.
INSERT INTO entries (entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (entry_id) DO UPDATE SET
    session_id = excluded.session_id, owner = excluded.owner, platform = excluded.platform, state = excluded.state,
    state_since = excluded.state_since, due_at = excluded.due_at, policy_fingerprint = excluded.policy_fingerprint,
    record = excluded.record

-- name: put_record (index)
-- Write only what no query asks for.
UPDATE entries SET record = $1 WHERE entry_id = $2

-- name: put_clocks (index)
-- Write the entry's clocks, whatever they were.
INSERT INTO clocks (entry_id, version, updated_at, last_interaction_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (entry_id) DO UPDATE SET
    version = excluded.version, updated_at = excluded.updated_at, last_interaction_at = excluded.last_interaction_at

-- name: touch_entry (index)
-- A message goes on with the session, if it is still the one we know. The id of an entry is never given again.
UPDATE clocks SET version = version + 1, updated_at = $1, last_interaction_at = NULL WHERE entry_id = $2 AND version = $3

-- name: reschedule_entry
-- The policy's next instant, which sessions.json does not show.
UPDATE entries SET due_at = $1, policy_fingerprint = $2
WHERE entry_id = (SELECT entry_id FROM clocks WHERE entry_id = $3 AND version = $4)

-- name: delete_entry (index)
-- The lane has no session any more.
DELETE FROM entries WHERE entry_id = $1

-- name: delete_clocks
-- Nor does it have clocks.
DELETE FROM clocks WHERE entry_id = $1

-- name: entries_in_key_order
-- A page of all entries, for sessions.json.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM entries JOIN clocks USING (entry_id) WHERE session_key > $1 ORDER BY session_key LIMIT $2

-- name: entries_due
-- Entries whose policy may be due, on lanes where no turn runs or waits; the earliest first.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM entries JOIN clocks USING (entry_id)
WHERE due_at <= $1 AND (due_at, session_key) > ($2, $3)
  AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.session_key = entries.session_key
      AND (lease_epoch IS NOT NULL OR waiting > 0))
ORDER BY due_at, session_key LIMIT $4

-- name: entries_not_written_since
-- Entries old enough to be pruned, on lanes where no turn runs or waits.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM clocks JOIN entries USING (entry_id)
WHERE clocks.entry_id > $1 AND updated_at < $2 AND state <> 'suspended'
  AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.session_key = entries.session_key
      AND (lease_epoch IS NOT NULL OR waiting > 0))
ORDER BY clocks.entry_id LIMIT $3

-- name: entries_active_since
-- Sessions that were in use lately. One that waits to be resumed counts if it was used since: that run was cut off, too.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM clocks JOIN entries USING (entry_id)
WHERE clocks.entry_id > $1 AND updated_at >= $2
  AND (state = 'active' OR (state = 'resume_pending' AND coalesce(last_interaction_at, updated_at) > state_since))
ORDER BY clocks.entry_id LIMIT $3

-- name: list_entries
-- All entries, the latest written first, after a position in that order. The page is found in the clocks alone.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM (
    SELECT entry_id FROM clocks WHERE updated_at >= $1 AND (updated_at, entry_id) < ($2, $3)
    ORDER BY updated_at DESC, entry_id DESC LIMIT $4
) AS page JOIN clocks USING (entry_id) JOIN entries USING (entry_id)
ORDER BY updated_at DESC, entry_id DESC

-- name: list_entries_of_owners
-- The same for a few owners or one lane.
SELECT entries.entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record,
    version, updated_at, last_interaction_at
FROM entries JOIN clocks USING (entry_id)
WHERE entry_id IN (
        SELECT entry_id FROM entries WHERE owner IN (SELECT jsonb_array_elements_text($1::jsonb))
        UNION SELECT entry_id FROM entries WHERE session_key = $2)
  AND updated_at >= $3 AND (updated_at, entry_id) < ($4, $5)
ORDER BY updated_at DESC, entry_id DESC LIMIT $6
