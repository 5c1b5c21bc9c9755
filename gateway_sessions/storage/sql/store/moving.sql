-- fragment: columns_of_lanes
-- All of them, the key first.
session_key, lease_epoch, lease_token, leased_at, attempts, moved_session_id, next_seq, waiting, ready_at

-- name: move_out_lanes
-- Lanes in the order of their keys, from behind one on.
SELECT {columns_of_lanes}
FROM lanes WHERE session_key > ? ORDER BY session_key LIMIT ?

-- name: move_in_lanes
-- A lane as it was elsewhere.
INSERT INTO lanes ({columns_of_lanes})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_sessions
-- All of them, the key first.
session_id, session_key, owner, source, user_id, parent_session_id, relation, started_at, ended_at, end_reason,
ends, entry, title, title_by, model, model_config, system_prompt, billing_provider, billing_base_url,
billing_mode, pinned, archived, extra, title_owner

-- name: move_out_sessions
-- Sessions in the order of their keys, from behind one on.
SELECT {columns_of_sessions}
FROM sessions WHERE session_id > ? ORDER BY session_id LIMIT ?

-- name: move_in_sessions
-- A session as it was elsewhere.
INSERT INTO sessions ({columns_of_sessions})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_entries
-- All of them, the key first.
entry_id, session_key, session_id, owner, platform, state, state_since, due_at, policy_fingerprint, record

-- name: move_out_entries
-- Entries of lanes in the order of their keys, from behind one on.
SELECT {columns_of_entries}
FROM entries WHERE entry_id > ? ORDER BY entry_id LIMIT ?

-- name: move_in_entries
-- An entry as it was elsewhere.
INSERT INTO entries ({columns_of_entries})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_clocks
-- All of them, the key first.
entry_id, version, updated_at, last_interaction_at

-- name: move_out_clocks
-- Clocks of entries in the order of their keys, from behind one on.
SELECT {columns_of_clocks}
FROM clocks WHERE entry_id > ? ORDER BY entry_id LIMIT ?

-- name: move_in_clocks
-- A clock as it was elsewhere.
INSERT INTO clocks ({columns_of_clocks})
VALUES (?, ?, ?, ?)

-- fragment: columns_of_transitions
-- All of them, the key first.
change_id, session_key, session_id, at, event, from_state, to_state, reason, actor

-- name: move_out_transitions
-- Changes of state in the order of their keys, from behind one on.
SELECT {columns_of_transitions}
FROM transitions WHERE change_id > ? ORDER BY change_id LIMIT ?

-- name: move_in_transitions
-- A change of state as it was elsewhere.
INSERT INTO transitions ({columns_of_transitions})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_hook_calls
-- All of them, the key first.
idempotency_key, hook, session_key, session_id, event, payload, state, attempts, created_at, next_try_at,
last_error

-- name: move_out_hook_calls
-- Calls of hooks in the order of their keys, from behind one on.
SELECT {columns_of_hook_calls}
FROM hook_calls WHERE idempotency_key > ? ORDER BY idempotency_key LIMIT ?

-- name: move_in_hook_calls
-- A call of a hook as it was elsewhere.
INSERT INTO hook_calls ({columns_of_hook_calls})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_totals
-- All of them, the key first.
session_id, last_active, last_seq, message_count, tool_call_count, text_bytes, rewind_count, edit_count, preview,
input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, api_call_count,
estimated_cost_usd, actual_cost_usd, cost_status, cost_source, pricing_version

-- name: move_out_totals
-- Sums of sessions in the order of their keys, from behind one on.
SELECT {columns_of_totals}
FROM totals WHERE session_id > ? ORDER BY session_id LIMIT ?

-- name: move_in_totals
-- A sum of a session as it was elsewhere.
INSERT INTO totals ({columns_of_totals})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_messages
-- All of them, the key first.
message_id, session_id, seq, role, content, parts, tool_call_id, tool_calls, tool_name, effect_disposition,
sent_at, token_count, finish_reason, reasoning, reasoning_content, reasoning_details, codex_reasoning_items,
codex_message_items, api_content, platform_message_id, observed, hidden_because, hidden_by, edited_at, extra,
platform_messages, author, from_lane, people

-- name: move_out_messages
-- Messages in the order of their keys, from behind one on.
SELECT {columns_of_messages}
FROM messages WHERE message_id > ? ORDER BY message_id LIMIT ?

-- name: move_in_messages
-- A message as it was elsewhere.
INSERT INTO messages ({columns_of_messages}{and_tokens})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?{and_what_it_says})

-- fragment: columns_of_message_versions
-- All of them, the key first.
message_id, version, content, parts, replaced_at

-- name: move_out_message_versions
-- Earlier versions of messages in the order of their keys, from behind one on.
SELECT {columns_of_message_versions}
FROM message_versions WHERE (message_id, version) > (?, ?) ORDER BY message_id, version LIMIT ?

-- name: move_in_message_versions
-- An earlier version of a message as it was elsewhere.
INSERT INTO message_versions ({columns_of_message_versions})
VALUES (?, ?, ?, ?, ?)

-- fragment: columns_of_usage_events
-- All of them, the key first.
event_id, session_id, at, task, model, provider, base_url, billing_mode, input_tokens, output_tokens,
cache_read_tokens, cache_write_tokens, reasoning_tokens, api_calls, estimated_cost_usd, actual_cost_usd,
cost_status, cost_source, pricing_version

-- name: move_out_usage_events
-- Uses of models in the order of their keys, from behind one on.
SELECT {columns_of_usage_events}
FROM usage_events WHERE event_id > ? ORDER BY event_id LIMIT ?

-- name: move_in_usage_events
-- A use of a model as it was elsewhere.
INSERT INTO usage_events ({columns_of_usage_events})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_index_changes
-- All of them, the key first.
change_id, message_id

-- name: move_out_index_changes
-- Notes for the search index in the order of their keys, from behind one on.
SELECT {columns_of_index_changes}
FROM index_changes WHERE change_id > ? ORDER BY change_id LIMIT ?

-- name: move_in_index_changes
-- A note for the search index as it was elsewhere.
INSERT INTO index_changes ({columns_of_index_changes})
VALUES (?, ?)

-- fragment: columns_of_tombstones
-- All of them, the key first.
subject, erased_at

-- name: move_out_tombstones
-- Tombstones in the order of their keys, from behind one on.
SELECT {columns_of_tombstones}
FROM tombstones WHERE subject > ? ORDER BY subject LIMIT ?

-- name: move_in_tombstones
-- A tombstone as it was elsewhere.
INSERT INTO tombstones ({columns_of_tombstones})
VALUES (?, ?)

-- fragment: columns_of_inbox
-- All of them, the key first.
item_id, session_key, seq, place, event, owner, sender, kind, solo, media, merged_into, messages, characters,
last_at, admitted_at, ready_at, token, transcript_id, payload, outcome, settled_at, settled_by, problem, steered_into, tries, growing

-- name: move_out_inbox
-- Accepted messages in the order of their keys, from behind one on.
SELECT {columns_of_inbox}
FROM inbox WHERE item_id > ? ORDER BY item_id LIMIT ?

-- name: move_in_inbox
-- An accepted message as it was elsewhere.
INSERT INTO inbox ({columns_of_inbox})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_outbox
-- All of them, the key first.
reply_id, session_key, session_id, seq, owner, platform, account, target, content, state, attempts, unclear,
created_at, next_try_at, settled_at, sent_message_id, problem, epoch

-- name: move_out_outbox
-- Replies in the order of their keys, from behind one on.
SELECT {columns_of_outbox}
FROM outbox WHERE reply_id > ? ORDER BY reply_id LIMIT ?

-- name: move_in_outbox
-- A reply as it was elsewhere.
INSERT INTO outbox ({columns_of_outbox})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- fragment: columns_of_schedules
-- All of them, the key first.
name, kind, session_key, owner, platform, account, task, timing, state, due_at, last_at, runs, version, created_at,
settled_at, problem

-- name: move_out_schedules
-- Schedules in the order of their keys, from behind one on.
SELECT {columns_of_schedules}
FROM schedules WHERE name > ? ORDER BY name LIMIT ?

-- name: move_in_schedules
-- A schedule as it was elsewhere.
INSERT INTO schedules ({columns_of_schedules})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: rows_of_tables
-- How much there is of everything.
SELECT 'lanes', count(*) FROM lanes
UNION ALL SELECT 'sessions', count(*) FROM sessions
UNION ALL SELECT 'entries', count(*) FROM entries
UNION ALL SELECT 'clocks', count(*) FROM clocks
UNION ALL SELECT 'transitions', count(*) FROM transitions
UNION ALL SELECT 'hook_calls', count(*) FROM hook_calls
UNION ALL SELECT 'totals', count(*) FROM totals
UNION ALL SELECT 'messages', count(*) FROM messages
UNION ALL SELECT 'message_versions', count(*) FROM message_versions
UNION ALL SELECT 'usage_events', count(*) FROM usage_events
UNION ALL SELECT 'index_changes', count(*) FROM index_changes
UNION ALL SELECT 'tombstones', count(*) FROM tombstones
UNION ALL SELECT 'inbox', count(*) FROM inbox
UNION ALL SELECT 'outbox', count(*) FROM outbox
UNION ALL SELECT 'schedules', count(*) FROM schedules

-- name: all_facts
-- All facts about the store.
SELECT name, value FROM meta ORDER BY name
