-- name: entry_version
-- Whether a cached copy of the lane's entry is still the current one.
SELECT version, session_id FROM entries WHERE session_key = ?

-- name: entry_by_key
-- The lane's entry.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries WHERE session_key = ?

-- name: entry_by_session
-- The entry that holds the session, on whatever lane.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries WHERE session_id = ?

-- name: put_entry (index)
-- Write the lane's entry whole.
INSERT INTO entries (session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session_key) DO UPDATE SET
    session_id = excluded.session_id, version = excluded.version, created_at = excluded.created_at,
    updated_at = excluded.updated_at, last_interaction_at = excluded.last_interaction_at, due_at = excluded.due_at,
    deferred_boundary = excluded.deferred_boundary, policy_fingerprint = excluded.policy_fingerprint,
    platform = excluded.platform, chat_type = excluded.chat_type, owner = excluded.owner,
    display_name = excluded.display_name, state = excluded.state, state_reason = excluded.state_reason,
    state_since = excluded.state_since, opened_by = excluded.opened_by,
    reset_had_activity = excluded.reset_had_activity, previous_session_id = excluded.previous_session_id,
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
    cache_read_tokens = excluded.cache_read_tokens, cache_write_tokens = excluded.cache_write_tokens,
    total_tokens = excluded.total_tokens, last_prompt_tokens = excluded.last_prompt_tokens,
    estimated_cost_usd = excluded.estimated_cost_usd, cost_status = excluded.cost_status, zone = excluded.zone,
    origin = excluded.origin, model_override = excluded.model_override, reset_policy = excluded.reset_policy,
    extra = excluded.extra

-- name: touch_entry (index)
-- A message goes on with the session, if it is still the one we know: only the clocks move.
UPDATE entries SET version = ?, updated_at = ?, last_interaction_at = ?
WHERE session_key = ? AND version = ? AND session_id = ?

-- name: settle_entry (index)
-- A turn has ended: the clocks move, its size is known, and what its person had to be told has been told.
UPDATE entries SET version = ?, updated_at = ?, last_interaction_at = ?, last_prompt_tokens = ?, opened_by = NULL,
    deferred_boundary = ?
WHERE session_key = ?

-- name: reschedule_entry
-- The policy's next instant, which sessions.json does not show.
UPDATE entries SET due_at = ?, policy_fingerprint = ? WHERE session_key = ? AND version = ?

-- name: delete_entry (index)
-- The lane has no session any more.
DELETE FROM entries WHERE session_key = ?

-- name: entries_in_key_order
-- A page of all entries, for sessions.json.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries WHERE session_key > ? ORDER BY session_key LIMIT ?

-- name: entries_due
-- Entries whose policy may be due, on lanes where no turn runs; the earliest first.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries
WHERE due_at <= ? AND (due_at, session_key) > (?, ?)
  AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.session_key = entries.session_key AND lease_epoch IS NOT NULL)
ORDER BY due_at, session_key LIMIT ?

-- name: entries_not_written_since
-- Entries old enough to be pruned, on lanes where no turn runs.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries
WHERE updated_at < ? AND (updated_at, session_key) > (?, ?) AND state <> 'suspended'
  AND NOT EXISTS (SELECT 1 FROM lanes WHERE lanes.session_key = entries.session_key AND lease_epoch IS NOT NULL)
ORDER BY updated_at, session_key LIMIT ?

-- name: entries_active_since
-- Sessions that were in use lately. One that waits to be resumed counts if it was used since: that run was cut off, too.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries
WHERE updated_at >= ? AND session_key > ?
  AND (state = 'active' OR (state = 'resume_pending' AND last_interaction_at > state_since))
ORDER BY session_key LIMIT ?

-- name: list_entries
-- All entries, the latest written first, after a position in that order.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries WHERE updated_at >= ? AND (updated_at, session_key) < (?, ?)
ORDER BY updated_at DESC, session_key DESC LIMIT ?

-- name: list_entries_of_owners
-- The same for a few owners or one lane.
SELECT session_key, session_id, version, created_at, updated_at, last_interaction_at, due_at, deferred_boundary,
    policy_fingerprint, platform, chat_type, owner, display_name, state, state_reason, state_since, opened_by,
    reset_had_activity, previous_session_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
    total_tokens, last_prompt_tokens, estimated_cost_usd, cost_status, zone, origin, model_override, reset_policy, extra
FROM entries
WHERE session_key IN (
        SELECT session_key FROM entries WHERE owner IN (SELECT value FROM json_each(?))
        UNION SELECT session_key FROM entries WHERE session_key = ?)
  AND updated_at >= ? AND (updated_at, session_key) < (?, ?)
ORDER BY updated_at DESC, session_key DESC LIMIT ?
