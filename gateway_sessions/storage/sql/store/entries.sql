-- name: entry_version
-- The version of an entry, to compare a cached copy with.
SELECT version FROM clocks WHERE entry_id = ?

-- name: entry_by_key
-- The lane's entry.
SELECT {entry}
FROM entries JOIN clocks USING (entry_id) WHERE session_key = ?

-- name: entry_by_session
-- The entry whose current session this is.
SELECT {entry}
FROM entries JOIN clocks USING (entry_id) WHERE session_id = ?

-- name: put_entry (index)
-- Write all of the lane's entry except its clocks.
INSERT INTO entries (entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
{update_instead:entry_id}
    session_id = {given:session_id}, owner = {given:owner}, platform = {given:platform}, state = {given:state},
    state_since = {given:state_since}, due_at = {given:due_at}, policy_fingerprint = {given:policy_fingerprint},
    record = {given:record}

-- name: put_record (index)
-- Write the record of an entry, which no query asks for.
UPDATE entries SET record = ? WHERE entry_id = ?

-- name: put_clocks (index)
-- Write the entry's clocks.
INSERT INTO clocks (entry_id, version, updated_at, last_interaction_at) VALUES (?, ?, ?, ?)
{update_instead:entry_id}
    version = {given:version}, updated_at = {given:updated_at}, last_interaction_at = {given:last_interaction_at}

-- name: touch_entry (index)
-- Move the clocks of an entry of that version. An id is never given to two entries, so no other lane's entry can match.
UPDATE clocks SET version = version + 1, updated_at = ?, last_interaction_at = NULL WHERE entry_id = ? AND version = ?

-- name: reschedule_entry
-- Store the next due instant, which sessions.json does not show.
UPDATE entries SET due_at = ?, policy_fingerprint = ?
WHERE entry_id = (SELECT entry_id FROM clocks WHERE entry_id = ? AND version = ?)

-- name: delete_entry (index)
-- Remove the entry of a lane.
DELETE FROM entries WHERE entry_id = ?

-- name: delete_clocks
-- Remove the clocks of an entry.
DELETE FROM clocks WHERE entry_id = ?

-- name: entries_in_key_order
-- A page of all entries, for sessions.json.
SELECT {entry}
FROM entries JOIN clocks USING (entry_id) WHERE session_key > ? ORDER BY session_key LIMIT ?

-- name: keys_in_order
-- A page of the keys of all lanes that have a session.
SELECT session_key FROM entries WHERE session_key > ? ORDER BY session_key LIMIT ?

-- name: first_due
-- The time at which the policy of any entry may be due first.
SELECT min(due_at) FROM entries

-- name: oldest_write
-- The time at which the entry was written that was left alone for longest.
SELECT min(updated_at) FROM clocks

-- name: entries_due
-- Entries whose policy may be due, on lanes where no turn runs or waits; the earliest first.
SELECT {entry}
FROM entries JOIN clocks USING (entry_id)
WHERE due_at <= ? AND (due_at, session_key) > (?, ?)
  AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.session_key = entries.session_key
      AND (lease_epoch IS NOT NULL OR waiting > 0))
ORDER BY due_at, session_key LIMIT ?

-- name: entries_not_written_since
-- Entries old enough to be pruned, on lanes where no turn runs or waits. The order of the joins keeps it to one walk of the clocks.
SELECT {entry}
FROM clocks {then_join} entries USING (entry_id)
WHERE clocks.entry_id > ? AND updated_at < ? AND state <> 'suspended'
  AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.session_key = entries.session_key
      AND (lease_epoch IS NOT NULL OR waiting > 0))
ORDER BY clocks.entry_id LIMIT ?

-- name: entries_active_since
-- Sessions that were in use lately. One that waits to be resumed counts if it was used since: that run was cut off, too.
SELECT {entry}
FROM clocks {then_join} entries USING (entry_id)
WHERE clocks.entry_id > ? AND updated_at >= ?
  AND (state = 'active' OR (state = 'resume_pending' AND coalesce(last_interaction_at, updated_at) > state_since))
ORDER BY clocks.entry_id LIMIT ?

-- name: list_entries
-- All entries, the latest written first, after a position in that order. The page is found in the clocks alone.
SELECT {entry}
FROM (
    SELECT entry_id FROM clocks WHERE updated_at >= ? AND (updated_at, entry_id) < (?, ?)
    ORDER BY updated_at DESC, entry_id DESC LIMIT ?
) AS page JOIN clocks USING (entry_id) JOIN entries USING (entry_id)
ORDER BY updated_at DESC, entry_id DESC

-- name: list_entries_of_owners
-- The entries of a few owners or one lane, the latest written first, after a position.
SELECT {entry}
FROM entries JOIN clocks USING (entry_id)
WHERE entry_id IN ({several:
        SELECT entry_id FROM entries WHERE owner IN ({each_of})
        UNION SELECT entry_id FROM entries WHERE session_key = ?})
  AND updated_at >= ? AND (updated_at, entry_id) < (?, ?)
ORDER BY updated_at DESC, entry_id DESC LIMIT ?
