-- name: forms_of_lanes
-- What of lanes has to be read in one way only.
SELECT session_key, leased_at, ready_at FROM lanes WHERE session_key > ? ORDER BY session_key LIMIT ?

-- name: forms_of_sessions
-- What of sessions has to be read in one way only.
SELECT session_id, relation, started_at, ended_at, entry, model_config, extra
FROM sessions WHERE session_id > ? ORDER BY session_id LIMIT ?

-- name: forms_of_entries
-- What of entries of lanes has to be read in one way only.
SELECT entry_id, session_key, session_id, state, state_since, due_at, record
FROM entries WHERE entry_id > ? ORDER BY entry_id LIMIT ?

-- name: forms_of_clocks
-- What of clocks has to be read in one way only.
SELECT entry_id, updated_at, last_interaction_at FROM clocks WHERE entry_id > ? ORDER BY entry_id LIMIT ?

-- name: forms_of_transitions
-- What of changes of state has to be read in one way only.
SELECT change_id, at FROM transitions WHERE change_id > ? ORDER BY change_id LIMIT ?

-- name: forms_of_hook_calls
-- What of calls of hooks has to be read in one way only.
SELECT idempotency_key, payload, created_at, next_try_at FROM hook_calls
WHERE idempotency_key > ? ORDER BY idempotency_key LIMIT ?

-- name: forms_of_totals
-- What of sums has to be read in one way only.
SELECT session_id, last_active FROM totals WHERE session_id > ? ORDER BY session_id LIMIT ?

-- name: forms_of_messages
-- What of messages has to be read in one way only.
SELECT message_id, sent_at, edited_at, hidden_because, parts, tool_calls, reasoning_details, codex_reasoning_items,
    codex_message_items, api_content, platform_messages, extra
FROM messages WHERE message_id > ? ORDER BY message_id LIMIT ?

-- name: forms_of_message_versions
-- What of earlier versions of messages has to be read in one way only.
SELECT message_id, version, parts, replaced_at FROM message_versions
WHERE (message_id, version) > (?, ?) ORDER BY message_id, version LIMIT ?

-- name: forms_of_usage_events
-- What of uses of models has to be read in one way only.
SELECT event_id, at, cost_status FROM usage_events WHERE event_id > ? ORDER BY event_id LIMIT ?

-- name: forms_of_tombstones
-- What of tombstones has to be read in one way only.
SELECT subject, erased_at FROM tombstones WHERE subject > ? ORDER BY subject LIMIT ?

-- name: forms_of_inbox
-- What of accepted messages has to be read in one way only.
SELECT item_id, kind, outcome, admitted_at, last_at, ready_at, settled_at, payload
FROM inbox WHERE item_id > ? ORDER BY item_id LIMIT ?

-- name: forms_of_outbox
-- What of replies has to be read in one way only.
SELECT reply_id, platform, account, state, created_at, next_try_at, settled_at, target, content
FROM outbox WHERE reply_id > ? ORDER BY reply_id LIMIT ?

-- name: forms_of_schedules
-- What of schedules has to be read in one way only.
SELECT name, session_key, state, due_at, last_at, created_at, settled_at, task, timing
FROM schedules WHERE name > ? ORDER BY name LIMIT ?

-- name: highest_epoch
-- Of the openings of which anything is left.
SELECT max(epoch) FROM (
    SELECT max(lease_epoch) AS epoch FROM lanes
    UNION ALL SELECT max(entry_id) {divided_by} 4294967296 FROM entries
    UNION ALL SELECT max(epoch) FROM outbox
    UNION ALL SELECT max(epoch) FROM nodes
) AS epochs
